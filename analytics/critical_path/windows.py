"""Which windows there are, and which of them a record falls into."""

import numpy as np

from analytics.critical_path.grouping import ACTIVITY, MESSAGE
from analytics.critical_path.jit import kernel
from analytics.model.results import Windows
from analytics.model.trace import NONE, Int64, Records, UInt8


def trace_bounds(records: Records) -> tuple[int, int] | None:
    """First and last time in the records (ns), or None if there are none that count.

    Activities that end before they start do not count: they are ignored everywhere.
    """
    usable = (records.peer > NONE) | (records.end_ns >= records.start_ns)
    if not usable.any():
        return None
    starts, ends = records.start_ns[usable], records.end_ns[usable]
    return int(min(starts.min(), ends.min())), int(max(starts.max(), ends.max()))


def default_lifetimes(records: Records, n_workers: int) -> tuple[Int64, Int64]:
    """Every worker that has a record alive from the trace's first to its last; others never (0 until -1)."""
    first, last = trace_bounds(records) or (0, -1)
    seen = np.zeros(n_workers, np.bool_)
    seen[records.worker] = True
    seen[records.peer[records.peer >= 0]] = True
    return np.where(seen, first, 0).astype(np.int64), np.where(seen, last, -1).astype(np.int64)


def covering_windows(
    records_or_bounds: Records | tuple[int, int], width_ns: int, origin_ns: int = 0
) -> Windows:
    """All windows that overlap the trace, or a pair of bounds; one window if the trace is one moment.

    Raises
    ------
    ValueError
        If ``width_ns`` is not positive.
    """
    if width_ns <= 0:
        raise ValueError(f"a window must be longer than {width_ns} ns")
    bounds = trace_bounds(records_or_bounds) if isinstance(records_or_bounds, Records) else records_or_bounds
    if bounds is None:
        return Windows(width_ns, 0, 0, origin_ns)
    first = (bounds[0] - origin_ns) // width_ns
    last = -((origin_ns - bounds[1]) // width_ns) - 1
    return Windows(width_ns, first, max(last - first + 1, 1), origin_ns)


def effective_bounds(windows: Windows, bounds_ns: tuple[int, int] | None) -> tuple[Int64, Int64]:
    """Start and end of every window after the job's first and last shrink to its records.

    A window that does not overlap the job keeps its start and gets that as its end too.
    """
    begins = windows.origin_ns + windows.width_ns * (windows.first + np.arange(windows.count, dtype=np.int64))
    first, last = bounds_ns or (0, -1)
    starts = np.maximum(begins, first)
    ends = np.minimum(begins + windows.width_ns, last)
    outside = ends <= starts
    return np.where(outside, begins, starts), np.where(outside, begins, ends)


@kernel
def span(low: int, high: int, origin: int, width: int) -> tuple[int, int]:
    """First and last number of the windows an interval overlaps; those a moment touches."""
    if low < high:
        return (low - origin) // width, -((origin - high) // width) - 1
    return -((origin - low) // width) - 1, (low - origin) // width


@kernel
def count_records(
    kinds: UInt8, start: Int64, end: Int64, origin: int, width: int, first: int, count: int
) -> Int64:
    """How many activities and messages fall into each of ``count`` windows from number ``first`` on."""
    change = np.zeros(count + 1, np.int64)
    known_low, known_high, known = 0, 0, 0  # the window of the record before: most fall into the same
    for i in range(len(kinds)):
        if kinds[i] != ACTIVITY and kinds[i] != MESSAGE:
            continue
        low, high = min(start[i], end[i]), max(start[i], end[i])
        if known_low < low and high < known_high:
            a, b = known, known
        else:
            a, b = span(low, high, origin, width)
            if a == b:
                known, known_low = a, origin + a * width
                known_high = known_low + width
        a, b = max(a - first, 0), min(b - first, count - 1)
        if a <= b:
            change[a] += 1
            change[b + 1] -= 1
    return np.cumsum(change)[:count]


@kernel
def first_windows(
    sent: Int64, received: Int64, origin: int, width: int, first: int, count: int
) -> tuple[Int64, Int64, Int64]:
    """Messages by the first window they fall into.

    Returns ``pointer`` and ``bucket``, where ``bucket[pointer[k]:pointer[k+1]]`` are those of the k-th window,
    and per message the position of the last window it falls into.
    """
    last = np.empty(len(sent), np.int64)
    begin = np.empty(len(sent), np.int64)
    pointer = np.zeros(count + 1, np.int64)
    for m in range(len(sent)):
        a, b = span(min(sent[m], received[m]), max(sent[m], received[m]), origin, width)
        begin[m], last[m] = max(a - first, 0), min(b - first, count - 1)
        if begin[m] <= last[m]:
            pointer[begin[m] + 1] += 1
    for k in range(count):
        pointer[k + 1] += pointer[k]
    cursor = pointer[:count].copy()
    bucket = np.empty(pointer[count], np.int64)
    for m in range(len(sent)):
        if begin[m] <= last[m]:
            bucket[cursor[begin[m]]] = m
            cursor[begin[m]] += 1
    return pointer, bucket, last
