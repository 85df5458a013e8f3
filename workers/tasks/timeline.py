"""The timeline of one window, for a page that waits for it."""

from __future__ import annotations

from celery import shared_task

from analytics.critical_path import window_edges
from analytics.model import edges
from analytics.model.results import Windows
from analytics.spark.context import read_with_context
from analytics.spark.lifetimes import alive
from analytics.spark.sources import PostgresSegments
from webapp.analysis import timelines
from webapp.analysis.models import Timeline
from webapp.telemetry import segment_store


@shared_task
def compute(timeline_id: int) -> None:
    """Compute and keep the edges of the window; the same records and rules as the Spark job's."""
    row = Timeline.objects.select_related("job").get(pk=timeline_id)
    try:
        timelines.store(row.pk, row.run_id, _edges(row))
    except (LookupError, ValueError) as error:
        timelines.fail(row.pk, row.run_id, str(error))
        raise


def _edges(row: Timeline) -> bytes:
    job, source = row.job, PostgresSegments(segment_store.address())
    if job.first_ns is None or job.last_ns is None:
        raise LookupError("the job has no records")
    bounds = job.first_ns, job.last_ns
    end_ns = row.start_ns + job.window_ns
    refs = source.index(job.pk, row.start_ns - job.gap_horizon_ns, end_ns + job.gap_horizon_ns)
    lives = alive(source.lifetimes(job.pk), bounds)
    records = read_with_context(refs, row.start_ns, end_ns, len(lives[0]), source.read)
    windows = Windows(job.window_ns, row.start_ns // job.window_ns, 1)
    _, found, _ = window_edges(records, *lives, windows, bounds_ns=bounds, horizon_ns=job.gap_horizon_ns)
    return edges.encode(found)
