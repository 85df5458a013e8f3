"""Mails as they are or will be sent: the preview of the next digest, what was sent, and the outbox."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

from dash import Dash, Input, Output, State, html, no_update
from django.conf import settings
from django.utils import timezone

from frontend import freshness, words
from frontend.components import facts, states
from frontend.components.facts import Cell
from frontend.request import person
from frontend.state import View, integer, parameter
from webapp.accounts.models import User
from webapp.notifications import selectors
from webapp.notifications.composing import compose, envelope_of
from webapp.notifications.content import Composer
from webapp.notifications.deliveries import PERIODS
from webapp.notifications.models import Delivery, DeliveryState
from webapp.notifications.render import message_of
from webapp.notifications.schedule import Rhythm

MOST_SHOWN = 100
SIGNS = {
    DeliveryState.DUE: "… waits", DeliveryState.SENDING: "… being sent", DeliveryState.SENT: "✓ sent",
    DeliveryState.SKIPPED: "– nothing had happened", DeliveryState.FAILED: "✕ given up",
}  # fmt: skip
HEADERS = ("Subject", "From", "To", "Date", "List-Unsubscribe")
COLUMNS = ("Up to", "Digest", "State", "Tries", "To", "Subject", "")


@dataclass(frozen=True, slots=True)
class Shown:
    """A sentence, and what stands under it."""

    said: str
    body: Any


def refresh(route: dict[str, str], query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The values of the tabs that show mails; a preview stays as it is while it is read."""
    who, view = person(), View.parse(query or "")
    tab = str(route.get("tab"))
    freshness.stamp()
    if tab == "preview":
        key = f"preview {query}"
        if drawn == key:
            return [no_update, no_update, no_update]
        shown = _preview(who, integer(parameter(query, "subscription")), query, view)
        return [shown.said, shown.body, key]
    shown = _listed(who, tab, query, view)
    digest = hashlib.blake2b(repr(shown).encode(), digest_size=12).hexdigest()
    return [no_update, no_update, no_update] if digest == drawn else [shown.said, shown.body, digest]


def _preview(who: User, subscription_id: int | None, query: str, view: View) -> Shown:
    row = selectors.subscription(who, subscription_id) if subscription_id is not None else None
    if row is None:
        return Shown("There is no such digest.", _back())
    now = timezone.now().replace(microsecond=0)
    since = row.covered_until or now - PERIODS[Rhythm(row.rhythm)]
    digest, mail = compose(row, min(since, now), now, Composer())
    message = message_of(mail, envelope_of(row, now))
    said = f"If it were sent now, the {row.rhythm} digest of {digest.about} would be this mail."
    if not digest.sections and row.only_if_something:
        said = f"Nothing has happened since the last {row.rhythm} digest of {digest.about}: none would be sent now."
    return Shown(said, html.Div([_back(), _mail(message, query)]))


def _back() -> Any:
    changes = {"tab": None, "subscription": None, "mail": None, "as": None}
    return html.Button("← My digests", className="tool", **{"data-set": json.dumps(changes)})


def _listed(who: User, tab: str, query: str, view: View) -> Shown:
    outbox = tab == "outbox"
    rows = list((selectors.outbox(who) if outbox else selectors.history(who))[:MOST_SHOWN])
    wanted = integer(parameter(query, "mail"))
    message = selectors.mail(who, wanted) if wanted is not None else None
    said = _outbox_words(len(rows)) if outbox else _history_words(rows)
    if not rows:
        what = (
            "Mails land here while no mail server is set."
            if outbox
            else "What is sent to you is listed here."
        )
        return Shown(said, states.empty("No mail yet", html.P(what)))
    table = facts.table("Mails", COLUMNS, [_row(row, view, wanted) for row in rows], (0, 1, 2, 4, 5, 6))
    shown = [] if message is None else [_mail(message, query)]
    return Shown(said, html.Div([html.Div(table, className="card tokens"), *shown], className="mails"))


def _outbox_words(count: int) -> str:
    if settings.WEIR_SMTP_URL:
        return "A mail server is set: mails go there. What lay here before stays."
    return f"No mail server is set: mails stay here. {words.count(count, 'mail')} in the outbox."


def _history_words(rows: Sequence[Delivery]) -> str:
    if not rows:
        return "Nothing was sent to you yet."
    sent = sum(row.state == DeliveryState.SENT for row in rows)
    failed = sum(row.state == DeliveryState.FAILED for row in rows)
    more = f", {failed} given up" if failed else ""
    return f"Of your last {words.count(len(rows), 'digest')} {sent} were sent{more}."


def _row(row: Delivery, view: View, wanted: int | None) -> list[Cell]:
    about = row.subscription.group.name if row.subscription.group else "all jobs"
    state = SIGNS[DeliveryState(row.state)]
    changes = {"mail": None if wanted == row.pk else str(row.pk)}
    label = "Hide" if wanted == row.pk else "Show"
    name = f"{label} the {row.subscription.rhythm} digest of {about}"
    kept = row.subject and (row.state == DeliveryState.SENT)
    show = html.Button(label, className="tool", **{"data-set": json.dumps(changes), "aria-label": name})
    return [
        Cell(f"{row.period_to.astimezone(view.zone):%Y-%m-%d %H:%M} {view.zone_label}"),
        Cell(f"{row.subscription.rhythm}, {about}"),
        Cell(html.Span([state, html.Div(row.error, className="muted")] if row.error else state)),
        Cell(str(row.attempts)),
        Cell(row.to_address or "–"),
        Cell(row.subject or "–"),
        Cell(show if kept else ""),
    ]


def _mail(message: bytes, query: str) -> Any:
    """A mail's headers, and its HTML or its plain text, as they stand in these bytes."""
    mail = message_from_bytes(message, policy=default)
    assert isinstance(mail, EmailMessage)
    plain = parameter(query, "as") == "text"
    buttons = facts.choice("Show", [("HTML", {"as": None}, not plain), ("Plain text", {"as": "text"}, plain)])
    heads = [
        html.Div([html.Dt(name), html.Dd(str(mail[name]))]) for name in HEADERS if mail[name] is not None
    ]
    return html.Section(
        className="card mail",
        children=[html.Dl(heads, className="mail-heads"), buttons, _text(mail) if plain else _html(mail)],
        **{"aria-label": "The mail"},
    )


def _text(mail: EmailMessage) -> Any:
    part = mail.get_body(("plain",))
    return html.Pre(part.get_content() if part is not None else "", className="mail-text", tabIndex="0")


def _html(mail: EmailMessage) -> Any:
    """In a frame of its own, without scripts; pictures are taken from the mail, as a mail client does."""
    part = mail.get_body(("html",))
    source = part.get_content() if part is not None else ""
    for picture in mail.walk():
        if picture.get_content_maintype() == "image":
            data = base64.b64encode(picture.get_content()).decode()
            cid = str(picture["Content-ID"])[1:-1]
            source = source.replace(f"cid:{cid}", f"data:{picture.get_content_type()};base64,{data}")
    source = source.replace("<head>", '<head><base target="_blank">', 1)
    return html.Iframe(
        srcDoc=source,
        className="mail-frame",
        title="The mail as HTML",
        sandbox="allow-popups allow-same-origin",
    )


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("mail-said", "children"), Output("mail-list", "children"), Output("mail-drawn", "data"),
        Input("route", "data"), Input("url", "search"), Input("tick", "n_intervals"), State("mail-drawn", "data"),
    )(refresh)  # fmt: skip
