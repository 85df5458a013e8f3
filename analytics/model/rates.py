"""Rates: what a job's operators did in one window, and what its sources should deliver.

Definitions are those of DS2 (Kalavri et al., OSDI 2018, section 3): *useful time* is the part of a window
an instance spends working, not waiting for input or output; a *true* rate is records per second of useful
time, an *observed* rate records per second of the window. What was not reported is None, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from analytics.model.topology import MemoryUse, Topology


@dataclass(frozen=True, slots=True)
class InstanceRates:
    """One instance in one window, in records per second.

    A true rate is None if the useful time was zero; any rate is None if what it is computed from was not
    reported. ``useful_ratio`` and ``backpressured_ratio`` are shares of the window. ``queued`` is how much waited
    in front of the instance on average, in whatever its engine counts: it compares instances of one operator.
    ``sent_bytes_per_s`` went to other operators, also to those of the same process.
    """

    instance: int
    true_processing_per_s: float | None
    true_output_per_s: float | None
    observed_processing_per_s: float | None
    observed_output_per_s: float | None
    useful_ratio: float | None = None
    busy_ratio: float | None = None
    backpressured_ratio: float | None = None
    queued: float | None = None
    sent_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class OperatorRates:
    """The instances of one operator that reported over the window; ``expected`` is how many there should be.

    ``stale_count`` more have something to say, but not about this window: their counters stood still or belong to
    an attempt that has ended. ``lag_first`` and ``lag_last`` are records waiting outside the job, for
    sources whose backlog is known, at the window's two ends.
    """

    operator_id: str
    expected: int
    instances: tuple[InstanceRates, ...]
    stale_count: int = 0
    lag_first: float | None = None
    lag_last: float | None = None


@dataclass(frozen=True, slots=True)
class RateWindow:
    """What all operators did between two times (ns since 1970, by the asker's clock), and how short of memory the
    processes were that ran them: garbage collection and metaspace at the end, the heap on average.
    """

    start_ns: int
    end_ns: int
    operators: tuple[OperatorRates, ...]
    memory: MemoryUse | None = None

    @property
    def length_s(self) -> float:
        """The window's length in seconds."""
        return (self.end_ns - self.start_ns) / 1e9


class TargetMethod(StrEnum):
    """How it is known what a source should deliver."""

    CONFIGURED = "configured"
    BACKLOG_GROWTH = "backlog_growth"
    UNTHROTTLED_OUTPUT = "unthrottled_output"
    OBSERVED_OUTPUT = "observed_output"


@dataclass(frozen=True, slots=True)
class SourceTarget:
    """The records per second a source should deliver, all its instances together."""

    operator_id: str
    rate_per_s: float
    method: TargetMethod


@dataclass(frozen=True, slots=True)
class Observation:
    """All that a policy sees: the job as it runs, its rates over a window, and what its sources should deliver.

    A source without a target in ``targets`` has none that is known.
    """

    topology: Topology
    window: RateWindow
    targets: tuple[SourceTarget, ...]
