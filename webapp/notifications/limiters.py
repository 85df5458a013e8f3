"""Which jobs' limiters moved over a period, from what limited each at the beginning of every hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import QuerySet

from webapp.analysis.models import Standing
from webapp.analysis.overview import STANDS_FOR
from webapp.jobs.models import Job
from webapp.notifications.digest import Bars, Item, Tone
from webapp.notifications.models import HourlyLimiter
from webapp.wording import activity, percent

MOVED_CP = 0.2
"""The same limiter counts as moved if its CP changed by this much."""

FEWEST_HOURS = 3
"""Fewer make no chart over hours: then it shows the minutes of the last one."""

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """What limited a job at some time."""

    at: datetime
    activity: int
    operator: str
    cp: float

    @property
    def words(self) -> str:
        """``processing in count``."""
        return f"{activity(self.activity)} in {self.operator}" if self.operator else activity(self.activity)


def note_hour(now: datetime) -> int:
    """Keep what limits each job now, once an hour a job; returns of how many it was kept."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO notifications_hourlylimiter (job_id, hour, activity, operator, cp) "
            "SELECT job_id, %s, activity, operator, cp FROM analysis_standing "
            "WHERE activity IS NOT NULL AND cp IS NOT NULL AND computed_at >= %s "
            "ON CONFLICT (job_id, hour) DO NOTHING",
            [hour, now - STANDS_FOR],
        )
        return int(cursor.rowcount)


def moved(jobs: QuerySet[Job], since: datetime, until: datetime, zone: ZoneInfo) -> list[Item]:
    """The jobs whose limiter is another one than at the beginning of the period, highest CP first."""
    names = dict(jobs.values_list("pk", "name"))
    hours = _by_job(
        HourlyLimiter.objects.filter(job__in=jobs, hour__gt=since - HOUR, hour__lte=until).order_by("hour")
    )
    current = {
        row.job_id: row
        for row in Standing.objects.filter(
            job__in=jobs, computed_at__gte=until - STANDS_FOR, activity__isnull=False, cp__isnull=False
        )
    }
    found = []
    for job_id in names.keys() & (hours.keys() | current.keys()):
        seen, stands = hours.get(job_id, []), current.get(job_id)
        if stands is not None and stands.computed_at is not None:
            now = Seen(stands.computed_at, stands.activity or 0, stands.operator, stands.cp or 0.0)
            seen = [*seen, now]
        if _has_moved(seen, since):
            sparkline = [] if stands is None else stands.sparkline
            found.append((seen[-1].cp, job_id, _item(job_id, names[job_id], seen, sparkline, since, zone)))
    found.sort(key=lambda entry: (-entry[0], names[entry[1]]))
    return [item for _, _, item in found]


def _by_job(rows: QuerySet[HourlyLimiter]) -> dict[int, list[Seen]]:
    found: dict[int, list[Seen]] = {}
    for row in rows:
        found.setdefault(row.job_id, []).append(Seen(row.hour, row.activity, row.operator, row.cp))
    return found


def _has_moved(seen: Sequence[Seen], since: datetime) -> bool:
    first, last = seen[0], seen[-1]
    if first.at > since + HOUR:  # nothing limited it when the period began: it is new, or speaks again
        return True
    return (first.activity, first.operator) != (last.activity, last.operator) or abs(
        last.cp - first.cp
    ) >= MOVED_CP


def _item(
    job_id: int, name: str, seen: list[Seen], sparkline: list[float | None], since: datetime, zone: ZoneInfo
) -> Item:
    first, last = seen[0], seen[-1]
    now = f"{last.words}, {percent(last.cp)} of critical paths"
    if first.at > since + HOUR:
        line = f"Limited by {now}. Nothing was known of it when this period began."
    elif (first.activity, first.operator) == (last.activity, last.operator):
        line = f"Still limited by {now}; it was {percent(first.cp)}."
    else:
        line = f"Limited by {now}. Before: {first.words}, {percent(first.cp)}."
    return Item(name, f"/jobs/{job_id}", (line,), Tone.PLAIN, chart=_chart(seen, sparkline, zone))


def _chart(seen: list[Seen], sparkline: list[float | None], zone: ZoneInfo) -> Bars | None:
    last = seen[-1]
    if len(seen) < FEWEST_HOURS:
        bars = tuple(None if cp is None else (cp, last.activity) for cp in sparkline)
        if not any(bars):
            return None
        says = f"CP of {activity(last.activity)} a minute, over the last hour"
        return Bars(bars, "1 h ago", "now", says)
    hours = {at.at.replace(minute=0, second=0, microsecond=0): (at.cp, at.activity) for at in seen}
    start, end = min(hours), max(hours)
    steps = int((end - start) / HOUR) + 1
    bars = tuple(hours.get(start + step * HOUR) for step in range(steps))
    words = [f"{at.astimezone(zone):%a %H:%M}" for at in (start, end)]
    return Bars(
        bars, words[0], words[1], f"CP of what limited it at each full hour, {words[0]} to {words[1]}"
    )
