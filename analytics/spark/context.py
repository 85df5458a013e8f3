"""How many neighbouring segments a chunk of windows needs: just enough to know every gap at its borders.

Whether a worker was waiting is told by its last record before a gap and its first one after it. For most
workers both lie in the segments that overlap the windows; for the others, neighbours are read outwards, in
growing groups, until they are known or the horizon is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from analytics.model.trace import NONE, Int64, Records
from analytics.spark.sources import SegmentRef

_LATEST = np.iinfo(np.int64).max
_EARLIEST = np.iinfo(np.int64).min


def read_with_context(
    refs: Sequence[SegmentRef],
    from_ns: int,
    to_ns: int,
    workers: int,
    read: Callable[[Sequence[int]], Records],
) -> Records:
    """Records for windows over ``[from_ns, to_ns]``.

    ``refs`` are the segments that overlap the windows widened by the horizon; ``workers`` how many there
    are; ``read`` gives the records of segments by id.
    """
    core = [ref for ref in refs if ref.max_ns >= from_ns and ref.min_ns <= to_ns]
    before = sorted((r for r in refs if r.max_ns < from_ns), key=lambda r: (-r.max_ns, r.id))
    after = sorted((r for r in refs if r.min_ns > to_ns), key=lambda r: (r.min_ns, r.id))
    parts = [read([ref.id for ref in core])]
    last = np.full(workers, _EARLIEST)
    next_ = np.full(workers, _LATEST)
    _note(parts[0], from_ns, to_ns, last, next_)
    size = 2
    while before and (last < before[0].max_ns).any():
        group, before, size = before[:size], before[size:], size * 2
        parts.append(read([ref.id for ref in group]))
        _note(parts[-1], from_ns, to_ns, last, next_)
    size = 2
    while after and (next_ > after[0].min_ns).any():
        group, after, size = after[:size], after[size:], size * 2
        parts.append(read([ref.id for ref in group]))
        _note(parts[-1], from_ns, to_ns, last, next_)
    return Records.concat(parts)


def _note(records: Records, from_ns: int, to_ns: int, last: Int64, next_: Int64) -> None:
    """Move each worker's last time up to ``from_ns`` and first time from ``to_ns`` on by these records."""
    message = records.peer != NONE
    local = ~message
    for worker, at_ns in (
        (records.worker, records.start_ns),
        (records.worker[local], records.end_ns[local]),
        (records.peer[message], records.end_ns[message]),
    ):
        early, late = at_ns <= from_ns, at_ns >= to_ns
        np.maximum.at(last, worker[early], at_ns[early])
        np.minimum.at(next_, worker[late], at_ns[late])
