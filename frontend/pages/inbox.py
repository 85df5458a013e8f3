"""What waits for me, what costs most to let wait first; and what was decided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from dash import Dash, Input, Output, State, dcc, html
from django.db.models import QuerySet
from django.utils import timezone

from frontend import freshness, words
from frontend.components import facts, states
from frontend.components.facts import Cell
from frontend.components.proposals import body, told
from frontend.request import person
from frontend.state import View, integer, parameter
from webapp.accounts.models import User
from webapp.reconfigurations import selectors
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State as Stands
from webapp.reconfigurations.models import Proposal

ADDRESS = "/inbox"
MOST_SHOWN = 200
PAGE_ROWS = 50
DAY = timedelta(hours=24)
GROUPS = {
    "mine": "Waiting for me",
    "others": "Waiting for others",
    "today": "Decided in the last 24 hours",
}
FILTERS = {
    "": ("every state", ()),
    "open": ("undecided", (Stands.PROPOSED,)),
    "under way": ("under way", (Stands.APPROVED, Stands.APPLYING, Stands.APPLIED, Stands.REVERTING)),
    "verified": ("verified", (Stands.VERIFIED,)),
    "regressed": ("regressed or taken back", (Stands.REGRESSED, Stands.REVERTED, Stands.REVERT_FAILED)),
    "failed": ("could not be applied", (Stands.APPLY_FAILED, Stands.REVERT_FAILED)),
    "rejected": ("rejected", (Stands.REJECTED,)),
    "lapsed": ("expired, superseded or stale", (Stands.EXPIRED, Stands.SUPERSEDED, Stands.STALE)),
}


def layout(tab: str) -> Any:
    """The page before its values come."""
    history = tab == "history"
    return html.Div(
        className="inbox",
        children=[
            html.Div(html.H1("Inbox"), className="page-head"),
            html.P(
                "Reading …",
                id="inbox-history-sentence" if history else "inbox-sentence",
                className="sentence",
                role="status",
            ),
            html.Nav(
                [_tab("waiting", "Waiting", not history), _tab("history", "History", history)],
                className="view-tabs",
                **{"aria-label": "Parts of this page"},
            ),
            html.Div(states.skeleton(320), id="inbox-history" if history else "inbox-body"),
            dcc.Store(id="inbox-history-drawn" if history else "inbox-drawn"),
        ],
    )


def _tab(key: str, label: str, current: bool) -> Any:
    changes = {"tab": None if key == "waiting" else key, "before": None, "search": None, "show": None}
    mark = {"aria-current": "page"} if current else {}
    return html.Button(
        label, id=f"tab-{key}", className="view-tab", **{"data-set": json.dumps(changes)}, **mark
    )


def register(app: Dash) -> None:
    """Callbacks of both tabs."""
    for key, fill in (("inbox", refresh), ("inbox-history", refresh_history)):
        part = "inbox-body" if key == "inbox" else key
        app.callback(
            Output(f"{key}-sentence", "children"), Output(part, "children"), Output(f"{key}-drawn", "data"),
            Input("url", "search"), Input("tick", "n_intervals"), Input("decided", "data"),
            State(f"{key}-drawn", "data"),
        )(fill)  # fmt: skip


def groups(who: User, now: datetime) -> dict[str, list[Proposal]]:
    """What stands in the list, by group and in its order."""
    mine = list(selectors.inbox(who)[:MOST_SHOWN])
    seen = selectors.listed(who)
    others = seen.filter(state=Stands.PROPOSED).exclude(pk__in=[row.pk for row in mine])
    return {
        "mine": mine,
        "others": list(others.order_by("-shortfall_per_s", "expires_at", "id")[:MOST_SHOWN]),
        "today": list(seen.filter(decided_at__gt=now - DAY).order_by("-decided_at")[:MOST_SHOWN]),
    }


def refresh(query: str, _tick: int, _decided: Any, drawn: str | None) -> list[Any]:
    """The list, and the chosen proposal beside it."""
    view, now, who = View.parse(query or ""), timezone.now(), person()
    freshness.stamp()
    found = groups(who, now)
    everything = [row for rows in found.values() for row in rows]
    wanted = integer(parameter(query or "", "item"))
    chosen = next((row for row in everything if row.pk == wanted), everything[0] if everything else None)
    return [sentence(found["mine"], now), *body.changed(drawn, _both(found, chosen, view, now))]


def sentence(mine: Sequence[Proposal], now: datetime) -> str:
    """How much waits, and what that costs."""
    if not mine:
        return "Nothing waits for you."
    behind = words.rate(sum(row.shortfall_per_s for row in mine))
    soon = min(mine, key=lambda row: row.expires_at)
    left = told.span(soon.expires_at - now)
    if len(mine) == 1:
        cost = (
            f" {soon.job.name} stays {behind} behind what it should do." if soon.shortfall_per_s > 0 else ""
        )
        return f"1 proposal waits for you.{cost} It expires in {left}."
    costly = any(row.shortfall_per_s > 0 for row in mine)
    cost = f" Together their jobs stay {behind} behind what they should do." if costly else ""
    return f"{len(mine):,} proposals wait for you.{cost} The next to expire is {soon.job.name}, in {left}."


def _both(found: dict[str, list[Proposal]], chosen: Proposal | None, view: View, now: datetime) -> Any:
    if chosen is None:
        return states.empty(
            "Nothing to decide, and nothing was decided",
            html.P("Policies propose by themselves for jobs whose mode is recommend or automatic, and people on a"
                   " job's Changes tab."),
            html.A("See all jobs", href="/", className="primary"),
        )  # fmt: skip
    return html.Div(
        [
            html.Nav(
                [part for key, rows in found.items() for part in _group(key, rows, chosen, now)],
                id="inbox-list",
                **{"aria-label": "Proposals, what costs most to let wait first"},
            ),
            html.Div(
                [
                    body.draw(body.shown(chosen, view)),
                    html.A("Open with history and outcome", href=f"/proposals/{chosen.pk}", id="inbox-open"),
                ],
                className="stack",
                id="inbox-chosen",
            ),
        ],
        className="inbox-both",
    )  # fmt: skip


def _group(key: str, rows: Sequence[Proposal], chosen: Proposal, now: datetime) -> list[Any]:
    if not rows and key != "mine":
        return []
    order = " · what costs most to let wait first" if len(rows) > 1 and key != "today" else ""
    head = html.H2([GROUPS[key], html.Span(f" {len(rows)}", className="muted"),
                    html.Small(order, className="muted")])  # fmt: skip
    if not rows:
        return [head, html.P("Nothing waits for you.", className="muted")]
    return [head, *[_item(row, row.pk == chosen.pk, now) for row in rows]]


def _item(row: Proposal, current: bool, now: datetime) -> Any:
    is_open = row.state == Stands.PROPOSED
    mark = {"aria-current": "true"} if current else {}
    when = f"waits {told.span(now - row.created_at)} · expires in {told.span(row.expires_at - now)}"
    cost = f"{words.rate(row.shortfall_per_s)} behind" if row.shortfall_per_s > 0 else "costs nothing to wait"
    risk = html.Span("⚠ risky", className="warn") if row.risks else None
    names = {"title": f"{row.job.name}: {described(row)}"}  # what does not fit is cut off
    return html.Button(
        [
            html.Span([html.Strong(row.job.name), risk if is_open else told.badge(row)], className="item-head"),
            html.Span(described(row)),
            html.Span(f"{cost} · {when}" if is_open else told.standing(row, now), className="muted"),
        ],
        className="inbox-item",
        key=str(row.pk),
        **{"data-item": str(row.pk), **mark, **names},
    )  # fmt: skip


def refresh_history(query: str, _tick: int, _decided: Any, drawn: str | None) -> list[Any]:
    """All proposals of the person's jobs, newest first, as far as the filters let them through."""
    view, now = View.parse(query or ""), timezone.now()
    freshness.stamp()
    before = integer(parameter(query or "", "before"))
    found = past(person(), view.search, view.show)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: PAGE_ROWS + 1])
    return ["All proposals about jobs that you may see, the newest first.",
            *body.changed(drawn, [_filters(view), _table(rows, view, now, later=before is not None)])]  # fmt: skip


def past(who: User, search: str, show: str) -> QuerySet[Proposal]:
    """Proposals whose job has such a name, in such states."""
    found = selectors.listed(who, states=FILTERS.get(show, FILTERS[""])[1])
    return found.filter(job__name__icontains=search) if search else found


def _filters(view: View) -> Any:
    options = [(key, label) for key, (label, _) in FILTERS.items()]
    search = dcc.Input(id="history-search", type="search", value=view.search, debounce=True)
    return html.Div(
        [
            facts.select(
                "State", "show", [("", options)], view.show if view.show in FILTERS else "", "before"
            ),
            html.Label(
                [html.Span("Job", className="label"), search],
                className="choices long",
                **{"data-param": "search", "data-clears": "before"},
            ),
        ],
        className="controls",
    )


def _table(rows: Sequence[Proposal], view: View, now: datetime, *, later: bool) -> Any:
    if not rows:
        if not (view.search or view.show or later):
            return states.empty("No proposal yet", "Nothing was proposed about the jobs that you may see.")
        return states.empty("No such proposal", "Nothing was proposed that fits these filters.")
    columns = ("Proposal", "Job", "Change", "Stands at", "Because", "Proposed by", "Changed")
    table = facts.table(
        "Proposals", columns, [_row(row, view) for row in rows[:PAGE_ROWS]], wordy=range(len(columns))
    )
    more = rows[PAGE_ROWS - 1].pk if len(rows) > PAGE_ROWS else None
    return html.Section(
        [table, html.Nav(turns(more, later), className="pager", **{"aria-label": "Pages"})], className="card"
    )


def turns(more: int | None, later: bool) -> list[Any]:
    """The ways to newer and older rows."""
    ways: list[tuple[str, str | None]] = [("‹ Newest", None)] if later else []
    ways += [("Older ›", str(more))] if more is not None else []
    return [
        html.Button(label, className="tool", **{"data-set": json.dumps({"before": before})})
        for label, before in ways
    ]


def _row(row: Proposal, view: View) -> list[Cell]:
    return [
        Cell(html.A(str(row.pk), href=f"/proposals/{row.pk}"), row.pk),
        Cell(html.A(row.job.name, href=f"/jobs/{row.job_id}?tab=changes"), row.job.name),
        Cell(described(row)), Cell(told.badge(row), row.state), Cell(row.state_reason),
        Cell(row.proposed_by_name), Cell(told.at(row.changed_at, view), row.changed_at.isoformat()),
    ]  # fmt: skip
