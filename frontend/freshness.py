"""How fresh a job's data are, and what the stamp says about a page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from dash import set_props
from django.utils import timezone

from frontend import words
from webapp.jobs.models import Job

QUIET_INTERVALS = 3
SHORTEST_INTERVAL = timedelta(seconds=10)
"""A source is read every few seconds at best, and a micro-batch job reports once a batch."""


@dataclass(frozen=True, slots=True)
class State:
    """``code`` is live, finished, quiet or error; ``words`` says it with the age of the newest data."""

    code: str
    words: str


def now_ns() -> int:
    """Now, in ns since 1970."""
    return time.time_ns()


def of(job: Job, error: str = "", now: datetime | None = None) -> State:
    """The state of a job: an error of its source first, then whether it is done, quiet or live."""
    now = now or timezone.now()
    old = words.age(job.last_received_at, now)
    if error:
        return State("error", f"source fails, {old}" if job.last_received_at else "source fails")
    if job.finished:
        return State("finished", f"finished, {old} ago")
    if job.last_received_at is None:
        return State("quiet", "nothing yet")
    interval = max(timedelta(microseconds=job.window_ns // 1000), SHORTEST_INTERVAL)
    if now - job.last_received_at > QUIET_INTERVALS * interval:
        return State("quiet", f"silent for {old}")
    return State("live", f"{old} ago")


def stamp(quiet: str = "") -> None:
    """From a callback: tell the frame that the page was read now, and which source is silent."""
    set_props("freshness", {"data": {"at_ms": time.time_ns() // 1_000_000, "quiet": quiet}})
