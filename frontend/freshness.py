"""How fresh a job's data are, and what the stamp says about a page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from dash import set_props
from django.utils import timezone

from frontend import words
from webapp.jobs import freshness as rule
from webapp.jobs.models import Job


@dataclass(frozen=True, slots=True)
class State:
    """``code`` is live, finished, quiet or error; ``words`` says it with the age of the newest data."""

    code: str
    words: str


def now_ns() -> int:
    """Now, in ns since 1970."""
    return time.time_ns()


def of(job: Job, error: str = "", now: datetime | None = None) -> State:
    """The state of a job, with the age of its newest data."""
    now = now or timezone.now()
    code = rule.state_of(job, error, now)
    old = words.age(job.last_received_at, now)
    if job.last_received_at is None:
        return State(code, "source fails" if code == rule.ERROR else "nothing yet")
    said = {
        rule.ERROR: f"source fails, {old}",
        rule.FINISHED: f"finished, {old} ago",
        rule.QUIET: f"silent for {old}",
        rule.LIVE: f"{old} ago",
    }
    return State(code, said[code])


def stamp(quiet: str = "") -> None:
    """From a callback: tell the frame that the page was read now, and which source is silent."""
    set_props("freshness", {"data": {"at_ms": time.time_ns() // 1_000_000, "quiet": quiet}})
