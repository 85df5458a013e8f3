"""What stands on every page: how much waits for the reader, what is frozen, and whose rules were passed over."""

from __future__ import annotations

import re
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html
from django.utils import timezone

from frontend.request import person
from frontend.state import View
from webapp.analysis import selectors as analysis
from webapp.jobs.models import Job
from webapp.reconfigurations import selectors
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.models import Freeze, Proposal
from webapp.reconfigurations.standing import alarms

PLACE = re.compile(r"^/(jobs|proposals)/(\d{1,18})")
MOST_COUNTED = 99


def frame() -> list[Any]:
    """The place of the banner, under the bar, and its store."""
    return [html.Div(id="alarm", className="alarm", role="alert", hidden=True), dcc.Store(id="slow")]


def nav_inbox() -> Any:
    """The way to the inbox, with how much waits there."""
    return html.A(["Inbox", html.Span("", id="inbox-count", className="count", hidden=True)], href="/inbox")


def register(app: Dash) -> None:
    """Callbacks of the frame: with each page, and every few seconds while it is live."""
    app.clientside_callback(
        ClientsideFunction("weir", "slow"), Output("slow", "data"), Input("tick", "n_intervals"),
        prevent_initial_call=True,
    )  # fmt: skip
    app.callback(
        Output("inbox-count", "children"), Output("inbox-count", "hidden"), Output("inbox-count", "title"),
        Output("alarm", "children"), Output("alarm", "hidden"),
        Input("route", "data"), Input("slow", "data"), Input("decided", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(refresh)  # fmt: skip


def refresh(route: dict[str, str] | None, _slow: Any, _decided: Any, query: str) -> list[Any]:
    """How much waits, and what everybody should notice."""
    who, view = person(), View.parse(query or "")
    waiting = selectors.inbox(who)[: MOST_COUNTED + 1].count()
    found = alarms(who, _job(route), timezone.now())
    lines = [_frozen(item, view) for item in found.freezes] + [_broken(item, view) for item in found.broken]
    shown = f"{waiting}" if waiting <= MOST_COUNTED else f"{MOST_COUNTED}+"
    return [shown, not waiting, f"{shown} waiting for your decision", lines, not lines]


def _job(route: dict[str, str] | None) -> Job | None:
    """The job that the page is about, if it is about one."""
    found = PLACE.match((route or {}).get("path", ""))
    if found is None:
        return None
    if found[1] == "jobs":
        return analysis.job(person(), int(found[2]))
    row = selectors.proposal(person(), int(found[2]))
    return row.job if row is not None else None


def _frozen(freeze: Freeze, view: View) -> Any:
    what = f"Changes of {freeze.job.name} are" if freeze.job is not None else "All changes are"
    since = f"{freeze.at.astimezone(view.zone):%Y-%m-%d %H:%M} {view.zone_label}"
    return html.P(
        [
            html.Span("❄", **{"aria-hidden": "true"}),
            html.Strong(f" Frozen. {what} stopped"),
            f" by {freeze.by_name} since {since}: {freeze.reason}",
        ],
        className="alarm-line frozen",
    )


def _broken(row: Proposal, view: View) -> Any:
    when = f"{row.decided_at.astimezone(view.zone):%H:%M} {view.zone_label}" if row.decided_at else ""
    vote = row.votes.filter(approves=True).order_by("-at").first()
    who = vote.voter_name if vote is not None else "Somebody"
    return html.P(
        [
            html.Span("⚠", **{"aria-hidden": "true"}),
            html.Strong(" The glass was broken. "),
            f"At {when} {who} went past the rules of {row.job.name} and approved ",
            html.A(f"{described(row)}", href=f"/proposals/{row.pk}"),
            f": {vote.reason}" if vote is not None and vote.reason else "",
        ],
        className="alarm-line",
    )
