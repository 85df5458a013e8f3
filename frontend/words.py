"""How numbers, times and kinds are put into words: three significant digits, and never without a unit."""

from __future__ import annotations

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


POLICIES = {
    "ds2": "DS2",
    "flink-autoscaler": "Flink autoscaler",
    "dhalion": "Dhalion",
    "as it was": "As it was",
}


def policy(name: str) -> str:
    """The name of a scaling policy as people know it."""
    return POLICIES.get(name, name)
