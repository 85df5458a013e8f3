"""From a delivery to the bytes of its mail."""

from __future__ import annotations

from datetime import UTC, datetime

from django.conf import settings

from webapp.notifications.content import Composer
from webapp.notifications.digest import Digest
from webapp.notifications.models import Delivery, Subscription
from webapp.notifications.render import Envelope, Mail, mail_of
from webapp.notifications.services import unsubscribe_key

SETTINGS_PATH = "/notifications"
UNSUBSCRIBE_PATH = "/unsubscribe/"


def envelope_of(row: Subscription, until: datetime) -> Envelope:
    """The envelope of the digest up to ``until``: the same however often it is tried."""
    base = settings.WEIR_PUBLIC_URL
    return Envelope(
        number=f"digest-{row.pk}-{int(until.timestamp())}",
        sender=settings.WEIR_MAIL_FROM,
        to=address_of(row),
        at=until.astimezone(UTC),
        base_url=base,
        unsubscribe_url=f"{base}{UNSUBSCRIBE_PATH}{unsubscribe_key(row)}",
        settings_url=f"{base}{SETTINGS_PATH}",
    )


def address_of(row: Subscription) -> str:
    """Where its mails go; for the outbox a person without an address gets one that leads nowhere."""
    if row.person.email or settings.WEIR_SMTP_URL:
        return str(row.person.email)
    return f"{row.person.pk}@localhost"


def compose(row: Subscription, since: datetime, until: datetime, composer: Composer) -> tuple[Digest, Mail]:
    """The digest and the parts of its mail."""
    digest = composer.digest(row, since, until)
    return digest, mail_of(digest, envelope_of(row, until))


def compose_delivery(delivery: Delivery, composer: Composer) -> tuple[Digest, Mail]:
    """Those of a delivery."""
    return compose(delivery.subscription, delivery.period_from, delivery.period_to, composer)
