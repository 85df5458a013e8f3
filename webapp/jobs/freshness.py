"""Does a job report? One rule, for a row in Python and for a query over all jobs."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Case, DurationField, ExpressionWrapper, F, Q, Value, When
from django.db.models.functions import Greatest

from webapp.jobs.models import Job

ERROR, QUIET, LIVE, FINISHED = "error", "quiet", "live", "finished"
QUIET_INTERVALS = 3
SHORTEST_INTERVAL = timedelta(seconds=10)
"""A source is read every few seconds at best, and a micro-batch job reports once a batch."""


def state_of(job: Job, source_error: str, now: datetime) -> str:
    """An error of its source first, then whether it is done, quiet or live."""
    if source_error:
        return ERROR
    if job.finished:
        return FINISHED
    if job.last_received_at is None:
        return QUIET
    interval = max(timedelta(microseconds=job.window_ns // 1000), SHORTEST_INTERVAL)
    return QUIET if now - job.last_received_at > QUIET_INTERVALS * interval else LIVE


def state_in_query(now: datetime) -> Case:
    """The same for a query of jobs that are annotated with ``source_error``."""
    width = ExpressionWrapper(
        F("window_ns") / Value(1_000_000_000.0) * Value(timedelta(seconds=1)), output_field=DurationField()
    )
    allowed = ExpressionWrapper(
        Greatest(width, Value(SHORTEST_INTERVAL)) * QUIET_INTERVALS, output_field=DurationField()
    )
    silent = Q(last_received_at__isnull=True) | Q(last_received_at__lt=Value(now) - allowed)
    return Case(
        When(~Q(source_error=""), then=Value(ERROR)),
        When(finished=True, then=Value(FINISHED)),
        When(silent, then=Value(QUIET)),
        default=Value(LIVE),
    )
