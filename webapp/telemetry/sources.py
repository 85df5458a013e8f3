"""Places Weir reads by itself: adding them, claiming one for a poll, and saving what the poll read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from analytics.model.trace import TraceBatch
from webapp.jobs.models import Engine, Job
from webapp.jobs.services import ensure_job
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.services import digest_of, store_batch

State = dict[str, Any]

QUIET_AFTER = timedelta(minutes=10)
QUIET_EVERY = timedelta(seconds=20)


def add_source(kind: SourceKind, location: str, parent: Source | None = None) -> Source:
    """The source at this place, registered now if it is new or had been removed."""
    source, _ = Source.objects.get_or_create(location=location, defaults={"kind": kind, "parent": parent})
    if source.removed_at is not None and parent is None:
        source.removed_at = None
        source.save(update_fields=["removed_at"])
    return source


def due(kind: SourceKind, *, not_since: timedelta) -> list[int]:
    """Ids of unfinished sources of a kind that were not polled within ``not_since``.

    Those that have failed, or given nothing for ``QUIET_AFTER``, are looked at every ``QUIET_EVERY`` only: an
    application that was killed never ends its log.
    """
    now = timezone.now()
    quiet = Q(polled_at__isnull=False) & (
        ~Q(error="") | Q(data_at__lt=now - QUIET_AFTER) | Q(data_at=None, created_at__lt=now - QUIET_AFTER)
    )
    listed = Q(kind__in=(SourceKind.SPARK_EVENT_LOG_DIRECTORY, SourceKind.FLINK, SourceKind.AUTOSCALER))
    ready = Q(polled_at=None) | (Q(polled_at__lt=now - not_since) & (listed | ~quiet))
    rows = read_now().filter(ready | Q(polled_at__lt=now - QUIET_EVERY), kind=kind)
    return list(rows.order_by(F("polled_at").asc(nulls_first=True)).values_list("id", flat=True))


def due_in_turns(kind: SourceKind, *, not_since: timedelta, turns: int) -> list[int]:
    """Those of :func:`due` whose turn it is: one in ``turns`` of all there are, the longest waiting first.

    So many sources that were found at once are not asked all at once ever after.
    """
    share = math.ceil(read_now().filter(kind=kind).count() / turns)
    return due(kind, not_since=not_since)[:share]


def read_now() -> QuerySet[Source]:
    """The sources that are read at all: neither ended, paused nor removed, nor found in a place that is."""
    rows = Source.objects.filter(finished=False, paused=False, removed_at=None)
    return rows.exclude(parent__paused=True).exclude(parent__removed_at__isnull=False)


def claim(source_id: int) -> Source | None:
    """The source with its row locked; None if another collector has it or it is not read any more.

    Call it inside a transaction.
    """
    return read_now().select_for_update(skip_locked=True, of=("self",)).filter(pk=source_id).first()


def discovered(parent: Source, kind: SourceKind, locations: Iterable[str]) -> None:
    """Register what was found in a directory, and note that the directory was read."""
    known = set(Source.objects.filter(parent=parent).values_list("location", flat=True))
    for location in locations:
        if location not in known:
            add_source(kind, location, parent)
    Source.objects.filter(pk=parent.pk).update(polled_at=timezone.now(), error="")


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll read, and how the reader stands after it.

    ``job_name``, ``identity`` and ``started_ns`` are empty while the log has not said yet whose it is.
    """

    batch: TraceBatch
    state: State
    job_name: str
    identity: str
    started_ns: int | None
    finished: bool


@transaction.atomic
def save_poll(source: Source, poll: Poll) -> Job | None:
    """Store what a poll read together with the position behind it; either both are kept or neither.

    A log that is followed elsewhere already is left at once, with a line that says where.
    """
    source.polled_at, source.error = timezone.now(), ""
    if not source.identity and poll.identity:
        source.identity = poll.identity
        if twin := Source.objects.filter(identity=poll.identity).exclude(pk=source.pk).first():
            source.finished, source.error = True, f"a copy of {twin.location}, which is followed already"
            source.save()
            return None
    if source.job is None and poll.job_name:
        source.job = ensure_job(_job_name(poll), Engine.SPARK)
    if source.job is not None:
        _store(source, source.job, poll)
    source.state, source.finished = poll.state, poll.finished
    source.save()
    return source.job


def _job_name(poll: Poll) -> str:
    """The application's name, with its id if another application of that name ran when this one had started.

    Their workers have the same names; on one job's timelines they would do two things at once.
    """
    same = Source.objects.filter(job__name=poll.job_name, job__last_ns__gt=poll.started_ns or 0)
    beside = same.exclude(identity__in=("", poll.identity)).exists()
    return f"{poll.job_name} ({poll.identity.split()[0]})" if beside and poll.started_ns else poll.job_name


def _store(source: Source, job: Job, poll: Poll) -> None:
    batch = poll.batch
    told = bool(len(batch.records) or batch.halves or batch.metrics or batch.annotations)
    if told or batch.diagnostics:
        # The position before the poll names this part of the log, however often it is read.
        before = json.dumps(source.state, sort_keys=True)
        store_batch(job, batch, digest_of("poll", source.location, source.identity, before))
        source.data_at = source.polled_at
    if told or poll.finished:
        Job.objects.filter(pk=job.pk).update(finished=poll.finished)


def restart(source_id: int) -> None:
    """Read a source from its start as another log: what was there has been replaced."""
    Source.objects.filter(pk=source_id).update(state=None, identity="", finished=False)


def poll_failed(source_id: int, error: str) -> None:
    """Keep why a source could not be read; its position stays, so nothing is lost."""
    Source.objects.filter(pk=source_id).update(polled_at=timezone.now(), error=error[:1000])


def location(source_id: int) -> str:
    """Where a source is."""
    return Source.objects.values_list("location", flat=True).get(pk=source_id)
