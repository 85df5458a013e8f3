"""How numbers, times and kinds are put into words: three significant digits, and never without a unit."""

from __future__ import annotations

from collections.abc import Iterable

from analytics.model.results import WindowStatus
from webapp.wording import activity as activity
from webapp.wording import age as age
from webapp.wording import count as count
from webapp.wording import duration as duration
from webapp.wording import number as number
from webapp.wording import percent as percent
from webapp.wording import rate as rate
from webapp.wording import seconds as seconds
from webapp.wording import series as series

MOST_CHANGES = 6
"""More operators than these nobody reads in one sentence."""

STATUS_WORDS = {
    WindowStatus.NO_CRITICAL_PATH: "no path through the window",
    WindowStatus.CLOCK_SKEW: "clocks disagree",
    WindowStatus.CYCLE: "messages form a cycle",
    WindowStatus.INCOMPLETE: "records are missing",
    WindowStatus.EMPTY: "no records",
}


def status(code: str) -> str:
    """Why a window has no result, in a few words."""
    return STATUS_WORDS.get(WindowStatus(code), code)


def changes(found: Iterable[tuple[str, int | None, int]]) -> list[str]:
    """``split 1 → 6`` for every operator; of many only the largest changes, and how many more there are."""
    every = list(found)
    shown = every
    if len(every) > MOST_CHANGES:
        shown = sorted(every, key=lambda item: -abs(item[2] - (item[1] or 0)))[: MOST_CHANGES - 1]
    told = [f"{name} {'?' if now is None else now} → {then}" for name, now, then in shown]
    more = len(every) - len(shown)
    return [*told, f"{count(more, 'more operator')}"] if more else told


POLICIES = {
    "ds2": "DS2",
    "flink-autoscaler": "Flink autoscaler",
    "dhalion": "Dhalion",
    "as it was": "As it was",
}


def policy(name: str) -> str:
    """The name of a scaling policy as people know it."""
    return POLICIES.get(name, name)
