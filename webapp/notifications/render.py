"""A digest as a mail: HTML with inlined styles, its charts as parts of the mail, and the same as plain text.

The same digest and envelope give the same bytes. Nothing in it is loaded from anywhere, and no address in it does
anything when it is opened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from email.header import Header
from email.mime.image import MIMEImage
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from email.policy import compat32
from email.utils import format_datetime, parseaddr
from functools import cache, lru_cache
from typing import Any

from css_inline import CSSInliner
from django.template.loader import get_template
from django.utils.html import escape

from analytics.model.activity import ActivityType
from webapp.notifications import charts
from webapp.notifications.digest import MARKS, Digest, Item, Section
from webapp.wording import activity, percent

_NUMBER, _UNSUBSCRIBE = "@the-number-of-the-mail@", "@the-address-to-unsubscribe@"
_WIRE = compat32.clone(linesep="\r\n", max_line_length=900)
"""Long lines are allowed, up to 998 bytes; folded addresses confuse clients."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """All of a mail that is not its content. ``number`` tells mails apart, ``base_url`` is where Weir is."""

    number: str
    sender: str
    to: str
    at: datetime
    base_url: str
    unsubscribe_url: str
    settings_url: str


@dataclass(frozen=True, slots=True)
class Mail:
    """Its parts, before they are wrapped: the pictures by content id."""

    subject: str
    text: str
    html: str
    pictures: tuple[tuple[str, bytes], ...]


def mail_of(digest: Digest, envelope: Envelope) -> Mail:
    """The parts of the mail."""
    html, pictures = _page(digest, replace(envelope, number=_NUMBER, to="", unsubscribe_url=_UNSUBSCRIBE))
    html = html.replace(_NUMBER, envelope.number).replace(_UNSUBSCRIBE, escape(envelope.unsubscribe_url))
    own = tuple((cid.replace(_NUMBER, envelope.number), picture) for cid, picture in pictures)
    return Mail(digest.subject, text_of(digest, envelope), html, own)


@lru_cache(maxsize=256)
def _page(digest: Digest, envelope: Envelope) -> tuple[str, tuple[tuple[str, bytes], ...]]:
    """The HTML and its pictures, with marks where people's mails differ: most of a group get the same digest."""
    pictures: list[tuple[str, bytes]] = []
    shown = [_section(section, envelope, pictures) for section in digest.sections]
    page = _template().render({"digest": digest, "sections": shown, "envelope": envelope})
    return _inliner().inline(page), tuple(pictures)


def message_of(mail: Mail, envelope: Envelope) -> bytes:
    """The mail as it goes over the wire.

    Of the library's two ways to make messages this is the older: the newer takes 30 ms a mail.
    """
    message = MIMEMultipart("alternative", boundary=f"alternative-{envelope.number}")
    domain = _domain(envelope.sender)
    message["Subject"] = mail.subject if mail.subject.isascii() else Header(mail.subject, "utf-8").encode()
    message["From"] = envelope.sender
    message["To"] = envelope.to
    message["Date"] = format_datetime(envelope.at)
    message["Message-ID"] = f"<{envelope.number}@{domain}>"
    message["List-Id"] = f"Weir digests <digests.{domain}>"
    message["List-Unsubscribe"] = f"<{envelope.unsubscribe_url}>"
    message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    message["Auto-Submitted"] = "auto-generated"
    message.attach(MIMEText(mail.text, "plain", "utf-8"))
    html = MIMEText(mail.html, "html", "utf-8")
    message.attach(_related(html, mail, envelope) if mail.pictures else html)
    return message.as_bytes(policy=_WIRE)


def _related(html: MIMEText, mail: Mail, envelope: Envelope) -> MIMEMultipart:
    related = MIMEMultipart("related", boundary=f"related-{envelope.number}")
    related.attach(html)
    for number, (cid, picture) in enumerate(mail.pictures, start=1):
        part = MIMEImage(picture, "png")
        part["Content-ID"] = f"<{cid}>"
        part.add_header("Content-Disposition", "inline", filename=f"chart-{number}.png")
        related.attach(part)
    return related


def text_of(digest: Digest, envelope: Envelope) -> str:
    """The plain text: all that the HTML says."""
    lines = [f"Weir {digest.rhythm} digest · {digest.about}", "", digest.headline, digest.period]
    for section in digest.sections:
        lines += ["", "", section.heading.upper(), ""]
        for item in section.items:
            lines.append(f"{MARKS[item.tone]} {item.title}")
            lines += [f"  {line}" for line in item.lines]
            if item.chart is not None:
                lines.append(f"  {_caption(item)}: {_numbers(item)}")
            lines += [f"  {item.action or 'Open'}: {envelope.base_url}{item.path}", ""]
        if section.more:
            lines.append(f"{section.more} See all: {envelope.base_url}{section.path}")
        elif lines[-1] == "":
            lines.pop()
    lines += [
        "", "", "-- ", "You get this since you subscribed to it in Weir. Opening a link never changes anything.",
        f"Settings: {envelope.settings_url}", f"Unsubscribe: {envelope.unsubscribe_url}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _section(section: Section, envelope: Envelope, pictures: list[tuple[str, bytes]]) -> dict[str, Any]:
    items = []
    for item in section.items:
        cid = ""
        if item.chart is not None:
            cid = f"chart-{len(pictures) + 1}.{envelope.number}@weir"
            pictures.append((cid, charts.png(item.chart)))
        items.append(
            {
                "item": item, "mark": MARKS[item.tone], "url": f"{envelope.base_url}{item.path}", "cid": cid,
                "caption": _caption(item), "numbers": _numbers(item), "legend": _legend(item),
            }
        )  # fmt: skip
    return {"section": section, "items": items, "url": f"{envelope.base_url}{section.path}"}


def _caption(item: Item) -> str:
    return item.chart.says if item.chart is not None else ""


def _numbers(item: Item) -> str:
    """The chart for those who do not see it."""
    known = [bar[0] for bar in item.chart.bars if bar is not None] if item.chart is not None else []
    return (
        f"from {percent(min(known))} to {percent(max(known))}, at the end {percent(known[-1])}"
        if known
        else ""
    )


def _legend(item: Item) -> list[tuple[str, str]]:
    """Colour and words of what the chart shows."""
    codes = item.chart.activities if item.chart is not None else ()
    return [(charts.COLOURS[ActivityType(code)], activity(code)) for code in codes]


def _domain(sender: str) -> str:
    return parseaddr(sender)[1].rpartition("@")[2] or "localhost"


@cache
def _inliner() -> CSSInliner:
    return CSSInliner(keep_at_rules=True, load_remote_stylesheets=False)


@cache
def _template() -> Any:
    return get_template("notifications/digest.html")
