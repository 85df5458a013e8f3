"""Making, testing and removing channels, and the life of the messages to them."""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import JobGroup, Role
from webapp.notifications import outside
from webapp.notifications.carriers import wait_after
from webapp.notifications.models import Channel, ChannelKind, DeliveryState, Message
from webapp.notifications.sealing import seal
from webapp.telemetry.connections.addresses import AddressError, http_address

PAGERDUTY = "https://events.pagerduty.com/v2/enqueue"
LEASE = timedelta(minutes=1)
GIVE_UP_AFTER = timedelta(days=1)
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=15), timedelta(minutes=30)
PATIENCE = 3
"""What was tried more often in vain lets the channel's others go first: it may be why the receiver hangs."""
MOST_CHANNELS = 20
"""Of a group."""
MOST_ADDRESSES = 30


def administered_groups(actor: User) -> QuerySet[JobGroup]:
    """The groups whose channels this person may see and change: those they are an admin of; all for a superuser."""
    groups = JobGroup.objects.order_by("name")
    if actor.is_superuser:
        return groups
    return groups.filter(memberships__user=actor, memberships__role=Role.ADMIN)


def channels(actor: User) -> QuerySet[Channel]:
    """The channels this person may see and change."""
    found = Channel.objects.filter(group__in=administered_groups(actor)).select_related("group")
    return found.order_by("group__name", "name")


def create_channel(
    actor: User, group: JobGroup, *, kind: str, name: str, address: str = "", secret: str = ""
) -> Channel:
    """A new channel. Slack's address is its secret; PagerDuty needs a routing key and no address.
    A mail's address is one or more of them, or "" for all members of the group.

    Raises
    ------
    PermissionDenied
        Unless the actor is an admin of the group.
    ValidationError
        If a value makes no sense, or the address points inside the network and is not allowed.
    """
    if not administered_groups(actor).filter(pk=group.pk).exists():
        why = "only an admin of the group may make channels"
        record_refused(Entry(actor, "channel.create", "group", group.pk, reason=why))
        raise PermissionDenied(why)
    row = _checked(Channel(group=group, kind=kind, name=name.strip()), address, secret.strip())
    row.created_by_name = actor.get_username()
    if Channel.objects.filter(group=group).count() >= MOST_CHANNELS:
        raise ValidationError(f"a group can have {MOST_CHANNELS} channels")
    try:
        with transaction.atomic():
            row.save()
            record(_entry(actor, "channel.create", row))
    except IntegrityError:
        raise ValidationError({"name": "the group has a channel of this name already"}) from None
    return row


def remove_channel(actor: User, channel_id: int) -> None:
    """Remove a channel with its log.

    Raises
    ------
    Channel.DoesNotExist
        If there is none that the actor may change.
    """
    with transaction.atomic():
        row = channels(actor).select_for_update(of=("self",)).get(pk=channel_id)
        record(_entry(actor, "channel.remove", row))
        row.delete()


def test_channel(actor: User, channel_id: int) -> Message:
    """Send a test message at once, even if the channel waits; the log says what became of it.

    Raises
    ------
    Channel.DoesNotExist
        If there is none that the actor may change.
    """
    row = channels(actor).get(pk=channel_id)
    with transaction.atomic():
        record(_entry(actor, "channel.test", row))
        Channel.objects.filter(pk=row.pk).update(not_before=None)  # whoever repaired it wants to see that now
        return post(
            row, title=f"Test from Weir for {row.group.name}", severity="info", path="/notifications?tab=channels",
            text=f"{actor.get_username()} sent this to see whether {row.name} works. Nothing is wrong.",
        )  # fmt: skip


def post(
    channel: Channel,
    *,
    title: str,
    text: str,
    path: str,
    severity: str,
    key: str = "",
    action: str = "trigger",
) -> Message:
    """Have a message sent. Messages with the same ``key`` are about the same thing, looked after with
    ``acknowledge`` and over with ``resolve``."""
    content = {
        "title": title, "text": text, "url": f"{settings.WEIR_PUBLIC_URL}{path}", "severity": severity,
        "group": channel.group.name, "key": key, "action": action,
    }  # fmt: skip
    return Message.objects.create(channel=channel, content=content, not_before=timezone.now())


_NEXT = """
    SELECT DISTINCT ON (channel_id) channel_id, id FROM (
        SELECT m.id, m.channel_id, m.state, m.attempts, m.not_before,
            bool_or(m.state = 'sending' AND m.lease_until >= %(now)s) OVER (PARTITION BY m.channel_id) AS busy,
            -- what is over must not be told before it began; what has no key is about itself alone
            min(m.id) OVER (PARTITION BY m.channel_id, m.content->>'key',
                CASE WHEN m.content->>'key' = '' THEN m.id END) AS first_of_key
        FROM notifications_message AS m JOIN notifications_channel AS c ON c.id = m.channel_id
        WHERE m.state IN ('due', 'sending') AND (c.not_before IS NULL OR c.not_before <= %(now)s)
    ) AS open
    WHERE NOT busy AND id = first_of_key AND (state = 'sending' OR not_before <= %(now)s)
    ORDER BY channel_id, attempts > %(patience)s, id
"""
_LOCK = f"""
    SELECT c.id FROM notifications_channel AS c JOIN ({_NEXT}) AS next ON next.channel_id = c.id
    WHERE c.not_before IS NULL OR c.not_before <= %(now)s  -- looked at again once it is locked
    ORDER BY c.failures, next.id LIMIT %(limit)s FOR NO KEY UPDATE OF c SKIP LOCKED
"""  # noqa: S608
_TAKE = f"""
    UPDATE notifications_message AS mine
    SET state = 'sending', holder = %(holder)s, lease_until = %(until)s, attempts = attempts + 1
    FROM ({_NEXT}) AS next WHERE mine.id = next.id AND mine.channel_id = ANY(%(channels)s) RETURNING mine.id
"""  # noqa: S608


def claim(holder: str, now: datetime, limit: int) -> list[Message]:
    """Take one message each of up to so many channels: of those that are due, or whose worker died, the oldest.

    Channels of which nothing is under way and that are not waited for; those that answer come first. Their rows are
    locked before it is looked again what is under way, so that a channel never gets two messages at once.
    """
    names: dict[str, Any] = {
        "holder": holder, "now": now, "until": now + LEASE, "limit": limit, "patience": PATIENCE,
    }  # fmt: skip
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_LOCK, names)
        names["channels"] = [pk for (pk,) in cursor.fetchall()]
        cursor.execute(_TAKE, names)
        ids = [pk for (pk,) in cursor.fetchall()]
    return list(Message.objects.filter(pk__in=ids, holder=holder).select_related("channel").order_by("id"))


def keep(message: Message, now: datetime, answer: str) -> None:
    """Write down that a message goes nowhere and why; the log is where it can be read."""
    _mine(message).update(state=DeliveryState.SKIPPED, lease_until=None, sent_at=now, answer=answer, error="")


def settle(
    message: Message, now: datetime, *, error: str = "", retry: bool = False, away: bool = False, **seen: Any
) -> None:
    """Write down what became of a try: sent, tried again later, or given up. ``seen`` goes to the log.

    ``away``: the receiver takes nothing now. Then all that waits for the channel waits for its next try, so that
    the others of a burst do not find out the same one by one.
    """
    state, not_before = DeliveryState.SENT, message.not_before
    if error:
        again = retry and now - message.created_at < GIVE_UP_AFTER
        state = DeliveryState.DUE if again else DeliveryState.FAILED
        not_before = now if away else now + wait_after(message.attempts, FIRST_WAIT, LONGEST_WAIT)
    with transaction.atomic():
        # before the message's row, as whoever claims or removes does
        channel = Channel.objects.select_for_update(no_key=True).filter(pk=message.channel_id).first()
        mine = _mine(message).update(
            state=state, not_before=not_before, lease_until=None, error=error.replace("\0", "?")[:1000],
            sent_at=None if error else now, **seen,
        )  # fmt: skip
        if mine and channel is not None:
            _note(channel, now, error if away else "")


def _note(channel: Channel, now: datetime, away: str) -> None:
    """How the receiver fares, whose row is locked; ``away``: why it takes nothing now."""
    if not away:
        if channel.failures:
            Channel.objects.filter(pk=channel.pk).update(failures=0, not_before=None)
        return
    channel.failures += 1
    channel.not_before = now + wait_after(channel.failures, FIRST_WAIT, LONGEST_WAIT)
    channel.save(update_fields=["failures", "not_before"])
    if channel.failures > PATIENCE:  # what waited a day for it would wait for a try of its own for weeks
        late = channel.messages.filter(state=DeliveryState.DUE, created_at__lte=now - GIVE_UP_AFTER)
        late.update(state=DeliveryState.FAILED, error=f"it waited a day: {away}".replace("\0", "?")[:1000])


def _mine(message: Message) -> QuerySet[Message]:
    return Message.objects.filter(pk=message.pk, holder=message.holder, state=DeliveryState.SENDING)


def _checked(row: Channel, address: str, secret: str) -> Channel:
    wrong: dict[str, str] = {}
    if row.kind not in ChannelKind.values:
        wrong["kind"] = f"expected one of {', '.join(ChannelKind.values)}"
    if not 0 < len(row.name) <= 100 or "\0" in row.name:
        wrong["name"] = "a name of 1 to 100 characters is needed"
    if row.kind == ChannelKind.SMTP:
        return _checked_mail(row, address, wrong)
    given = address or (PAGERDUTY if row.kind == ChannelKind.PAGERDUTY else "")
    try:
        url = http_address(given)
        _reachable(url)
    except AddressError as error:
        wrong["address"] = str(error)
        url = ""
    if why := _why_no_secret(row.kind, secret):
        wrong["secret"] = why
    if wrong:
        raise ValidationError(wrong)
    if row.kind == ChannelKind.SLACK:
        row.secret, row.place = seal(url), f"{urlsplit(url).scheme}://{urlsplit(url).netloc}/…"
    else:
        row.secret, row.address, row.place = seal(secret), url, url[:300]
    return row


def _checked_mail(row: Channel, address: str, wrong: dict[str, str]) -> Channel:
    addresses = [part for part in re.split(r"[\s,;]+", address) if part]
    try:
        for one in addresses:
            validate_email(one)
    except ValidationError:
        wrong["address"] = f"{one[:100]!r} is no mail address"
    if len(addresses) > MOST_ADDRESSES or len(", ".join(addresses)) > 900:
        wrong["address"] = f"give up to {MOST_ADDRESSES} mail addresses"
    if wrong:
        raise ValidationError(wrong)
    row.address, row.secret = ", ".join(addresses), seal("")
    row.place = row.address[:300] or "all members of the group"
    return row


def recipients(channel: Channel) -> list[str]:
    """Where a mail to the channel goes: its addresses, or those of the people who are in its group now."""
    if channel.address:
        return channel.address.split(", ")
    people = User.objects.filter(memberships__group=channel.group_id, is_active=True).exclude(email="")
    return sorted(set(people.values_list("email", flat=True)))


def _why_no_secret(kind: str, secret: str) -> str:
    """What is wrong with a secret; "" if nothing is."""
    if kind == ChannelKind.PAGERDUTY and not 0 < len(secret) <= 100:
        return "give the routing key of a PagerDuty service"
    if kind == ChannelKind.WEBHOOK:
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except (binascii.Error, ValueError):
            return "expected whsec_ followed by base64"
        if not 24 <= len(key) <= 64:
            return "expected whsec_ followed by base64 of 24 to 64 bytes"
    return ""


def _reachable(url: str) -> None:
    """Refuse now what a worker would refuse when it sends; a name without an address may get one later."""
    parts = urlsplit(url)
    try:
        outside.resolve(parts.hostname or "", parts.port or 443)
    except outside.InsideError as error:
        raise AddressError(str(error)) from None
    except OSError:
        return


def _entry(actor: User, action: str, row: Channel) -> Entry:
    detail = {"group": row.group.name, "kind": row.kind, "name": row.name, "place": row.place}
    return Entry(actor, action, "channel", row.pk, detail=detail)
