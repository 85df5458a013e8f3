"""One proposal: where it stands, all that speaks for it, the decision, and what became of it."""

from __future__ import annotations

import re
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update, set_props

from frontend import freshness
from frontend.components import states
from frontend.components.proposals import body, history, outcome, told
from frontend.request import person
from frontend.state import View
from webapp.audit.selectors import history_of
from webapp.reconfigurations import selectors
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.proposing import propose_way_back

ADDRESS = re.compile(r"^/proposals/(\d{1,18})/?$")
MOST_EVENTS = 200


def layout(number: int) -> Any:
    """The page before its values come."""
    return html.Div(
        className="proposal-page",
        children=[
            html.Div(html.H1(f"Proposal {number}", id="proposal-title"), className="page-head"),
            html.P("Reading …", id="proposal-sentence", className="sentence", role="status"),
            html.Div(states.skeleton(320), id="proposal-body", className="stack"),
            html.P("", id="proposal-said", role="status", className="harm"),
            html.Div(id="proposal-past", className="stack"),
            dcc.Store(id="proposal-drawn"),
            dcc.Store(id="proposal-past-drawn"),
        ],
    )


def register(app: Dash) -> None:
    """Callbacks of the page."""
    app.callback(
        Output("proposal-sentence", "children"),
        Output("proposal-body", "children"), Output("proposal-drawn", "data"),
        Output("proposal-past", "children"), Output("proposal-past-drawn", "data"),
        Input("url", "search"), Input("tick", "n_intervals"), Input("decided", "data"), State("url", "pathname"),
        State("proposal-drawn", "data"), State("proposal-past-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("proposal-said", "children"), Input("proposal-way-back", "n_clicks"), State("url", "pathname"),
        running=[(Output("proposal-way-back", "disabled"), True, False)], prevent_initial_call=True,
    )(go_back)  # fmt: skip


def _row(path: str) -> Proposal:
    found = ADDRESS.match(path)
    row = selectors.proposal(person(), int(found[1])) if found else None
    if row is None:
        raise LookupError(f"no proposal at {path}")
    return row


def go_back(clicks: int | None, path: str) -> Any:
    """Propose the way back from what made things worse."""
    if not clicks:
        return no_update
    try:
        found = ADDRESS.match(path)
        made = propose_way_back(person(), int(found[1]) if found else 0)
    except RefusedError as error:
        return f"Not proposed: {error}."
    said = f"✓ Proposed to go back: proposal {made.pk}. Somebody else must approve it."
    set_props("decided", {"data": {"said": said, "good": True, "row": made.pk}})
    return ""


def refresh(
    query: str, _tick: int, _decided: Any, path: str, drawn: str | None, past_drawn: str | None
) -> list[Any]:
    """The proposal as it stands now."""
    row = _row(path)
    view = View.parse(query or "")
    seen = body.shown(row, view)
    freshness.stamp()
    events = history_of(person(), "proposal", row.pk)[:MOST_EVENTS]
    past = [
        part
        for part in (outcome.draw(seen), history.attempt(row, view), history.timeline(events, view))
        if part is not None
    ]
    return [
        told.sentence(row, seen.now),
        *body.changed(drawn, body.draw(seen)),
        *body.changed(past_drawn, past),
    ]
