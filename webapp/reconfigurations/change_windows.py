"""When a job may be changed: hours of days of the week, in a time zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True, slots=True)
class ChangeWindow:
    """From ``start`` to ``end`` (past midnight if that is earlier) beginning on these days (0 is Monday)."""

    days: frozenset[int]
    start: time
    end: time
    zone: ZoneInfo

    def contains(self, at: datetime) -> bool:
        """Whether the window is open at this time."""
        local = at.astimezone(self.zone)
        clock = local.time().replace(tzinfo=None)
        if self.start < self.end:
            return local.weekday() in self.days and self.start <= clock < self.end
        yesterday = (local - timedelta(days=1)).weekday()
        return (local.weekday() in self.days and clock >= self.start) or (
            yesterday in self.days and clock < self.end
        )


def parse(stored: object) -> tuple[ChangeWindow, ...]:
    """Windows from ``[{"days": ["mon", …], "from": "09:00", "to": "17:00", "zone": "Europe/Berlin"}, …]``.

    Raises
    ------
    ValidationError
        If it is something else.
    """
    if not isinstance(stored, list):
        raise ValidationError("change windows are a list")
    try:
        return tuple(_window(item) for item in stored)
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ValidationError(f"a change window has days, from, to and zone: {error}") from error


def is_open(windows: Sequence[ChangeWindow], at: datetime) -> bool:
    """Whether changes may be applied now; without windows always."""
    return not windows or any(window.contains(at) for window in windows)


def _window(item: dict[str, Any]) -> ChangeWindow:
    if set(item) != {"days", "from", "to", "zone"}:
        raise ValueError(f"it has {', '.join(map(repr, item)) or 'nothing'}")
    days = frozenset(DAYS.index(day) for day in item["days"])
    if not days:
        raise ValueError("no day is named")
    start, end = (time.fromisoformat(item[name]) for name in ("from", "to"))
    if start.tzinfo or end.tzinfo:
        raise ValueError("its zone is named once")
    return ChangeWindow(days, start, end, ZoneInfo(item["zone"]))
