"""Reading fields of JSON objects without trusting them."""

from __future__ import annotations

import math

from analytics.decode.batch import Oddities

JsonObject = dict[str, object]
Event = JsonObject
"""A line of an event log."""

NS_PER_MS = 1_000_000
LATEST_MS = 2**62 // NS_PER_MS
"""Later times do not fit the model's nanoseconds (year 2116)."""

MAX_COUNT = 2**53
"""Numbers above are no counts or durations anybody measured."""


def mapping(event: Event, field: str) -> Event:
    """The object in this field; an empty one if there is none."""
    value = event.get(field)
    return value if isinstance(value, dict) else {}


def items(event: Event, field: str) -> list[Event]:
    """The objects in this list; none if there is no list."""
    value = event.get(field)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(event: Event, field: str) -> str:
    """The string in this field, without NUL (PostgreSQL stores none); "" if there is none."""
    value = event.get(field)
    return value.replace("\0", "") if isinstance(value, str) else ""


def whole(event: Event, field: str) -> int | None:
    """The whole number in this field, or None."""
    value = event.get(field)
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_COUNT:
        return None
    return value


def number(event: Event, field: str) -> float | None:
    """The finite number in this field, also if it is written as a string; None for "NaN" and what is no number."""
    value = event.get(field)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        finite = float(value)
    except (ValueError, OverflowError):
        return None
    return finite if math.isfinite(finite) else None


def identifier(event: Event, field: str, oddities: Oddities, where: str) -> int | None:
    """A number that names something; None, reported, if it is missing or no number."""
    value = whole(event, field)
    if value is None:
        _report(event, field, oddities, where)
    return value


def time_ms(event: Event, field: str, oddities: Oddities, where: str) -> int | None:
    """A time in ms since 1970; None, reported, if it is missing, no number, or no time."""
    value = identifier(event, field, oddities, where)
    if value is not None and not 0 < value <= LATEST_MS:
        oddities.add("implausible_time", f"{where}: {field} is {value}")
        return None
    return value


def amount(event: Event, field: str, oddities: Oddities, where: str) -> int:
    """A duration or count; 0, reported, if it is missing, no number, or negative."""
    value = identifier(event, field, oddities, where)
    if value is not None and value < 0:
        oddities.add("negative_field", f"{where}: {field} is {value}")
    return max(value or 0, 0)


def _report(event: Event, field: str, oddities: Oddities, where: str) -> None:
    value = event.get(field)
    if value is None:
        oddities.add("missing_field", f"{where}: {field} is missing")
    else:
        oddities.add("wrong_type", f"{where}: {field} is {value!r:.60}")
