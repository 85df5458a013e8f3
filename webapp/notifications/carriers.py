"""How the mail server fares: after a failure nobody tries it for a while, twice as long each time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F

from webapp.notifications.models import Carrier

MAIL = "mail"
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=15), timedelta(minutes=15)
MOST_DOUBLINGS = 8
"""More of them than lie between the two."""


def wait_after(failures: int, first: timedelta = FIRST_WAIT, longest: timedelta = LONGEST_WAIT) -> timedelta:
    """How long to wait after so many failures in a row."""
    return min(first * (1 << min(max(failures - 1, 0), MOST_DOUBLINGS)), longest)


def may_try(name: str, now: datetime) -> bool:
    """Whether the wait after its last failure is over."""
    return not Carrier.objects.filter(pk=name, not_before__gt=now).exists()


def answered(name: str, now: datetime) -> None:
    """Note that it took something: whatever failed before is over."""
    values = {"failures": 0, "not_before": None, "error": "", "answered_at": now}
    Carrier.objects.update_or_create(pk=name, defaults=values)


def failed(name: str, error: str, now: datetime) -> datetime:
    """Note that it did not, and return when it may be tried again.

    Workers that fail within the same wait count as one failure.
    """
    Carrier.objects.get_or_create(pk=name)
    open_ = Carrier.objects.filter(pk=name).exclude(not_before__gt=now)
    open_.update(failures=F("failures") + 1, failed_at=now, not_before=now)
    row = Carrier.objects.get(pk=name)
    row.not_before = (row.failed_at or now) + wait_after(row.failures)
    Carrier.objects.filter(pk=name).update(not_before=row.not_before, error=error.replace("\0", "?")[:1000])
    return row.not_before
