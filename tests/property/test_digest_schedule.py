"""When digests are due, in every zone and across daylight-saving changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webapp.notifications.schedule import Rhythm, moment, newest_due, next_due

ZONES = sorted(
    name for name in available_timezones() if "/" in name and not name.startswith(("Etc/", "SystemV/"))
)
HARD = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Santiago")
zones = st.sampled_from(HARD) | st.sampled_from(ZONES)
instants = st.datetimes(datetime(2000, 1, 1), datetime(2035, 12, 31)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001
hours = st.integers(0, 23)


def walls(day: date, zone: ZoneInfo) -> list[tuple[datetime, time]]:
    """Every quarter of an hour of the hours around a local day, as UTC and as the clock on the wall shows it."""
    first = datetime.combine(day, time(), tzinfo=UTC) - timedelta(hours=30)
    steps = (first + timedelta(minutes=15 * step) for step in range(4 * 84))
    return [(at, at.astimezone(zone).time()) for at in steps if at.astimezone(zone).date() == day]


@given(zones, instants, hours)
@example("Europe/Berlin", datetime(2026, 3, 29, 0, 30, tzinfo=UTC), 2)  # 02:00 does not exist
@example("Europe/Berlin", datetime(2026, 10, 25, 0, 30, tzinfo=UTC), 2)  # 02:00 comes twice
@example("Africa/Cairo", datetime(2026, 4, 23, 20, 0, tzinfo=UTC), 0)  # midnight does not exist
def test_the_moment_is_the_first_at_which_the_wall_clock_shows_the_hour_or_more(
    name: str, at: datetime, hour: int
) -> None:
    zone = ZoneInfo(name)
    day = at.astimezone(zone).date()
    shown = walls(day, zone)
    later = [when for when, wall in shown if wall >= time(hour)]
    if not shown or not later or len(shown) < 90:
        return  # a day that the zone skips, or is cut short by more than daylight saving (Apia, 2011)
    assert moment(day, hour, zone) == later[0]


@given(zones, instants, hours, st.sampled_from(Rhythm), st.integers(0, 6))
def test_the_next_digest_is_later_and_none_lies_between(
    name: str, after: datetime, hour: int, rhythm: Rhythm, weekday: int
) -> None:
    zone = ZoneInfo(name)
    found = next_due(rhythm, hour, weekday, zone, after)
    assert found > after
    assert found.tzinfo is UTC
    days = (after.astimezone(zone).date() + timedelta(days=step) for step in range(-2, 18))
    wanted = (day for day in days if rhythm is Rhythm.DAILY or day.weekday() == weekday)
    assert found == min(due for due in (moment(day, hour, zone) for day in wanted) if due > after)


@given(zones, instants, hours)
def test_a_year_of_daily_digests_has_one_for_every_local_day(name: str, after: datetime, hour: int) -> None:
    zone, seen = ZoneInfo(name), []
    at = after
    for _ in range(366):
        at = next_due(Rhythm.DAILY, hour, 0, zone, at)
        seen.append(at)
    gaps = {second - first for first, second in pairwise(seen)}
    assert all(timedelta(hours=20) < gap < timedelta(hours=28) for gap in gaps) or name in (
        "Pacific/Apia", "Pacific/Fakaofo", "Pacific/Enderbury", "Pacific/Kanton", "Pacific/Kiritimati",
        "Pacific/Kwajalein",
    )  # fmt: skip
    assert len({when.astimezone(zone).date() for when in seen}) == len(seen)


@given(zones, instants, hours, st.sampled_from(Rhythm), st.integers(0, 6), st.integers(0, 60 * 24 * 40))
def test_who_was_away_gets_the_last_one_only(
    name: str, at: datetime, hour: int, rhythm: Rhythm, weekday: int, away_min: int
) -> None:
    zone = ZoneInfo(name)
    due = next_due(rhythm, hour, weekday, zone, at)
    now = due + timedelta(minutes=away_min)
    found = newest_due(rhythm, hour, weekday, zone, due, now)
    assert due <= found <= now
    assert next_due(rhythm, hour, weekday, zone, found) > now


@pytest.mark.parametrize(
    ("after", "due"),
    [
        ("2026-03-28T12:00", "2026-03-29T05:00"),  # summer time begins: an hour less of night
        ("2026-03-27T12:00", "2026-03-28T06:00"),
        ("2026-10-24T12:00", "2026-10-25T06:00"),  # and ends
        ("2026-10-25T06:00", "2026-10-26T06:00"),
    ],
)
def test_seven_in_berlin_is_another_hour_in_utc_in_summer(after: str, due: str) -> None:
    at = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = next_due(Rhythm.DAILY, 7, 0, ZoneInfo("Europe/Berlin"), at)
    assert found == datetime.fromisoformat(due).replace(tzinfo=UTC)


def test_monday_mails_come_on_mondays() -> None:
    at = datetime(2026, 11, 21, 17, tzinfo=UTC)  # a Saturday
    found = next_due(Rhythm.WEEKLY, 7, 0, ZoneInfo("America/New_York"), at)
    assert found == datetime(2026, 11, 23, 12, tzinfo=UTC)
