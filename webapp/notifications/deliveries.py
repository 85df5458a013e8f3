"""The life of a delivery: planned once, claimed by a conditional update, sent or tried again later (ADR 14)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.db import connection, transaction

from webapp.notifications.carriers import wait_after
from webapp.notifications.models import Delivery, DeliveryState, Subscription
from webapp.notifications.schedule import Rhythm, moment, newest_due, next_due

LEASE = timedelta(minutes=2)
"""How long a worker may go without a sign of life; composing and sending one mail takes seconds at most."""

FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
GIVE_UP_AFTER = timedelta(days=3)
PLANNED_AT_ONCE = 1_000
PERIODS = {Rhythm.DAILY: timedelta(days=1), Rhythm.WEEKLY: timedelta(days=7)}


def plan_due(now: datetime) -> int:
    """Make the deliveries of up to ``PLANNED_AT_ONCE`` subscriptions that are due; returns of how many.

    The row and the next moment are written in one transaction, under the subscription's lock: a crash leaves
    both or neither, and the unique period keeps one from being made twice.
    """
    with transaction.atomic():
        due = (
            Subscription.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(active=True, next_due_at__lte=now, person__is_active=True)
            .order_by("next_due_at", "id")[:PLANNED_AT_ONCE]
        )
        rows = list(due)
        Delivery.objects.bulk_create([_planned(row, now) for row in rows], ignore_conflicts=True)
        Subscription.objects.bulk_update(rows, ["covered_until", "next_due_at"], batch_size=500)
    return len(rows)


def _planned(row: Subscription, now: datetime) -> Delivery:
    """The delivery of a subscription, which moves on to the next moment."""
    rhythm, zone = Rhythm(row.rhythm), ZoneInfo(row.zone)
    until = newest_due(rhythm, row.hour, row.weekday, zone, row.next_due_at, now)
    since = row.covered_until or until - PERIODS[rhythm]
    row.covered_until = until
    row.next_due_at = next_due(rhythm, row.hour, row.weekday, zone, until)
    return Delivery(subscription=row, period_from=min(since, until), period_to=until, not_before=until)


_CLAIM = """
    WITH open AS (
        SELECT id FROM notifications_delivery
        WHERE state IN ('due', 'sending') AND not_before <= %(now)s
            AND (state = 'due' OR lease_until < %(now)s)
        ORDER BY not_before, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
    )
    UPDATE notifications_delivery AS mine
    SET state = 'sending', holder = %(holder)s, lease_until = %(until)s, attempts = attempts + 1
    FROM open WHERE mine.id = open.id RETURNING mine.id
"""


def claim(holder: str, now: datetime, limit: int) -> list[Delivery]:
    """Take deliveries that are due, or whose worker died; nobody else gets them until the lease is over."""
    names: dict[str, Any] = {"holder": holder, "now": now, "until": now + LEASE, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, names)
        ids = [pk for (pk,) in cursor.fetchall()]
    found = Delivery.objects.filter(pk__in=ids, holder=holder).order_by("not_before", "id")
    return list(found.select_related("subscription__person", "subscription__group"))


def hold(delivery: Delivery, now: datetime, **changes: Any) -> bool:
    """Write something down and renew the lease; False if the delivery is somebody else's by now."""
    changes["lease_until"] = now + LEASE
    if not _mine(delivery).update(**changes):
        return False
    for name, value in changes.items():
        setattr(delivery, name, value)
    return True


def sent(delivery: Delivery, now: datetime, *, to_outbox: bool = False) -> None:
    """It was handed over."""
    _mine(delivery).update(
        state=DeliveryState.SENT, sent_at=now, to_outbox=to_outbox, lease_until=None, error=""
    )


def skipped(delivery: Delivery) -> None:
    """Nothing had happened, and the person wants to hear only if something has."""
    _mine(delivery).update(state=DeliveryState.SKIPPED, lease_until=None, error="")


def put_back(delivery: Delivery, error: str, now: datetime, not_before: datetime | None = None) -> None:
    """It failed in passing: it is tried again, after twice the wait of before or not before a given time."""
    if now - delivery.created_at > GIVE_UP_AFTER:
        give_up(delivery, f"given up after {GIVE_UP_AFTER.days} days: {error}")
        return
    wait = wait_after(delivery.attempts, FIRST_WAIT, LONGEST_WAIT)
    _mine(delivery).update(
        state=DeliveryState.DUE, not_before=not_before or now + wait, lease_until=None, error=_line(error)
    )


def put_back_untried(delivery: Delivery, error: str, not_before: datetime) -> None:
    """Nothing was tried with this one, since the server is away: it waits, and the try does not count."""
    _mine(delivery).update(
        state=DeliveryState.DUE, not_before=not_before, lease_until=None, error=_line(error),
        attempts=max(delivery.attempts - 1, 0),
    )  # fmt: skip


def out_of_turn(delivery: Delivery) -> bool:
    """Whether it was asked for at another moment than the subscription's, as the demo's first digest is."""
    row, until = delivery.subscription, delivery.period_to
    zone = ZoneInfo(row.zone)
    return moment(until.astimezone(zone).date(), row.hour, zone) != until


def give_up(delivery: Delivery, error: str) -> None:
    """It will never succeed."""
    _mine(delivery).update(state=DeliveryState.FAILED, lease_until=None, error=_line(error))


def _mine(delivery: Delivery) -> Any:
    return Delivery.objects.filter(pk=delivery.pk, holder=delivery.holder, state=DeliveryState.SENDING)


def _line(error: str) -> str:
    return error.replace("\0", "?")[:1000]
