"""When a job may be changed."""

from datetime import UTC, datetime

import pytest
from django.core.exceptions import ValidationError

from webapp.reconfigurations.change_windows import is_open, parse

OFFICE = {
    "days": ["mon", "tue", "wed", "thu", "fri"],
    "from": "09:00",
    "to": "17:00",
    "zone": "Europe/Berlin",
}
NIGHT = {"days": ["fri"], "from": "22:00", "to": "02:00", "zone": "UTC"}


@pytest.mark.parametrize(
    ("at", "opened"),
    [
        (datetime(2026, 1, 5, 8, 0, tzinfo=UTC), True),  # Monday, 09:00 in Berlin
        (datetime(2026, 1, 5, 7, 59, tzinfo=UTC), False),
        (datetime(2026, 7, 6, 7, 0, tzinfo=UTC), True),  # in summer an hour earlier
        (datetime(2026, 1, 5, 16, 0, tzinfo=UTC), False),  # 17:00 in Berlin: over
        (datetime(2026, 1, 4, 12, 0, tzinfo=UTC), False),  # Sunday
    ],
)
def test_hours_are_those_of_the_windows_zone(at: datetime, opened: bool) -> None:
    assert is_open(parse([OFFICE]), at) is opened


@pytest.mark.parametrize(
    ("at", "opened"),
    [
        (datetime(2026, 1, 2, 23, 0, tzinfo=UTC), True),
        (datetime(2026, 1, 3, 1, 59, tzinfo=UTC), True),  # Saturday, but it began on Friday
        (datetime(2026, 1, 3, 2, 0, tzinfo=UTC), False),
        (datetime(2026, 1, 3, 23, 0, tzinfo=UTC), False),
        (datetime(2026, 1, 2, 1, 0, tzinfo=UTC), False),  # Friday morning belongs to Thursday night
    ],
)
def test_a_night_belongs_to_the_day_it_begins_on(at: datetime, opened: bool) -> None:
    assert is_open(parse([OFFICE, NIGHT])[1:], at) is opened


def test_without_windows_it_is_always_open() -> None:
    assert is_open(parse([]), datetime(2026, 1, 4, tzinfo=UTC))


@pytest.mark.parametrize("wrong", [{}, [1], [{}], [OFFICE | {"zone": "Mars/Base"}], [OFFICE | {"from": "late"}],
                                   [OFFICE | {"days": []}]])  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        parse(wrong)
