"""A person's own tokens: making one, seeing its secret once, and revoking it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import dash_mantine_components as dmc
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from frontend import freshness, words
from frontend.components import states
from frontend.components.facts import Cell, table
from frontend.pages.connections import parts
from frontend.request import actor
from frontend.state import View
from webapp.accounts.models import Scope, Token, User
from webapp.accounts.selectors import tokens_of
from webapp.accounts.services import create_token, revoke_token

MOST_SHOWN = 200
DAYS = {"30": "30 days", "90": "90 days", "365": "a year", "0": "no end"}
DEFAULT_DAYS = "90"
SOON = timedelta(days=7)
FIELDS = {"name": "Name", "scopes": "Scopes", "jobs": "Jobs", "expires_at": "Lifetime"}
COLUMNS = ("Name", "State", "Begins with", "Scopes", "Jobs", "Made", "Expires", "Last use", "")


def form() -> list[Any]:
    """How to make one."""
    scopes = [dmc.Checkbox(label=f"{scope.value}: {scope.label}", value=scope.value) for scope in Scope]
    days = [dmc.Radio(label=label, value=value) for value, label in DAYS.items()]
    jobs = dcc.Textarea(id="token-jobs", rows=2)
    return [
        html.Section(
            className="card connection-form",
            children=[
                html.H2("Make a token"),
                html.P("A program that has it acts for you, with the scopes you give it.", className="muted"),
                html.Div(
                    [
                        parts.field("Name", "token-name", dcc.Input(id="token-name", maxLength=100)),
                        dmc.CheckboxGroup(scopes, id="token-scopes", label="Scopes", value=["ingest"]),
                        dmc.RadioGroup(days, id="token-days", label="Lifetime", value=DEFAULT_DAYS),
                        parts.field("Only these jobs", "token-jobs", jobs, "One name a line; empty: all jobs."),
                        html.Button("Make the token", id="token-make", className="primary"),
                    ],
                    className="connection-fields",
                ),
                html.Div(id="token-said", role="alert"),
            ],
            **{"aria-label": "Make a token"},
        ),
        html.Div(id="token-secret", role="status"),
    ]  # fmt: skip


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The list, read again."""
    view = View.parse(query or "")
    person = _person()
    rows = list(tokens_of(person).order_by("revoked_at", "-id")[:MOST_SHOWN])
    freshness.stamp()
    parts.say(sentence(rows))
    return parts.changed("tokens", drawn, _listed(rows, view))


def _person() -> User:
    person = actor()
    if not isinstance(person, User):
        raise PermissionDenied("sign in to see tokens")
    return person


def state_of(token: Token) -> str:
    """Whether it still opens anything."""
    if token.revoked_at is not None:
        return "revoked"
    return "expired" if token.expires_at is not None and token.expires_at <= timezone.now() else "live"


def sentence(rows: Sequence[Token]) -> str:
    """How many can be used, and which end soon."""
    live = [token for token in rows if state_of(token) == "live"]
    if not live:
        return "You have no token that can be used."
    soon = [token for token in live if token.expires_at and token.expires_at < timezone.now() + SOON]
    more = f" {soon[0].name} expires within a week." if soon else ""
    return f"You have {words.count(len(live), 'token')} that can be used.{more}"


def _listed(rows: Sequence[Token], view: View) -> Any:
    if not rows:
        return states.empty(
            "No token yet",
            html.P(
                "Programs send telemetry and read results with a token. Make one above; its secret is shown once."
            ),
        )
    return html.Div(
        table("Your tokens", COLUMNS, [_row(token, view) for token in rows], range(len(COLUMNS))),
        className="card tokens",
    )


def _row(token: Token, view: View) -> list[Cell]:
    state = state_of(token)
    signs = {"live": "● live", "expired": "✕ expired", "revoked": "✕ revoked"}
    question = f"Every program that uses {token.name} is refused from now on. This cannot be undone."
    revoke = parts.button("Revoke…", {"do": "revoke", "id": token.pk}, token.name, question)
    return [
        Cell(token.name),
        Cell(html.Span(signs[state], className=f"state-word {state if state == 'live' else ''}".strip())),
        Cell(html.Code(f"{token.prefix}…")),
        Cell(", ".join(token.scopes)),
        Cell(", ".join(token.jobs) or "all"),
        Cell(parts.at(token.created_at, view)),
        Cell(parts.at(token.expires_at, view)),
        Cell(parts.at(token.last_used_at, view)),
        Cell(revoke if state == "live" else ""),
    ]


def make(
    _clicks: int, _enter: int, name: str, scopes: list[str], days: str, jobs: str, query: str
) -> list[Any]:  # fmt: skip
    """Make what the form says. The secret is in this answer and nowhere else."""
    expires_at = timezone.now() + timedelta(days=int(days)) if days in DAYS and days != "0" else None
    names = [line.strip() for line in str(jobs or "").splitlines() if line.strip()]
    try:
        token, secret = create_token(
            _person(), str(name or "").strip(), map(str, scopes or ()), jobs=names, expires_at=expires_at
        )
    except ValidationError as error:
        return [parts.mistakes(error, FIELDS), None, name]
    _drawn_anew(query)
    return [None, _once(token, secret), ""]


def _once(token: Token, secret: str) -> Any:
    copy = html.Button("Copy", className="primary", **{"data-act": "copy-secret"})
    return html.Section(
        className="card secret",
        children=[
            html.H2(f"The secret of {token.name}"),
            html.P("Copy it now: it is shown this once, and Weir keeps only a digest of it."),
            html.Div([html.Code(secret, id="secret"), copy], className="secret-line"),
            html.P("", id="secret-copied", role="status"),
        ],
        **{"aria-label": "The new secret"},
    )


def act(asked: dict[str, Any] | None, query: str) -> Any:
    """Revoke: what a button of the list sent."""
    if not asked:
        return no_update
    try:
        said = f"Revoked {revoke_token(_person(), int(asked['id'])).name}."
    except Token.DoesNotExist:
        said = "You have no such token."
    _drawn_anew(query)
    return said


def _drawn_anew(query: str) -> None:
    children, digest = refresh(query, 0, None)
    set_props("tokens-list", {"children": children})
    set_props("tokens-drawn", {"data": digest})


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("tokens-list", "children"), Output("tokens-drawn", "data"), Input("url", "search"),
        Input("tick", "n_intervals"), State("tokens-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("token-said", "children"), Output("token-secret", "children"), Output("token-name", "value"),
        Input("token-make", "n_clicks"), Input("token-name", "n_submit"), State("token-name", "value"),
        State("token-scopes", "value"), State("token-days", "value"), State("token-jobs", "value"),
        State("url", "search"), running=[(Output("token-make", "disabled"), True, False)],
        prevent_initial_call=True,
    )(make)  # fmt: skip
    app.callback(
        Output("tokens-done", "children"), Input("tokens-do", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
