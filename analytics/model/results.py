"""What the critical-participation analysis says about one window."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from analytics.model.trace import Int32, UInt8

Float64 = NDArray[np.float64]


class WindowStatus(StrEnum):
    """Whether the critical participation of a window can be trusted; anything but OK comes with a reason."""

    OK = "ok"
    NO_CRITICAL_PATH = "no_critical_path"
    CLOCK_SKEW = "clock_skew"
    CYCLE = "cycle"
    INCOMPLETE = "incomplete"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Windows:
    """``count`` windows ``[origin + k*width, origin + (k+1)*width]`` for k from ``first``, all in ns."""

    width_ns: int
    first: int
    count: int
    origin_ns: int = 0

    def start_ns(self, index: int) -> int:
        """Start of window number ``index`` (a k, not a position)."""
        return self.origin_ns + index * self.width_ns


@dataclass(frozen=True, eq=False)
class WindowSummary:
    """Critical participation (CP) and conventional profile of one window, by group.

    ``start_ns``/``end_ns`` are the effective bounds: the job's first and last window shrink to its records.
    CP values are shares of 1; conventional values are durations / (end - start) and may exceed 1.
    ``activity_*`` are indexed by activity code (length ``TYPE_COUNT``). ``worker_*``, ``operator_*`` and
    ``channel_*`` are parallel arrays: a worker's own timeline; an (operator, activity type) pair, with how
    many workers ran it; a (sender, receiver, message type) triple. Conventional worker shares count recorded
    work only: neither waiting nor unknown. If ``status`` forbids CP, the CP arrays are zero.
    """

    index: int
    start_ns: int
    end_ns: int
    status: WindowStatus
    reason: str
    log10_paths: float
    cp_total: float
    record_count: int
    activity_cp: Float64
    activity_conventional: Float64
    worker_ids: Int32
    worker_cp: Float64
    worker_conventional: Float64
    operator_ids: Int32
    operator_types: UInt8
    operator_cp: Float64
    operator_conventional: Float64
    operator_workers: Int32
    channel_src: Int32
    channel_dst: Int32
    channel_types: UInt8
    channel_cp: Float64
    channel_conventional: Float64


@dataclass(frozen=True, eq=False)
class WindowEdges:
    """Every edge of one window's program activity graph, with its part in the critical paths.

    Parallel arrays. A local edge has ``src == dst``; a message's ``src_ns`` is on the sender. ``cp`` is the
    critical participation, ``share`` the share of all transient critical paths that use the edge (0 for
    waiting). ``on_path`` marks the window's representative critical path: walked back from the window's
    end over the in-edges most paths use; ties go to the lower worker id, then to the local edge.
    """

    src: Int32
    src_ns: NDArray[np.int64]
    dst: Int32
    dst_ns: NDArray[np.int64]
    type: UInt8
    operator: Int32
    cp: Float64
    share: Float64
    on_path: NDArray[np.bool_]
