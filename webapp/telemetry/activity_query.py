"""What a job did, read back from its segments in the order it was stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, Records
from webapp.jobs.models import Job, Operator, Worker
from webapp.telemetry import segment_store
from webapp.telemetry.models import Segment

ROW_BITS = 32
"""A key is a segment's id and, in these lower bits, the place in it."""
MOST_SEGMENTS = 64
"""As many are read for one page at most: a page may be short although more follows."""


@dataclass(frozen=True, slots=True)
class StoredActivity:
    """An activity, or with a ``peer`` a message that ``worker`` sent and ``peer`` received. Times in ns."""

    key: int
    type: str
    worker: str
    peer: str | None
    operator: str | None
    start_ns: int
    end_ns: int


def activities(
    job: Job, from_ns: int, to_ns: int, after: int, limit: int
) -> tuple[list[StoredActivity], int | None]:
    """At most ``limit`` activities that overlap ``[from_ns, to_ns]`` behind key ``after``; and where to go on.

    Each page unpacks the segments it reads, up to a whole one for a single activity: ask for large pages. The
    second value is the key to go on after, None if there is nothing more.
    """
    first = after >> ROW_BITS
    rows = Segment.objects.filter(job=job, pk__gte=first, min_ns__lte=to_ns, max_ns__gte=from_ns)
    ids = list(rows.order_by("pk").values_list("pk", flat=True)[: MOST_SEGMENTS + 1])
    found: list[StoredActivity] = []
    names = _Names(job)
    for pk in ids[:MOST_SEGMENTS]:
        records = segment_store.records_of(pk)
        if records is None:
            continue  # forgotten meanwhile
        begin = (after & (1 << ROW_BITS) - 1) + 1 if pk == first else 0
        for item in _of_segment(pk, records, from_ns, to_ns, begin, names):
            if len(found) == limit:
                return found, found[-1].key
            found.append(item)
    more = len(ids) > MOST_SEGMENTS
    return found, ids[MOST_SEGMENTS - 1] << ROW_BITS | (1 << ROW_BITS) - 1 if more else None


class _Names:
    """Of a job's workers and operators, by number."""

    def __init__(self, job: Job) -> None:
        self.workers = dict(Worker.objects.filter(job=job).values_list("number", "name"))
        self.operators = dict(Operator.objects.filter(job=job).values_list("number", "name"))


def _of_segment(
    pk: int, records: Records, from_ns: int, to_ns: int, begin: int, names: _Names
) -> Iterator[StoredActivity]:
    start_ns, end_ns = records.start_ns[begin:], records.end_ns[begin:]
    meets = (np.minimum(start_ns, end_ns) <= to_ns) & (np.maximum(start_ns, end_ns) >= from_ns)
    for row in (np.flatnonzero(meets) + begin).tolist():
        peer, operator = int(records.peer[row]), int(records.operator[row])
        yield StoredActivity(
            key=pk << ROW_BITS | row,
            type=ActivityType(int(records.type[row])).label,
            worker=names.workers[int(records.worker[row])],
            peer=None if peer == NONE else names.workers[peer],
            operator=None if operator == NONE else names.operators[operator],
            start_ns=int(records.start_ns[row]),
            end_ns=int(records.end_ns[row]),
        )
