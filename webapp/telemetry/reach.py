"""How far a batch of records reaches: which windows it changes for sure, and which it may change.

A record changes the windows it lies in and the gap before it on its worker's timeline, since only the
record that ends a gap tells whether the worker was waiting. A record that comes *before* what its worker
already reported falls into a gap nobody kept track of; gaps matter up to the horizon only, so windows
within one horizon of it may change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from analytics.model.trace import NONE, Int64, Records


@dataclass(frozen=True, slots=True)
class Reach:
    """Times in ns. ``last_ns`` has the new latest time of each worker seen; ``settle`` what may change."""

    first_ns: int
    from_ns: int
    to_ns: int
    settle: tuple[int, int] | None
    last_ns: dict[int, int]


def of(records: Records, last_ns: Mapping[int, int], horizon_ns: int) -> Reach:
    """Reach of at least one record, given each worker's latest time before this batch."""
    earliest, latest = _spans(records)
    first = int(min(records.start_ns.min(), records.end_ns.min()))
    final = int(max(records.start_ns.max(), records.end_ns.max()))
    from_ns = first
    settle: list[int] = []
    moved: dict[int, int] = {}
    for worker in np.flatnonzero(earliest <= latest).tolist():
        begins, ends, before = int(earliest[worker]), int(latest[worker]), last_ns.get(worker)
        moved[worker] = ends if before is None else max(before, ends)
        if before is None:
            continue
        if begins < before:
            settle += [begins - horizon_ns, min(ends, before) + horizon_ns]
        elif begins - before <= horizon_ns:
            from_ns = min(from_ns, before)
    return Reach(first, from_ns, final, (min(settle), max(settle)) if settle else None, moved)


def _spans(records: Records) -> tuple[Int64, Int64]:
    """Earliest and latest time of every worker in the records; earliest > latest for those not seen."""
    size = int(max(records.worker.max(), records.peer.max())) + 1
    earliest = np.full(size, np.iinfo(np.int64).max)
    latest = np.full(size, np.iinfo(np.int64).min)
    message = records.peer != NONE
    local = ~message
    for worker, at_ns in (
        (records.worker, records.start_ns),
        (records.worker[local], records.end_ns[local]),
        (records.peer[message], records.end_ns[message]),
    ):
        np.minimum.at(earliest, worker, at_ns)
        np.maximum.at(latest, worker, at_ns)
    return earliest, latest
