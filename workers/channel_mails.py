"""Messages to channels as mails: to the addresses of the channel, or to all members of its group."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from functools import partial
from hashlib import blake2b

from django.conf import settings

from webapp.notifications import channels
from webapp.notifications.models import Message
from workers.mail import MailServer, Post, RefusedError, RefusedForNowError, ServerAwayError
from workers.posting import Outcome

PATIENCE = 3
"""A mail may take so many times longer than another message: some servers let others wait on purpose."""
KEPT = "No mail server is set: it goes nowhere and stays in this log."


def attempt(message: Message, within_s: float) -> Callable[[], Outcome]:
    """What hands a message over as one mail to all; it reads the database no more."""
    to = channels.recipients(message.channel)
    if not to:
        why = "no member of the group has a mail address; each can set theirs on the page Notifications"
        return partial(Outcome, why)
    if not settings.WEIR_SMTP_URL:
        return partial(Outcome, kept=True, seen={"answer": KEPT})
    return partial(
        _send, MailServer.parse(settings.WEIR_SMTP_URL), to, mail_of(message, to), PATIENCE * within_s
    )


def _send(server: MailServer, to: list[str], mail: bytes, within_s: float) -> Outcome:
    began_s = time.monotonic()
    try:
        with Post(server, within_s) as post:
            refused = post.send(settings.WEIR_MAIL_FROM, to, mail)
    except ServerAwayError as error:
        return Outcome(str(error), retry=True, away=True)
    except RefusedForNowError as error:
        return Outcome(str(error), retry=True)
    except RefusedError as error:
        return Outcome(str(error))
    answer = f"taken for {len(to) - len(refused)} of {len(to)} addresses"
    said = "; ".join([answer, *refused])[:500]
    return Outcome(seen={"answer": said, "took_ms": round((time.monotonic() - began_s) * 1_000)})


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
