"""Notifications: which digests a person gets, what the next one says, what was sent; a group's
alerts and its channels."""

from __future__ import annotations

import json
from typing import Any

from dash import Dash, dcc, html

from frontend.components import states
from frontend.pages.connections.parts import dialog
from frontend.pages.notifications import alerts, channels, digests, mails

ADDRESS = "/notifications"
TABS = {
    "digests": "My digests",
    "alerts": "Alerts",
    "history": "History",
    "outbox": "Outbox",
    "channels": "Channels",
}
KEYS = {"digests": "notify", "alerts": "alert", "channels": "channel"}
FORMS = {"digests": digests.forms, "alerts": alerts.forms, "channels": channels.forms}
"""*Preview* is a tab without a button: it belongs to one subscription, which leads to it."""


def layout(tab: str) -> Any:
    """The page before its values come; a tab that is none is the first."""
    chosen = tab if tab in (*TABS, "preview") else "digests"
    key = KEYS.get(chosen, "mail")
    return html.Div(
        className="connections notifications",
        children=[
            html.Div(html.H1("Notifications"), className="page-head"),
            html.P("Reading …", id=f"{key}-said", className="sentence", role="status"),
            html.Nav(
                [_tab(name, label, name == chosen) for name, label in TABS.items()],
                className="view-tabs",
                **{"aria-label": "Parts of this page"},
            ),
            html.P("", id=f"{key}-done", className="done-said", role="status"),
            html.Div(states.skeleton(160), id=f"{key}-list", className="connection-list"),
            *(FORMS[chosen]() if chosen in FORMS else ()),
            dcc.Store(id=f"{key}-drawn"),
            dcc.Store(id=f"{key}-do"),
            dialog(),
        ],
    )


def _tab(key: str, label: str, current: bool) -> Any:
    changes = {"tab": None if key == "digests" else key, "mail": None, "subscription": None, "as": None}
    mark = {"aria-current": "page"} if current else {}
    return html.Button(
        label, id=f"tab-{key}", className="view-tab", **{"data-set": json.dumps(changes)}, **mark
    )


def register(app: Dash) -> None:
    """Callbacks of all its parts."""
    for part in (digests, alerts, mails, channels):
        part.register(app)
