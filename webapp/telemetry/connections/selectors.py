"""Connections as people see them: how each stands, and which jobs it gave."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Count, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from webapp.jobs.models import Job
from webapp.jobs.policies import Actor, visible_jobs
from webapp.telemetry import backoff
from webapp.telemetry.connections.policies import visible_connections
from webapp.telemetry.models import Source

JOBS_SHOWN = 20
ASKED_WITHIN = timedelta(minutes=1)
"""A source that was asked longer ago than this and its interval is not asked at all: its workers are away."""


class State(StrEnum):
    """How a connection stands."""

    PAUSED = "paused"
    WAITING = "waiting"
    FAILING = "failing"
    UNASKED = "unasked"
    ENDED = "ended"
    CONNECTED = "connected"


@dataclass(frozen=True, slots=True)
class Connection:
    """A place that Weir asks. ``jobs`` are the newest of those the asker may see, of ``job_count``.

    ``next_try`` is when it is asked again after failures; ``trouble`` is what is wrong with something found there.
    """

    source: Source
    state: State
    failures: int
    next_try: datetime | None
    jobs: tuple[Job, ...]
    job_count: int
    failing_count: int
    trouble: str


def state_of(source: Source, now: datetime) -> State:
    """How it stands: what a person decided first, then what went wrong."""
    if source.paused:
        return State.PAUSED
    if source.error:
        return State.FAILING
    if source.finished:
        return State.ENDED
    since = source.polled_at or source.created_at
    if now - since > ASKED_WITHIN + 2 * timedelta(seconds=source.interval_s or 0):
        return State.UNASKED
    return State.WAITING if source.polled_at is None else State.CONNECTED


def connections(actor: Actor) -> QuerySet[Source]:
    """The connections a person may see, with how many jobs of theirs and how many failures are below each."""
    jobs = visible_jobs(actor)
    failing = ~Q(children__error="") & Q(children__finished=False)
    return visible_connections(actor).annotate(
        child_jobs=Count("children__job", filter=Q(children__job__in=jobs), distinct=True),
        child_failures=Count("children", filter=failing, distinct=True),
    )


def described(actor: Actor, sources: Sequence[Source]) -> list[Connection]:
    """Each of these (from :func:`connections`) with its state and its jobs."""
    now = timezone.now()
    jobs = _jobs_below(actor, sources)
    troubles = dict(
        Source.objects.filter(parent__in=sources, finished=False)
        .exclude(error="")
        .order_by("-id")
        .values_list("parent_id", "error")
    )
    return [
        Connection(
            source=source,
            state=state_of(source, now),
            failures=backoff.failures(source) if source.error else 0,
            next_try=backoff.not_before(source) if source.error and not source.paused else None,
            jobs=tuple(jobs[source.pk]),
            job_count=max(source.child_jobs, len(jobs[source.pk])),  # type: ignore[attr-defined]
            failing_count=source.child_failures,  # type: ignore[attr-defined]
            trouble=troubles.get(source.pk, ""),
        )
        for source in sources
    ]


def _jobs_below(actor: Actor, sources: Sequence[Source]) -> dict[int, list[Job]]:
    """The newest jobs of each connection: its own, and those of what was found there last."""
    mine = visible_jobs(actor)
    newest = Window(RowNumber(), partition_by="parent_id", order_by="-id")
    found = Source.objects.filter(parent__in=sources, job__in=mine).annotate(place=newest)
    pairs = [(source.pk, source.job_id) for source in sources if source.job_id is not None]
    pairs += found.filter(place__lte=JOBS_SHOWN).order_by("place").values_list("parent_id", "job_id")
    jobs = mine.in_bulk({job_id for _, job_id in pairs})
    below: dict[int, list[Job]] = defaultdict(list)
    for source_id, job_id in dict.fromkeys(pairs):
        if job_id in jobs:
            below[source_id].append(jobs[job_id])
    return below
