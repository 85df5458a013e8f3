"""When the next digest is due: an hour of the day in a person's zone, across daylight-saving changes.

An hour that the clocks skip is taken as the moment they skip it to; of one that comes twice the first counts. So
every local day (for weekly digests: every such weekday) has exactly one moment.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo


class Rhythm(StrEnum):
    """How often a digest comes."""

    DAILY = "daily"
    WEEKLY = "weekly"


def moment(day: date, hour: int, zone: ZoneInfo) -> datetime:
    """The hour of a local day, in UTC."""
    return datetime.combine(day, time(hour), tzinfo=zone).astimezone(UTC)


def next_due(rhythm: Rhythm, hour: int, weekday: int, zone: ZoneInfo, after: datetime) -> datetime:
    """The first moment later than ``after``.

    Parameters
    ----------
    hour
        0 to 23 on the wall clock.
    weekday
        0 is Monday; daily digests do not look at it.
    after
        An aware time.

    Returns
    -------
    datetime
        In UTC.
    """
    day = after.astimezone(zone).date() - timedelta(days=1)
    while True:
        if rhythm is Rhythm.DAILY or day.weekday() == weekday:
            found = moment(day, hour, zone)
            if found > after:
                return found
        day += timedelta(days=1)


def newest_due(
    rhythm: Rhythm, hour: int, weekday: int, zone: ZoneInfo, due: datetime, now: datetime
) -> datetime:
    """The last moment from ``due`` to ``now``: who was away for days gets one digest, not one a day."""
    step = timedelta(days=2 if rhythm is Rhythm.DAILY else 14)
    found = due
    candidate = next_due(rhythm, hour, weekday, zone, max(due, now - step))
    while candidate <= now:
        found = candidate
        candidate = next_due(rhythm, hour, weekday, zone, found)
    return found
