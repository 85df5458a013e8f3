"""Which jobs stopped reporting in a period."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet

from webapp.analysis.overview import with_states
from webapp.jobs import freshness
from webapp.jobs.models import Job
from webapp.notifications.digest import Item, Tone
from webapp.wording import seconds


@dataclass(frozen=True, slots=True)
class Silent:
    """Those that fell silent or cannot be read, and how many others have been silent since before the period."""

    items: list[Item]
    longer: int


def silent(jobs: QuerySet[Job], since: datetime, until: datetime, zone: ZoneInfo) -> Silent:
    """Jobs without data now, those that fell silent last first."""
    found = with_states(jobs, until).filter(state__in=(freshness.QUIET, freshness.ERROR))
    late = Q(state=freshness.ERROR) | Q(last_received_at__gt=since)
    rows = found.filter(late).order_by("-last_received_at", "name")
    return Silent([_item(row, until, zone) for row in rows], found.exclude(late).count())


def _item(job: Job, until: datetime, zone: ZoneInfo) -> Item:
    lines = []
    if job.last_received_at is None:
        lines.append("It has never reported.")
    else:
        ago = seconds(max(0, int((until - job.last_received_at).total_seconds())))
        lines.append(f"Last data {job.last_received_at.astimezone(zone):%a %d %b %H:%M}, {ago} before.")
    error: str = job.source_error  # type: ignore[attr-defined]
    if error:
        lines.append(f"Its source cannot be read: {error.splitlines()[0][:300]}.")
    return Item(job.name, f"/jobs/{job.pk}", tuple(lines), Tone.WARN)
