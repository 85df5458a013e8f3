"""Waiting between attempts to reach something over the network: twice as long after each failure.

The count of failures and the end of the wait are in ``Source.state``, which sources of these kinds need for nothing
else.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from webapp.telemetry.models import Source

FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=5), timedelta(minutes=5)
MOST_DOUBLINGS = 10
"""More of them than lie between the two, and few enough for a length of time."""


def answered(source: Source) -> None:
    """Note that a poll was answered: whatever failed before is over."""
    source.polled_at = source.data_at = timezone.now()
    source.error, source.state = "", None
    source.save(update_fields=["polled_at", "data_at", "error", "state", "finished"])


def failed(source: Source, error: str) -> None:
    """Keep why a poll failed, and wait twice as long as the time before until the next."""
    count = failures(source) + 1
    wait = min(FIRST_RETRY * 2 ** min(count - 1, MOST_DOUBLINGS), LONGEST_RETRY)
    now = timezone.now()
    source.polled_at, source.error = now, error.replace("\0", "?")[:1000]
    source.state = {"failures": count, "not_before": (now + wait).isoformat()}
    source.save(update_fields=["polled_at", "error", "state"])


def failures(source: Source) -> int:
    """How many polls failed since the last that was answered."""
    return int((source.state or {}).get("failures", 0))


def not_before(source: Source) -> datetime | None:
    """When the wait after a failure ends; None: there is none."""
    until = (source.state or {}).get("not_before")
    return None if until is None else datetime.fromisoformat(until)


def may_poll(source: Source) -> bool:
    """Whether the wait after a failure is over."""
    until = not_before(source)
    return until is None or timezone.now() >= until
