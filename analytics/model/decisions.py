"""What a scaling policy answers: a parallelism for every operator, or why it cannot tell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Whether there is an answer."""

    OK = "ok"
    CANNOT_DECIDE = "cannot_decide"


class Reason(StrEnum):
    """Why a policy cannot decide about an operator."""

    MISSING_INSTANCE = "MISSING_INSTANCE"
    MISSING_RATES = "MISSING_RATES"
    ZERO_USEFUL_TIME = "ZERO_USEFUL_TIME"
    ZERO_CAPACITY = "ZERO_CAPACITY"
    NO_INPUT = "NO_INPUT"
    NON_FINITE = "NON_FINITE"
    NO_SOURCE_TARGET = "NO_SOURCE_TARGET"
    STALE_WINDOW = "STALE_WINDOW"
    WARM_UP = "WARM_UP"
    CYCLE = "CYCLE"
    TOPOLOGY_MISMATCH = "TOPOLOGY_MISMATCH"
    UPSTREAM_UNDECIDED = "UPSTREAM_UNDECIDED"

    @property
    def words(self) -> str:
        """The reason as a sentence a person reads after *cannot decide:*."""
        return _WORDS[self]


_WORDS = {
    Reason.MISSING_INSTANCE: "fewer instances reported than are running",
    Reason.MISSING_RATES: "no instance reported",
    Reason.ZERO_USEFUL_TIME: "an instance did no useful work in the window, so its true rate is undefined",
    Reason.ZERO_CAPACITY: "an instance's true rate is zero although input arrives",
    Reason.NO_INPUT: "nothing is to be processed; the current parallelism is kept",
    Reason.NON_FINITE: "a number is negative, infinite or not a number",
    Reason.NO_SOURCE_TARGET: "it is not known what the source should deliver",
    Reason.STALE_WINDOW: "the measurements are too old or span a restart",
    Reason.WARM_UP: "the job is still warming up after a change",
    Reason.CYCLE: "the graph has a cycle",
    Reason.TOPOLOGY_MISMATCH: "the graph and the rates disagree",
    Reason.UPSTREAM_UNDECIDED: "the input depends on an operator that cannot be decided",
}


@dataclass(frozen=True, slots=True)
class OperatorDecision:
    """One operator: what it has, what it needs, and the parallelism that is asked for.

    ``need`` is the parallelism before rounding, limits and any safety factor; None for sources and where there is
    no answer. ``parallelism`` is None if the policy cannot decide, except that a source, and an operator with
    nothing to do, keep the current one. ``target_rate_per_s`` is the input the operator should process,
    for a source what it should deliver; the true rates are sums over its instances. ``note`` says in words
    what else shaped the number: a limit, a ratio, a delay.
    """

    operator_id: str
    current: int
    need: float | None
    parallelism: int | None
    status: Status
    reason: Reason | None
    target_rate_per_s: float | None
    true_processing_per_s: float | None
    true_output_per_s: float | None
    note: str = ""

    @property
    def proposed(self) -> int:
        """The parallelism to run with: the current one if there is no answer."""
        return self.current if self.parallelism is None else self.parallelism


@dataclass(frozen=True, slots=True)
class Decision:
    """What one policy says about one window; ``policy`` and ``version`` name how it was computed."""

    policy: str
    version: int
    operators: tuple[OperatorDecision, ...]
    note: str = ""

    @property
    def changes(self) -> dict[str, int]:
        """The operators that should get another parallelism, and which."""
        return {item.operator_id: item.proposed for item in self.operators if item.proposed != item.current}

    @property
    def undecided(self) -> tuple[OperatorDecision, ...]:
        """The operators about which there is no answer."""
        return tuple(item for item in self.operators if item.status is Status.CANNOT_DECIDE)


class Move(StrEnum):
    """What a policy does about a job at one time."""

    RESCALE = "rescale"
    ROLL_BACK = "roll_back"
    KEEP = "keep"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Action:
    """A policy's move: ``changes`` are ``(operator id, parallelism)``; ``why`` is readable whatever the move is."""

    move: Move
    changes: tuple[tuple[str, int], ...]
    why: str
    decision: Decision | None
