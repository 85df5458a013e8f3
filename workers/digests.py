"""Sending the digests that are due: claim some, compose each once, hand it over, write that down."""

from __future__ import annotations

import logging
import os
import socket
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta

import zstandard
from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import validate_email
from django.utils import timezone

from webapp.notifications import carriers, deliveries
from webapp.notifications.carriers import MAIL
from webapp.notifications.composing import compose_delivery, envelope_of
from webapp.notifications.content import Composer
from webapp.notifications.models import Delivery
from webapp.notifications.render import message_of
from workers.mail import MailServer, Post, RefusedError, RefusedForNowError, ServerAwayError

logger = logging.getLogger(__name__)

LOOK_AGAIN_AFTER = timedelta(minutes=1)
CLAIMED_AT_ONCE = 25
"""Few, so that a worker that dies holds up few."""


@dataclass
class Tally:
    """What became of the deliveries of a round."""

    sent: int = 0
    skipped: int = 0
    failed: int = 0


def send_due(seconds: float) -> Tally:
    """Send what is due until nothing is left, the mail server fails, or the time is over."""
    tally, composer, end = Tally(), Composer(), time.monotonic() + seconds
    with ExitStack() as stack:
        post = None
        if settings.WEIR_SMTP_URL:
            if not carriers.may_try(MAIL, timezone.now()):
                return tally
            post = stack.enter_context(Post(MailServer.parse(settings.WEIR_SMTP_URL)))
        while time.monotonic() < end:
            mine = deliveries.claim(_holder(), timezone.now(), CLAIMED_AT_ONCE)
            if not mine or not _send_all(mine, post, composer, tally):
                break
    return tally


def _holder() -> str:
    """A name for each claim, so that a worker never takes another's for its own."""
    return f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"


def _send_all(mine: list[Delivery], post: Post | None, composer: Composer, tally: Tally) -> bool:
    """Whether the server still answers; if it does not, those not tried yet go back."""
    answered = False
    for place, delivery in enumerate(mine):
        try:
            answered = _send(delivery, post, composer, tally) or answered
        except ServerAwayError as error:
            now = timezone.now()
            until = carriers.failed(MAIL, str(error), now)
            logger.warning("notify.mail_server_away %s", error)
            deliveries.put_back(delivery, str(error), now, until)
            for other in mine[place + 1 :]:
                deliveries.put_back_untried(other, str(error), until)
            return False
        except Exception as error:  # one mail that cannot be made must not hold up the others
            logger.exception("notify.not_composed delivery=%d", delivery.pk)
            deliveries.put_back(delivery, f"it could not be composed: {error!r}", timezone.now())
            tally.failed += 1
    if answered:
        carriers.answered(MAIL, timezone.now())
    return True


def _send(delivery: Delivery, post: Post | None, composer: Composer, tally: Tally) -> bool:
    """Compose it if no worker has yet, and hand it over. Whether the server took it."""
    message = _message(delivery, composer, tally)
    if message is None:
        return False
    if post is None:
        deliveries.sent(delivery, timezone.now(), to_outbox=True)
        tally.sent += 1
        return False
    try:
        post.send(settings.WEIR_MAIL_FROM, delivery.to_address, message)
    except RefusedForNowError as error:
        deliveries.put_back(delivery, str(error), timezone.now())
    except RefusedError as error:
        deliveries.give_up(delivery, str(error))
    else:
        deliveries.sent(delivery, timezone.now())
        tally.sent += 1
        return True
    tally.failed += 1
    return False


def _message(delivery: Delivery, composer: Composer, tally: Tally) -> bytes | None:
    """Its bytes: those stored by whoever tried before, else made now and stored before they leave."""
    now = timezone.now()
    if delivery.message is not None:
        return zstandard.decompress(bytes(delivery.message)) if deliveries.hold(delivery, now) else None
    try:
        digest, mail = compose_delivery(delivery, composer)
        envelope = envelope_of(delivery.subscription, delivery.period_to)
        validate_email(envelope.to)
    except PermissionDenied:
        deliveries.skipped(delivery)
        tally.skipped += 1
        return None
    except ValidationError:
        deliveries.give_up(
            delivery, "the person has no mail address; it can be set on the page Notifications"
        )
        tally.failed += 1
        return None
    if not digest.sections and delivery.subscription.only_if_something:
        if deliveries.out_of_turn(delivery):  # it was asked for: it waits until there is something to tell
            deliveries.put_back(delivery, "", now, now + LOOK_AGAIN_AFTER)
            return None
        deliveries.skipped(delivery)
        tally.skipped += 1
        return None
    message = message_of(mail, envelope)
    kept = {"message": zstandard.compress(message), "subject": mail.subject, "to_address": envelope.to}
    return message if deliveries.hold(delivery, now, **kept) else None
