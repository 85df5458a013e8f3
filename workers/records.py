"""Records of a job for some windows, read as the Spark job reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from analytics.model.results import Windows
from analytics.model.trace import Int64, Records
from analytics.spark.context import read_with_context
from analytics.spark.lifetimes import alive
from analytics.spark.sources import PostgresSegments
from webapp.jobs.models import Job
from webapp.telemetry import segment_store


class Loaded(NamedTuple):
    """Records, with when each worker lived and the bounds of the whole job (ns)."""

    records: Records
    alive_from_ns: Int64
    alive_until_ns: Int64
    bounds_ns: tuple[int, int]


def load(job: Job, from_ns: int, to_ns: int) -> Loaded:
    """What windows over ``[from_ns, to_ns]`` need.

    Raises
    ------
    LookupError
        If the job has no records, or some were removed meanwhile.
    """
    if job.first_ns is None or job.last_ns is None:
        raise LookupError("the job has no records")
    source, bounds = PostgresSegments(segment_store.address()), (job.first_ns, job.last_ns)
    refs = source.index(job.pk, from_ns - job.gap_horizon_ns, to_ns + job.gap_horizon_ns)
    lives = alive(source.lifetimes(job.pk), bounds)
    records = read_with_context(refs, from_ns, to_ns, len(lives[0]), source.read)
    return Loaded(records, *lives, bounds)


def stretches(job: Job, starts_ns: Sequence[int]) -> Iterator[tuple[Loaded, Windows]]:
    """The windows that begin at these times, in order, each stretch without a gap with its records."""
    width = job.window_ns
    first = 0
    for i, start_ns in enumerate(starts_ns):
        if i + 1 == len(starts_ns) or starts_ns[i + 1] != start_ns + width:
            count = i + 1 - first
            loaded = load(job, starts_ns[first], starts_ns[first] + count * width)
            yield loaded, Windows(width, starts_ns[first] // width, count)
            first = i + 1
