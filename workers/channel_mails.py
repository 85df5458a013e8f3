"""Messages to channels as mails: to the addresses of the channel, or to all members of its group."""

from __future__ import annotations

import time
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import blake2b

from django.conf import settings
from django.utils import timezone

from webapp.notifications import channels
from webapp.notifications.models import Message
from workers.mail import MailServer, Post, RefusedError, RefusedForNowError, ServerAwayError

KEPT = "No mail server is set: it goes nowhere and stays in this log."


def send(message: Message) -> bool:
    """Hand a message over as one mail to all; whether the server took it."""
    to = channels.recipients(message.channel)
    if not to:
        why = "no member of the group has a mail address; each can set theirs on the page Notifications"
        channels.settle(message, timezone.now(), error=why)
        return False
    if not settings.WEIR_SMTP_URL:
        channels.keep(message, timezone.now(), KEPT)
        return False
    began = time.monotonic()
    try:
        with Post(MailServer.parse(settings.WEIR_SMTP_URL)) as post:
            refused = post.send(settings.WEIR_MAIL_FROM, to, mail_of(message, to))
    except (ServerAwayError, RefusedForNowError) as error:
        channels.settle(message, timezone.now(), error=str(error), retry=True)
        return False
    except RefusedError as error:
        channels.settle(message, timezone.now(), error=str(error))
        return False
    answer = f"taken for {len(to) - len(refused)} of {len(to)} addresses"
    said = "; ".join([answer, *refused])[:500]
    took_ms = round((time.monotonic() - began) * 1_000)
    channels.settle(message, timezone.now(), answer=said, took_ms=took_ms)
    return True


def mail_of(message: Message, to: list[str]) -> bytes:
    """The mail; every try sends the same. Those about the same thing are one thread to mail programs."""
    content, mail = message.content, EmailMessage(policy=SMTP)
    mail["Subject"] = " ".join(f"Weir: {content['title']}".split())[:200]
    mail["From"], mail["To"] = settings.WEIR_MAIL_FROM, ", ".join(to)
    mail["Date"] = format_datetime(message.created_at)
    mail["Message-ID"] = f"<message-{message.pk}@weir>"
    if content["key"]:
        mail["References"] = f"<{blake2b(content['key'].encode(), digest_size=12).hexdigest()}@weir>"
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{content['title']}\n\n{content['text']}\n\n{content['url']}\n", cte="quoted-printable")
    return mail.as_bytes()
