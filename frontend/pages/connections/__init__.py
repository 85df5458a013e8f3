"""What Weir is connected to: the sources it asks, the tokens programs send with, and what was refused."""

from __future__ import annotations

import json
from typing import Any

from dash import Dash, dcc, html

from frontend.components import states
from frontend.pages.connections import refused, sources, tokens
from frontend.pages.connections.parts import dialog

ADDRESS = "/connections"
TABS = {"sources": ("Sources", sources), "tokens": ("Tokens", tokens), "refused": ("Refused", refused)}


def layout(tab: str) -> Any:
    """The page before its values come; a tab that is none is the first."""
    chosen = tab if tab in TABS else "sources"
    return html.Div(
        className="connections",
        children=[
            html.Div(html.H1("Connections"), className="page-head"),
            html.P("…", id="connections-said", className="sentence"),
            html.Nav(
                [_tab(key, label, key == chosen) for key, (label, _) in TABS.items()],
                className="view-tabs",
                **{"aria-label": "Parts of this page"},
            ),
            *TABS[chosen][1].form(),
            html.P("", id=f"{chosen}-done", className="done-said", role="status"),
            html.Div(states.skeleton(160), id=f"{chosen}-list", className="connection-list"),
            dcc.Store(id=f"{chosen}-drawn"),
            dcc.Store(id=f"{chosen}-do"),
            dialog(),
        ],
    )


def _tab(key: str, label: str, current: bool) -> Any:
    changes = {"tab": None if key == "sources" else key, "before": None}
    mark = {"aria-current": "page"} if current else {}
    return html.Button(
        label, id=f"tab-{key}", className="view-tab", **{"data-set": json.dumps(changes)}, **mark
    )


def register(app: Dash) -> None:
    """Callbacks of all its parts."""
    for part in (sources, tokens, refused):
        part.register(app)
