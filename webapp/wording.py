"""How numbers, times and kinds are put into words, on pages and in mails: three significant digits, and never
without a unit."""

from __future__ import annotations

from datetime import datetime

from analytics.model.activity import ActivityType


def percent(share: float) -> str:
    """A share of 1 in percent: 62 %, 0.31 %."""
    value = share * 100
    if value == 0:
        return "0 %"
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %"


def number(value: float) -> str:
    """Three significant digits, with k and M: 1.24 k."""
    for limit, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit * 0.9995:
            return f"{value / limit:.3g}{unit}"
    return f"{value:.3g}"


def count(value: int, noun: str) -> str:
    """``1 window``, ``3 windows``."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def duration(length_ns: float) -> str:
    """A length of time with a fitting unit: 850 µs, 1.2 s, 3 min 20 s."""
    seconds = length_ns / 1e9
    if seconds >= 86_400:
        return f"{seconds / 86_400:.1f} d"
    if seconds >= 3600:
        return f"{int(seconds // 3600)} h {int(seconds % 3600 // 60)} min"
    if seconds >= 60:
        return f"{int(seconds // 60)} min {int(seconds % 60)} s"
    for limit, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= limit:
            return f"{seconds / limit:.3g} {unit}"
    return f"{length_ns:.0f} ns"


def age(then: datetime | None, now: datetime) -> str:
    """How long ago, in one unit: 3 s, 5 min, 2 h, 4 d."""
    if then is None:
        return "never"
    seconds = max(0, int((now - then).total_seconds()))
    for limit, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= limit:
            return f"{seconds // limit} {unit}"
    return f"{seconds} s"


def activity(kind: int) -> str:
    """The words for an activity code: data message."""
    return ActivityType(kind).label.replace("_", " ")


def series(items: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} and {items[-1]}"


def seconds(length_s: float) -> str:
    """A length of time in seconds, with a fitting unit and without empty parts: 0 s, 1.5 s, 2 min, 1 h 5 min."""
    if not length_s:
        return "0 s"
    return duration(length_s * 1e9).removesuffix(" 0 s").removesuffix(" 0 min")


def rate(per_s: float) -> str:
    """Records per second: 199/s, 1,240/s, 1.24 M/s."""
    return f"{number(per_s)}/s" if abs(per_s) >= 1e5 else f"{float(f'{per_s:.3g}'):,g}/s"
