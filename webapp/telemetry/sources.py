"""Places Weir reads by itself: adding them, claiming one for a poll, and saving what the poll read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from analytics.model.trace import TraceBatch
from webapp.jobs.models import Engine, Job
from webapp.jobs.services import ensure_job
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.services import digest_of, store_batch

State = dict[str, Any]


def add_source(kind: SourceKind, location: str, parent: Source | None = None) -> Source:
    """The source at this place, registered now if it is new."""
    source, _ = Source.objects.get_or_create(location=location, defaults={"kind": kind, "parent": parent})
    return source


def due(kind: SourceKind, *, not_since: timedelta) -> list[int]:
    """Ids of unfinished sources of a kind that were not polled within ``not_since``."""
    before = timezone.now() - not_since
    rows = Source.objects.filter(Q(polled_at__lt=before) | Q(polled_at=None), kind=kind, finished=False)
    return list(rows.order_by("polled_at").values_list("id", flat=True))


def claim(source_id: int) -> Source | None:
    """The source with its row locked, or None if another collector has it. Call inside a transaction."""
    return Source.objects.select_for_update(skip_locked=True).filter(pk=source_id).first()


def discovered(parent: Source, kind: SourceKind, locations: Iterable[str]) -> None:
    """Register what was found in a directory, and note that the directory was read."""
    known = set(Source.objects.filter(parent=parent).values_list("location", flat=True))
    for location in locations:
        if location not in known:
            add_source(kind, location, parent)
    Source.objects.filter(pk=parent.pk).update(polled_at=timezone.now(), error="")


@transaction.atomic
def save_poll(
    source: Source, batch: TraceBatch, state: State, *, job_name: str, finished: bool
) -> Job | None:
    """Store what a poll read together with the position behind it; either both are kept or neither.

    ``job_name`` is empty while the log has not said yet whose it is.
    """
    now = timezone.now()
    if source.job is None and job_name:
        source.job = ensure_job(job_name, Engine.SPARK)
    empty = not (len(batch.records) or batch.halves or batch.metrics or batch.annotations)
    if source.job is not None and not (empty and not batch.diagnostics):
        # The position before the poll names this part of the log, however often it is read.
        before = json.dumps(source.state, sort_keys=True)
        store_batch(source.job, batch, digest_of("poll", source.location, before))
        source.data_at = now
    if source.job is not None and (finished or not empty):
        Job.objects.filter(pk=source.job.pk).update(finished=finished)
    source.state, source.polled_at, source.finished, source.error = state, now, finished, ""
    source.save()
    return source.job


def poll_failed(source_id: int, error: str) -> None:
    """Keep why a source could not be read; its position stays, so nothing is lost."""
    Source.objects.filter(pk=source_id).update(polled_at=timezone.now(), error=error[:1000])


def location(source_id: int) -> str:
    """Where a source is."""
    return Source.objects.values_list("location", flat=True).get(pk=source_id)
