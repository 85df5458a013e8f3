"""Sums of one window while it is swept, and the rows they become.

There is a place for every label and channel of the trace, but only those a window touches are read and
cleared, so that a long trace with thousands of operators does not pay for all of them in every window.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.jit import kernel
from analytics.critical_path.labels import Labels
from analytics.model.activity import ActivityType
from analytics.model.results import Float64
from analytics.model.trace import Int32, Int64, UInt8

_UNKNOWN, _WAITING = int(ActivityType.UNKNOWN), int(ActivityType.WAITING)


class Totals(NamedTuple):
    """CP·ns and ns by label and by channel; ``label_last`` is the last worker that had the label, or -1.

    ``touched_count`` holds how many entries of ``touched`` (labels) and ``channel_touched`` are used.
    """

    label_cp: Float64
    label_ns: Int64
    label_workers: Int32
    label_last: Int32
    is_idle: NDArray[np.bool_]
    touched: Int32
    channel_cp: Float64
    channel_ns: Int64
    channel_seen: NDArray[np.bool_]
    channel_touched: Int32
    touched_count: Int64


class Rows(NamedTuple):
    """Result rows: worker, label or channel number; for labels how many workers; both shares."""

    id: Int32
    workers: Int32
    cp: Float64
    conventional: Float64


@kernel
def new_totals(labels: Labels, channels: int) -> Totals:
    """Totals of nothing."""
    n = len(labels.type)
    return Totals(
        np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int32), np.full(n, -1, np.int32),
        (labels.type == _UNKNOWN) | (labels.type == _WAITING), np.empty(n, np.int32),
        np.zeros(channels), np.zeros(channels, np.int64), np.zeros(channels, np.bool_),
        np.empty(channels, np.int32), np.zeros(2, np.int64),
    )  # fmt: skip


@kernel
def sorted_touched(totals: Totals) -> tuple[Int32, Int32]:
    """Labels and channels of this window, ascending."""
    touched = np.sort(totals.touched[: totals.touched_count[0]])
    return touched, np.sort(totals.channel_touched[: totals.touched_count[1]])


@kernel
def clear_totals(totals: Totals, touched: Int32, channels: Int32) -> None:
    """Forget the window."""
    for label in touched:
        totals.label_cp[label] = 0.0
        totals.label_ns[label] = 0
        totals.label_workers[label] = 0
        totals.label_last[label] = -1
    for channel in channels:
        totals.channel_cp[channel] = 0.0
        totals.channel_ns[channel] = 0
        totals.channel_seen[channel] = False
    totals.touched_count[:] = 0


@kernel
def empty_rows() -> Rows:
    """No rows yet."""
    return Rows(np.empty(64, np.int32), np.empty(64, np.int32), np.empty(64), np.empty(64))


@kernel
def room_for(rows: Rows, used: int, more: int) -> Rows:
    """The same rows with room for ``more`` after the first ``used``."""
    if used + more <= len(rows.id):
        return rows
    size = max(2 * len(rows.id), used + more)
    grown = Rows(np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size), np.empty(size))
    grown.id[:used] = rows.id[:used]
    grown.workers[:used] = rows.workers[:used]
    grown.cp[:used] = rows.cp[:used]
    grown.conventional[:used] = rows.conventional[:used]
    return grown


@kernel
def collect_operators(
    totals: Totals, touched: Int32, labels: Labels, length_ns: int, rows: Rows, used: int,
    activity_cp: Float64, activity_conventional: Float64,
) -> int:  # fmt: skip
    """Add labels to the activity shares, and those of real operators as rows. Returns the rows used."""
    for label in touched:
        cp, conventional = totals.label_cp[label] / length_ns, totals.label_ns[label] / length_ns
        activity_cp[labels.type[label]] += cp
        activity_conventional[labels.type[label]] += conventional
        if labels.operator[label] >= 0:
            rows.id[used], rows.workers[used] = label, totals.label_workers[label]
            rows.cp[used], rows.conventional[used] = cp, conventional
            used += 1
    return used


@kernel
def collect_channels(
    totals: Totals, channels: Int32, channel_type: UInt8, length_ns: int, rows: Rows, used: int,
    activity_cp: Float64, activity_conventional: Float64,
) -> int:  # fmt: skip
    """Add channels to the activity shares and as rows. Returns the rows used."""
    for channel in channels:
        cp, conventional = totals.channel_cp[channel] / length_ns, totals.channel_ns[channel] / length_ns
        activity_cp[channel_type[channel]] += cp
        activity_conventional[channel_type[channel]] += conventional
        rows.id[used], rows.workers[used] = channel, 0
        rows.cp[used], rows.conventional[used] = cp, conventional
        used += 1
    return used
