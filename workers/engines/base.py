"""What every engine can do, in the terms of the task that applies changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from analytics.model.reconfigurations import Observed

Request = dict[str, Any]
"""What is, or would be, sent: ``method``, ``url`` and ``body``, as JSON."""

MAX_ANSWER_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Change:
    """What should come about. ``key`` stays the same however often it is sent; ``told`` is for who only listens."""

    engine_job_id: str
    parallelism: Mapping[str, int]
    key: str
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and what came back. ``status`` is None if nothing did, and ``error`` says why."""

    at: str
    method: str
    url: str
    sent: Any
    status: int | None
    answer: Any
    took_ms: int
    error: str = ""


Note = Callable[[Exchange], None]
"""Keeps an exchange; it raises if the attempt is no longer ours, and then nothing more may be sent."""


class EngineError(Exception):
    """The engine did not do it; the message says why in a sentence."""


class RefusedByEngineError(EngineError):
    """It was asked and said no: nothing has changed."""


class UnreachableError(EngineError):
    """It gave no answer: whatever was sent may or may not have arrived."""


class Engine(Protocol):
    """An engine of one job. Nothing here retries: the task observes, then decides."""

    def observe(self, engine_job_id: str) -> Observed | None:
        """The job as it is now; None if this engine cannot tell.

        Raises
        ------
        RefusedByEngineError
            If the engine says that it cannot be looked at; UnreachableError if it says nothing that can be read.
        """

    def progress(self, engine_job_id: str) -> Observed | None:
        """The same in short, for polling: it may leave out what does not change."""

    def preview(self, change: Change, seen: Observed | None) -> Request:
        """What ``apply`` would send for the change, given what was observed."""

    def revert(self, change: Change, before: Observed | None, seen: Observed | None) -> Request:
        """What ``apply`` would send to restore what was asked for ``before`` another change."""

    def apply(self, request: Request) -> None:
        """Send it, once.

        Raises
        ------
        RefusedByEngineError
            If it was refused; UnreachableError if nobody answered.
        """

    def arrived(self, request: Request, seen: Observed | None) -> bool | None:
        """Whether the engine has been asked for this already; None if that cannot be told."""

    def record(self, engine_job_id: str, since_ms: int) -> Any:
        """The engine's own record of the change, None if it keeps none."""


def reached(change: Change, seen: Observed | None) -> bool:
    """Whether the job runs as it should. What cannot be observed counts as reached once it was accepted."""
    if seen is None:
        return True
    now = seen.running.parallelism
    return seen.settled and all(now.get(key) == count for key, count in change.parallelism.items())


def differences(change: Change, seen: Observed) -> str:
    """Which operators do not run as they should, in words."""
    names = {item.id: (item.name, item.parallelism) for item in seen.running.operators}
    missing = [
        f"{names[key][0]} runs with {names[key][1]} instances, not {count}"
        for key, count in change.parallelism.items()
        if key in names and names[key][1] != count
    ]
    return ", ".join(missing) or f"not all of its tasks run (the job is {seen.state})"
