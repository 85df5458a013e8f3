"""A job's operators, how records flow between them, and what their instances did: the same for every engine.

What was not reported is None or a reason, never zero: a rate of zero would be acted upon.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Operator:
    """A vertex of the job's graph. ``state`` is the engine's word; ``started_at_ms`` is of the running attempt."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int | None = None
    state: str = ""
    started_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """Records flow from operator ``source`` to operator ``target``; ``strategy`` is the engine's, such as HASH."""

    source: str
    target: str
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """A job as it was at ``at_ms`` by the engine's clock (ms since 1970).

    ``running_since_ms`` changes with every restart and rescale. ``scheduler`` is the engine's word: Flink obeys
    requests for another parallelism only if it is ``Adaptive``.
    """

    job_id: str
    job_name: str
    state: str
    at_ms: int | None
    operators: tuple[Operator, ...]
    edges: tuple[Edge, ...]
    scheduler: str = ""
    max_parallelism: int | None = None
    started_at_ms: int | None = None
    running_since_ms: int | None = None

    def sources(self) -> tuple[Operator, ...]:
        """The operators that nothing flows into, in their order."""
        fed = {edge.target for edge in self.edges}
        return tuple(operator for operator in self.operators if operator.id not in fed)


@dataclass(frozen=True, slots=True)
class InstanceCounters:
    """An instance's counters since its attempt began, as they were some time before ``at_ns``.

    ``at_ns`` is when they were asked for, by the asker's clock. The three times add up to the instance's own
    clock. ``attempt_age_ms`` is how long ago the attempt that runs now began, by the engine's clock. ``queued`` is
    how much waited in front of it just then, in whatever the engine counts: instances can be compared by it.
    ``bytes_out`` is what it sent to other operators, also to those of the same process.
    """

    operator_id: str
    instance: int
    at_ns: int
    records_in: float | None = None
    records_out: float | None = None
    busy_ms: float | None = None
    idle_ms: float | None = None
    backpressured_ms: float | None = None
    attempt: int | None = None
    attempt_age_ms: int | None = None
    attempt_started_at_ms: int | None = None
    queued: float | None = None
    bytes_out: float | None = None

    @property
    def clock_ms(self) -> float | None:
        """How long the instance has run by its own clock; None if a part of it is unknown."""
        if self.busy_ms is None or self.idle_ms is None or self.backpressured_ms is None:
            return None
        return self.busy_ms + self.idle_ms + self.backpressured_ms


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """How short of memory the engine's processes are, told by those that are shortest.

    Shares: of time spent in garbage collection, of the heap in use, of the metaspace in use; None if not reported.
    """

    gc_ratio: float | None = None
    heap_ratio: float | None = None
    metaspace_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class JobPoll:
    """What a job said when it was asked once: its graph and the counters that could be read.

    ``lags`` are ``(operator id, records that wait outside the job)`` of the sources that tell; ``memory`` is of the
    processes that run it, and whatever else they run.
    """

    at_ns: int
    topology: Topology
    counters: tuple[InstanceCounters, ...]
    lags: tuple[tuple[str, float], ...] = ()
    memory: MemoryUse | None = None


class Unknown(StrEnum):
    """Why nothing is known about an instance's window.

    In turn: it does not run; it has reported nothing (lately); what is reported is of an attempt that ended; it
    does not report how long it was busy; it has not been observed for long enough; its counters stand still
    although the engine says that it runs.
    """

    NOT_RUNNING = "not_running"
    NO_METRICS = "no_metrics"
    OLD_ATTEMPT = "old_attempt"
    NO_CLOCK = "no_clock"
    TOO_SHORT = "too_short"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class InstanceWindow:
    """What one instance did in ``observed_ms`` of its own time, or why that is ``unknown``.

    ``from_ns`` and ``until_ns`` say roughly when, by the asker's clock. Every amount may be None by itself: the
    engine did not report it. ``busy_ms`` is the useful time; ``queued`` is how much waited in front of it, on
    average, to compare instances by. If ``unknown``, every amount is None.
    """

    operator_id: str
    instance: int
    from_ns: int
    until_ns: int
    observed_ms: float | None = None
    records_in: float | None = None
    records_out: float | None = None
    busy_ms: float | None = None
    idle_ms: float | None = None
    backpressured_ms: float | None = None
    unknown: Unknown | None = None
    queued: float | None = None
    bytes_out: float | None = None

    def per_s(self, amount: float | None) -> float | None:
        """An amount of this window per second of the instance's own time; None if either is unknown."""
        if amount is None or not self.observed_ms:
            return None
        return amount / (self.observed_ms / 1_000)

    def ratio(self, amount_ms: float | None) -> float | None:
        """A part of the window's time as a ratio between 0 and 1; None if it is unknown."""
        if amount_ms is None or not self.observed_ms:
            return None
        return min(max(amount_ms / self.observed_ms, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint (or savepoint). ``ended_at_ms`` is None while it runs; sizes and durations if not reported."""

    id: int
    state: str
    started_at_ms: int
    ended_at_ms: int | None
    duration_ms: int | None
    state_bytes: int | None
    is_savepoint: bool = False
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """How many checkpoints there were by state, and the latest of them, newest first."""

    counts: tuple[tuple[str, int], ...]
    history: tuple[Checkpoint, ...]


@dataclass(frozen=True, slots=True)
class Rescale:
    """A change of parallelism that the engine made or tried.

    ``changes`` are ``(operator id, before, after)`` for operators whose parallelism is known; empty if the engine
    did not say. ``ended_at_ms`` is None while it runs.
    """

    id: str
    outcome: str
    trigger: str
    reason: str
    started_at_ms: int
    ended_at_ms: int | None
    changes: tuple[tuple[str, int | None, int | None], ...] = ()
