"""Periods in which nothing is scaled, as the autoscaler's documentation writes them (``excluded.periods``).

A period is a time of day (``9:30:30-10:50:20``, both ends in it), a cron expression in Quartz' format of six or
seven fields (``* * 9-11 ? * MON-FRI``), or both joined by ``&&``: then both must hold. Times are UTC, where the
original takes the time zone of its machine. Of Quartz' characters ``W`` and ``L-3`` are not known here.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

_SECOND_NS = 1_000_000_000
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2}))?"
_DAILY = re.compile(f"{_CLOCK}-{_CLOCK}")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    ("second", 0, 59), ("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12),
    ("day of week", 1, 7), ("year", 1970, 2199),
)  # fmt: skip
_DAY, _MONTH, _WEEKDAY = 3, 4, 5


@dataclass(frozen=True, slots=True)
class Daily:
    """From a second of the day to another, both included."""

    first: int
    last: int

    def holds(self, at: datetime) -> bool:
        """Whether the time is in it."""
        return self.first <= at.hour * 3600 + at.minute * 60 + at.second <= self.last


@dataclass(frozen=True, slots=True)
class Cron:
    """Allowed values by field; None allows all. ``last`` and ``nth`` are what the days also may be."""

    allowed: tuple[frozenset[int] | None, ...]
    last_day: bool
    last_weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]

    def holds(self, at: datetime) -> bool:
        """Whether the second is one of the expression's."""
        weekday = at.isoweekday() % 7 + 1
        values = (at.second, at.minute, at.hour, at.day, at.month, weekday, at.year)
        fits = [
            allowed is None or value in allowed for value, allowed in zip(values, self.allowed, strict=True)
        ]
        days = calendar.monthrange(at.year, at.month)[1]
        fits[_DAY] = fits[_DAY] or (self.last_day and at.day == days)
        fits[_WEEKDAY] = (
            fits[_WEEKDAY]
            or (weekday in self.last_weekdays and at.day + 7 > days)
            or (weekday, (at.day + 6) // 7) in self.nth_weekdays
        )
        return all(fits)


@cache
def period(text: str) -> tuple[Daily | Cron, ...]:
    """What must hold for a time to be in the period.

    Raises
    ------
    ValueError
        If it is none; the message says why in one line.
    """
    parts = [part.strip() for part in text.split("&&")]
    found = tuple(_daily(part) if ":" in part else _cron(part) for part in parts)
    if len(found) > 2 or len({type(part) for part in found}) < len(found):
        raise ValueError("&& joins one time of day and one cron expression")
    return found


def is_in(text: str, at_ns: int) -> bool:
    """Whether a time (ns since 1970) lies in a period."""
    at = datetime.fromtimestamp(at_ns // _SECOND_NS, UTC)
    return all(part.holds(at) for part in period(text))


def _daily(text: str) -> Daily:
    match = _DAILY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time of day such as 9:30-10:50:20")
    numbers = [int(part or 0) for part in match.groups()]
    if any(number > 59 for number in numbers) or max(numbers[0], numbers[3]) > 23:
        raise ValueError(f"{text!r} has an hour or minute that no day has")
    first, last = (hour * 3600 + minute * 60 + second for hour, minute, second in (numbers[:3], numbers[3:]))
    if first >= last:
        raise ValueError(f"{text!r} ends before it begins: a night is two periods")
    return Daily(first, last)


def _cron(text: str) -> Cron:
    fields = text.upper().split()
    if not 6 <= len(fields) <= 7:
        raise ValueError(f"{text!r} is neither a time of day nor a cron expression of 6 or 7 fields")
    if (fields[_DAY] == "?") == (fields[_WEEKDAY] == "?"):
        raise ValueError(f"{text!r}: either the day of month or the day of week must be ?")
    fields[_MONTH] = _numbered(fields[_MONTH], _MONTHS)
    fields[_WEEKDAY] = _numbered(fields[_WEEKDAY], _DAYS)
    days, weekdays = _special(fields[_DAY], r"L"), _special(fields[_WEEKDAY], r"[1-7]L|[1-7]#[1-5]")
    fields[_DAY], fields[_WEEKDAY] = days[1], weekdays[1]
    allowed = [_values(field, place) for place, field in enumerate(fields)]
    return Cron(
        (*allowed, *([None] if len(fields) == 6 else [])),
        bool(days[0]),
        frozenset(int(part[0]) for part in weekdays[0] if part.endswith("L")),
        frozenset((int(part[0]), int(part[2])) for part in weekdays[0] if "#" in part),
    )


def _numbered(field: str, names: Sequence[str]) -> str:
    for number, name in enumerate(names, 1):
        field = field.replace(name, str(number))
    return field


def _special(field: str, pattern: str) -> tuple[list[str], str]:
    """The parts of a list that name a day relative to the month, and the rest."""
    parts = field.split(",")
    found = [part for part in parts if re.fullmatch(pattern, part)]
    return found, ",".join(part for part in parts if part not in found)


def _values(field: str, place: int) -> frozenset[int] | None:
    """The numbers of ``*``, ``5``, ``MON-FRI``, ``0/15`` and lists of them; None for all of them."""
    if field in ("*", "?") and (field == "*" or place in (_DAY, _WEEKDAY)):
        return None
    return frozenset(number for part in field.split(",") if field for number in _numbers(part, place))


def _numbers(part: str, place: int) -> list[int]:
    name, least, most = _FIELDS[place]
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    begin = least if span == "*" else _number(first, place)
    end = _number(last, place) if dash else most if slash or span == "*" else begin
    width = _number_of(step) if slash else 1
    if begin is None or end is None or not width:
        raise ValueError(f"{part!r} is no {name} of a cron expression")
    if end < begin:  # over the end: FRI-MON
        end += most - least + 1
    return [(number - least) % (most - least + 1) + least for number in range(begin, end + 1, width)]


def _number(text: str, place: int) -> int | None:
    _, least, most = _FIELDS[place]
    number = _number_of(text)
    return number if number is not None and least <= number <= most else None


def _number_of(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,4}", text, re.ASCII) else None
