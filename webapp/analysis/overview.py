"""The list of jobs: one query whatever their number, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, F, OuterRef, Q, QuerySet, Subquery, TextField, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from analytics.model.activity import ActivityType
from webapp.analysis.models import Standing
from webapp.analysis.selectors import Limiter
from webapp.jobs import freshness
from webapp.jobs.models import Job
from webapp.jobs.policies import Actor, visible_jobs
from webapp.telemetry.models import Source

PAGE_ROWS = 100
STANDS_FOR = timedelta(minutes=15)
"""A limiter is what limited the job in the 15 minutes before; of older ones nothing is said."""
UNLIMITED = "unlimited"
ATTENTION = "attention"
SORTS = {
    "name": "name", "engine": "engine", "fresh": "last_received_at", "limiter": "standing__operator",
    "cp": "current_cp", "unknown": "standing__unknown_cp", "rate": "standing__input_rows_per_s",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class JobRow:
    """One line of the overview. ``sparkline`` is the CP of the limiting activity per minute of the last hour."""

    job: Job
    limiter: Limiter | None
    unknown_cp: float | None
    sparkline: tuple[float | None, ...]
    input_rows_per_s: float | None
    source_error: str


@dataclass(frozen=True, eq=False)
class Overview:
    """A page of rows, how many rows all pages have, and how many jobs the search found in each state."""

    rows: list[JobRow]
    row_count: int
    counts: dict[str, int]


def overview(
    actor: Actor, now: datetime, *, search: str = "", show: str = "", sort: str = ATTENTION, page: int = 0
) -> Overview:
    """The jobs this person may see whose name contains ``search``.

    Parameters
    ----------
    show
        Only jobs in this state (``error``, ``quiet``) or ``unlimited``; anything else: all.
    sort
        ``attention`` (what fails, is silent or has no limiter first) or a key of ``SORTS``, with ``-`` before it
        for descending; anything else counts as ``attention``.
    page
        From 0; one beyond the last is the last.

    Raises
    ------
    PermissionDenied
        If nobody is signed in.
    """
    found = with_states(visible_jobs(actor).filter(name__icontains=search), now)
    counts = found.aggregate(
        all=Count("pk"),
        quiet=Count("pk", filter=Q(state=freshness.QUIET)),
        error=Count("pk", filter=Q(state=freshness.ERROR)),
        unlimited=Count("pk", filter=Q(current_cp__isnull=True)),
    )
    if show in (freshness.ERROR, freshness.QUIET):
        found = found.filter(state=show)
    elif show == UNLIMITED:
        found = found.filter(current_cp__isnull=True)
    row_count = counts.get(show, counts["all"])
    first = min(max(page, 0), max(0, row_count - 1) // PAGE_ROWS) * PAGE_ROWS
    rows = found.select_related("standing").order_by(*_order(sort))[first : first + PAGE_ROWS]
    return Overview([_row(job) for job in rows], row_count, counts)


def with_states(jobs: QuerySet[Job], now: datetime) -> Any:
    """The jobs with ``source_error``, ``state`` and ``current_cp``, its limiter's CP if that still stands."""
    failing = Source.objects.filter(job=OuterRef("pk")).exclude(error="").values("error")[:1]
    jobs = jobs.annotate(source_error=Coalesce(Subquery(failing), Value(""), output_field=TextField()))
    current = Case(When(standing__computed_at__gte=now - STANDS_FOR, then=F("standing__cp")))
    return jobs.annotate(state=freshness.state_in_query(now), current_cp=current)


def _order(sort: str) -> list[Combinable | str]:
    field = SORTS.get(sort.removeprefix("-"))
    if field is None:
        states = (freshness.ERROR, freshness.QUIET, "unlimited", freshness.LIVE, freshness.FINISHED)
        rank = {state: place for place, state in enumerate(states)}
        unlimited = When(state=freshness.LIVE, current_cp__isnull=True, then=Value(rank["unlimited"]))
        return [Case(unlimited, *[When(state=s, then=Value(r)) for s, r in rank.items()]), "name"]
    by = F(field)
    return [by.desc(nulls_last=True) if sort.startswith("-") else by.asc(nulls_last=True), "name"]


def _row(job: Job) -> JobRow:
    stands = getattr(job, "standing", None)
    assert stands is None or isinstance(stands, Standing)
    error: str = job.source_error  # type: ignore[attr-defined]
    if stands is None or job.current_cp is None or stands.activity is None:  # type: ignore[attr-defined]
        rate = None if stands is None else stands.input_rows_per_s
        return JobRow(job, None, None, (), rate, error)
    limiter = Limiter(
        ActivityType(stands.activity), stands.operator, float(stands.cp or 0), float(stands.conventional or 0)
    )
    return JobRow(job, limiter, stands.unknown_cp, tuple(stands.sparkline), stands.input_rows_per_s, error)
