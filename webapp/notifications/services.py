"""What people change about their notifications."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.core.exceptions import PermissionDenied, ValidationError
from django.core.signing import BadSignature, Signer
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import Entry, record
from webapp.jobs.models import JobGroup
from webapp.notifications.models import Subscription
from webapp.notifications.policies import groups_of
from webapp.notifications.schedule import Rhythm, next_due

SETTINGS = ("rhythm", "hour", "weekday", "zone", "only_if_something", "active")
_signer = Signer(salt="notifications.unsubscribe")


def subscribe(
    actor: User, group: JobGroup | None, *, rhythm: str = Rhythm.DAILY, hour: int = 7, weekday: int = 0,
    zone: str = "UTC", only_if_something: bool = True, first_due_at: datetime | None = None,
) -> Subscription:  # fmt: skip
    """Send the actor digests about a group, or with None about all jobs they may see.

    Raises
    ------
    PermissionDenied
        If the group is not theirs.
    ValidationError
        If a value makes no sense, or there is such a subscription already.
    """
    if group is not None and not groups_of(actor).filter(pk=group.pk).exists():
        raise PermissionDenied("you are not in this job group")
    _check(rhythm, hour, weekday, zone)
    due = first_due_at or next_due(Rhythm(rhythm), hour, weekday, ZoneInfo(zone), timezone.now())
    row = Subscription(
        person=actor, group=group, rhythm=rhythm, hour=hour, weekday=weekday, zone=zone,
        only_if_something=only_if_something, next_due_at=due,
    )  # fmt: skip
    try:
        with transaction.atomic():
            row.save()
            _note(actor, "subscribe", row)
    except IntegrityError:
        raise ValidationError(f"you get this {rhythm} digest already: change that one") from None
    return row


def change(actor: User, subscription_id: int, **changes: Any) -> Subscription:
    """Change some settings of the actor's own subscription.

    Raises
    ------
    Subscription.DoesNotExist
        If the actor has none such.
    ValidationError
        If a value makes no sense; nothing has changed then.
    """
    if unknown := changes.keys() - set(SETTINGS):
        raise ValidationError(f"there is no setting {', '.join(sorted(unknown))}")
    try:
        with transaction.atomic():
            row = Subscription.objects.select_for_update().get(pk=subscription_id, person=actor)
            for name, value in changes.items():
                setattr(row, name, value)
            _check(row.rhythm, row.hour, row.weekday, row.zone)
            row.next_due_at = next_due(
                Rhythm(row.rhythm), row.hour, row.weekday, ZoneInfo(row.zone), timezone.now()
            )
            row.save()
            _note(actor, "subscription.change", row)
    except IntegrityError:
        raise ValidationError("you get such a digest already: change that one") from None
    return row


def remove(actor: User, subscription_id: int) -> None:
    """End the actor's own subscription and forget what was sent for it.

    Raises
    ------
    Subscription.DoesNotExist
        If the actor has none such.
    """
    with transaction.atomic():
        row = Subscription.objects.select_for_update().get(pk=subscription_id, person=actor)
        _note(actor, "unsubscribe", row)
        row.delete()


def set_address(actor: User, address: str) -> None:
    """Where the actor's mails go.

    Raises
    ------
    ValidationError
        If it is no address.
    """
    tidied = address.strip()
    if len(tidied) > 254:
        raise ValidationError("this is longer than an address can be")
    validate_email(tidied)
    with transaction.atomic():
        before = actor.email
        User.objects.filter(pk=actor.pk).update(email=tidied)
        record(Entry(actor, "person.address", "user", actor.pk, detail={"before": before, "after": tidied}))
    actor.email = tidied


def unsubscribe_key(row: Subscription) -> str:
    """What stands in the mail's link: whoever has it can end this subscription, and do nothing else."""
    return _signer.sign(str(row.pk))


def subscription_of(key: str) -> Subscription | None:
    """The subscription that a key is for; None if the key is none, or it is gone."""
    try:
        pk = int(_signer.unsign(key))
    except (BadSignature, ValueError):
        return None
    return Subscription.objects.select_related("person", "group").filter(pk=pk).first()


def unsubscribe(row: Subscription) -> None:
    """Pause a subscription by its key; doing so again changes nothing."""
    with transaction.atomic():
        if Subscription.objects.filter(pk=row.pk, active=True).update(active=False):
            _note("link in a mail", "unsubscribe", row)


def _check(rhythm: str, hour: int, weekday: int, zone: str) -> None:
    wrong = {}
    if rhythm not in set(Rhythm):
        wrong["rhythm"] = f"expected {' or '.join(Rhythm)}"
    if not 0 <= hour <= 23:
        wrong["hour"] = "expected an hour from 0 to 23"
    if not 0 <= weekday <= 6:
        wrong["weekday"] = "expected 0 (Monday) to 6 (Sunday)"
    if zone not in available_timezones():
        wrong["zone"] = f"there is no time zone {zone[:60]}, expected one such as Europe/Berlin"
    if wrong:
        raise ValidationError(wrong)


def _note(who: User | str, action: str, row: Subscription) -> None:
    detail = {"person": row.person.get_username(), "group": row.group.name if row.group else None}
    detail |= {name: getattr(row, name) for name in SETTINGS}
    record(Entry(who, action, "subscription", row.pk, detail=detail))
