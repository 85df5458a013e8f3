"""Series of a job and their numbers, as samples or rolled up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from webapp.jobs.models import Job
from webapp.telemetry.models import HourRollup, MetricSample, MinuteRollup, Series

RESOLUTIONS: dict[str, type[MetricSample] | type[MinuteRollup] | type[HourRollup]] = {
    "raw": MetricSample,
    "minute": MinuteRollup,
    "hour": HourRollup,
}


def series_of_job(job: Job, name: str | None = None) -> QuerySet[Series]:
    """The series of a job, of one metric if it is named."""
    rows = Series.objects.filter(job=job)
    if name is None:
        return rows
    return rows.none() if "\0" in name else rows.filter(name=name)


def points(
    job: Job, series_id: int, resolution: str
) -> tuple[QuerySet[Any], Callable[[Any], dict[str, Any]]]:
    """The numbers of a series at a resolution, and how each is shown.

    Raises
    ------
    Http404
        If the job has no such series.
    """
    if not Series.objects.filter(job=job, pk=series_id).exists():
        raise Http404(f"job {job.pk} has no series {series_id}")
    rows: QuerySet[Any] = RESOLUTIONS[resolution].objects.filter(series_id=series_id)
    return rows, _sample if resolution == "raw" else _rollup


def _sample(row: MetricSample) -> dict[str, Any]:
    return {"at_ns": row.at_ns, "value": row.value}


def _rollup(row: MinuteRollup) -> dict[str, Any]:
    shown = {name: getattr(row, name) for name in ("at_ns", "minimum", "maximum", "total", "count")}
    return shown | {"value": row.last}
