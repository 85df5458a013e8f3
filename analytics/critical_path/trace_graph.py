"""What both entrances do first: check the input, lay out the timelines, number channels, bucket messages."""

from dataclasses import dataclass, fields

import numpy as np

from analytics.critical_path.grouping import Grouped, group_by_worker
from analytics.critical_path.labels import Labels
from analytics.critical_path.sweep import Swept, sweep_windows
from analytics.critical_path.timeline import FOREVER, Timelines, lay_out
from analytics.critical_path.windows import (
    count_records,
    effective_bounds,
    first_windows,
    trace_bounds,
)
from analytics.model.activity import TYPE_COUNT
from analytics.model.diagnostics import Diagnostic
from analytics.model.results import Windows
from analytics.model.trace import Int32, Int64, Records, UInt8

_DENSE_CHANNELS = 1 << 22


@dataclass(frozen=True, eq=False)
class Channels:
    """Sender, receiver and type of every channel, in that order; ``of`` is the channel of every message."""

    src: Int32
    dst: Int32
    type: UInt8
    of: Int32


@dataclass(frozen=True, eq=False)
class TraceGraph:
    """The program activity graph of the whole trace, and the windows asked for."""

    grouped: Grouped
    labels: Labels
    timelines: Timelines
    windows: Windows
    begins_ns: Int64
    ends_ns: Int64
    born_ns: Int64
    died_ns: Int64
    record_counts: Int64
    bucket_pointer: Int64
    bucket: Int64
    last_window: Int64
    diagnostics: list[Diagnostic]

    def sweep(self, channels: Channels) -> Swept:
        """Everything the kernel says about the windows."""
        return sweep_windows(
            len(self.born_ns), self.grouped, self.timelines, self.labels, channels.of, channels.type,
            self.begins_ns, self.ends_ns, self.born_ns, self.died_ns, self.bucket_pointer, self.bucket,
            self.last_window,
        )  # fmt: skip


def build(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    windows: Windows,
    bounds_ns: tuple[int, int] | None,
    horizon_ns: int | None,
) -> TraceGraph:
    """Lay out the trace and say which records fall into which window.

    Raises
    ------
    ValueError
        If the lives are not one a worker, a window has no width or the horizon is negative.
    """
    if alive_from_ns.shape != alive_until_ns.shape or alive_from_ns.ndim != 1:
        raise ValueError("alive_from_ns and alive_until_ns must have one entry for every worker")
    if windows.width_ns <= 0:
        raise ValueError(f"a window must be longer than {windows.width_ns} ns")
    if horizon_ns is not None and horizon_ns < 0:
        raise ValueError(f"a horizon of {horizon_ns} ns is not possible")
    records = _owned(records)
    born, died = np.array(alive_from_ns, np.int64), np.array(alive_until_ns, np.int64)
    grouped, labels, kinds, diagnostics = group_by_worker(records, len(born))
    timelines, more = lay_out(grouped, labels, born, died, FOREVER if horizon_ns is None else horizon_ns)
    begins, ends = effective_bounds(windows, bounds_ns or trace_bounds(records))
    w = windows
    counts = count_records(kinds, records.start_ns, records.end_ns, w.origin_ns, w.width_ns, w.first, w.count)
    buckets = first_windows(grouped.msg_sent, grouped.msg_received, w.origin_ns, w.width_ns, w.first, w.count)
    return TraceGraph(
        grouped, labels, timelines, windows, begins, ends, born, died, counts, *buckets, diagnostics + more
    )


def _owned(records: Records) -> Records:
    """The same records in contiguous writable arrays, as kernels are compiled anew for every other kind."""
    columns = [getattr(records, item.name) for item in fields(Records)]
    if all(column.flags.c_contiguous and column.flags.writeable for column in columns):
        return records
    return Records(*(np.array(column) for column in columns))


def number_channels(grouped: Grouped, n_workers: int) -> Channels:
    """Give every (sender, receiver, type) that occurs a number, in ascending order."""
    keys = (grouped.msg_src.astype(np.int64) * n_workers + grouped.msg_dst) * TYPE_COUNT + grouped.msg_type
    if n_workers * n_workers * TYPE_COUNT <= _DENSE_CHANNELS:
        used = np.zeros(n_workers * n_workers * TYPE_COUNT, np.bool_)
        used[keys] = True
        numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
        distinct, of = np.flatnonzero(used), numbers[keys]
    else:
        distinct, inverse = np.unique(keys, return_inverse=True)
        of = inverse.astype(np.int32)
    pair, kind = np.divmod(distinct, TYPE_COUNT)
    src, dst = np.divmod(pair, max(n_workers, 1))
    return Channels(src.astype(np.int32), dst.astype(np.int32), kind.astype(np.uint8), of)
