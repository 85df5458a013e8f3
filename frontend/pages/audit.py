"""The audit record: who did, or was refused, what and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlencode

from dash import Dash, Input, Output, State, dcc, html

from frontend import freshness
from frontend.components import facts, states
from frontend.components.facts import Cell
from frontend.components.proposals import body, told
from frontend.pages.inbox import turns
from frontend.request import person
from frontend.state import View, integer
from webapp.audit.models import AuditEvent, Outcome
from webapp.audit.selectors import Search, search
from webapp.audit.views import wanted_of

ADDRESS = "/audit"
PAGE_ROWS = 50
FIELDS = ("search", "who", "action", "outcome", "job", "loud")
ACTIONS = {
    "Proposals": (
        "proposal.propose", "proposal.approve", "proposal.reject", "proposal.vote", "proposal.break_glass",
        "proposal.expire", "proposal.stale", "proposal.supersede", "proposal.set_aside", "proposal.withdraw",
        "proposal.apply", "proposal.applied", "proposal.apply_failed", "proposal.verify", "proposal.revert",
        "proposal.reverted", "proposal.revert_failed",
    ),
    "Rules": ("rules.change", "freeze", "freeze.lift", "scaling.change_setup"),
    "Groups": ("group.create", "group.set_role", "group.put_job"),
}  # fmt: skip
COLUMNS = ("When", "Who", "Action", "Outcome", "Job", "About", "Reason", "Detail")


def layout() -> Any:
    """The page before its values come."""
    return html.Div(
        className="audit",
        children=[
            html.Div(html.H1("Audit"), className="page-head"),
            html.P("Reading …", id="audit-sentence", className="sentence", role="status"),
            html.Div(id="audit-controls", className="controls"),
            html.Div(states.skeleton(320), id="audit-list"),
            dcc.Store(id="audit-drawn"),
            dcc.Store(id="audit-controls-drawn"),
        ],
    )


def register(app: Dash) -> None:
    """The callback of the page."""
    app.callback(
        Output("audit-sentence", "children"),
        Output("audit-list", "children"), Output("audit-drawn", "data"),
        Output("audit-controls", "children"), Output("audit-controls-drawn", "data"),
        Input("url", "search"), Input("tick", "n_intervals"), Input("decided", "data"),
        State("audit-drawn", "data"), State("audit-controls-drawn", "data"),
    )(refresh)  # fmt: skip


def refresh(query: str, _tick: int, _decided: Any, drawn: str | None, controls: str | None) -> list[Any]:
    """The events that the filters let through, newest first."""
    view = View.parse(query or "")
    fields = {key: values[-1] for key, values in parse_qs((query or "").lstrip("?")).items()}
    wanted, before = wanted_of(fields), integer(fields.get("before"))
    found = search(person(), wanted)
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found[: PAGE_ROWS + 1])
    freshness.stamp()
    table = _table(rows, view, later=before is not None, filtered=wanted != Search())
    return [
        _sentence(), *body.changed(drawn, table), *body.changed(controls, _controls(fields, wanted)),
    ]  # fmt: skip


def _sentence() -> str:
    whose = "everybody" if person().is_superuser else "the jobs of your groups, and what you did yourself"
    return f"What people, policies and workers did or were refused, about {whose}. Nobody can change it."


def _controls(fields: dict[str, str], wanted: Search) -> list[Any]:
    actions = [("", [("", "every action")]), *[(group, [(name, name) for name in names])
               for group, names in ACTIONS.items()]]  # fmt: skip
    outcomes = [("", "done or refused"), *[(item.value, item.label) for item in Outcome]]
    kept = urlencode({key: value for key, value in fields.items() if key in FIELDS})
    loud = html.Button(
        "⚠ Loud only", className="tool",
        **{"data-set": json.dumps({"loud": None if wanted.loud else "1", "before": None}),
           "aria-pressed": str(wanted.loud).lower()},
    )  # fmt: skip
    return [
        _field("Search", "search", wanted.text, "names, actions, reasons", "search"),
        _field("Who", "who", wanted.actor_name, "a person's whole name", "audit-who"),
        facts.select("Action", "action", actions, wanted.action, "before"),
        facts.select("Outcome", "outcome", [("", outcomes)], wanted.outcome, "before"),
        loud,
        html.A("CSV of all", href=f"/audit.csv?{kept}", className="tool", id="audit-csv", target="_blank"),
    ]  # fmt: skip


def _field(label: str, param: str, value: str, hint: str, identity: str) -> Any:
    control = dcc.Input(id=f"audit-{param}" if identity == "search" else identity, type="search", value=value,
                        placeholder=hint, debounce=True)  # fmt: skip
    return html.Label(
        [html.Span(label, className="label"), control],
        className="choices long",
        **{"data-param": param, "data-clears": "before"},
    )


def _table(rows: Sequence[AuditEvent], view: View, *, later: bool, filtered: bool) -> Any:
    if not rows:
        why = (
            "No event that you may see fits these filters."
            if filtered
            else "Nothing was recorded that you may see."
        )
        return states.empty("Nothing here", html.P(why))
    table = facts.table(
        "Audit record", COLUMNS, [_row(item, view) for item in rows[:PAGE_ROWS]], wordy=range(len(COLUMNS))
    )
    more = rows[PAGE_ROWS - 1].pk if len(rows) > PAGE_ROWS else None
    return html.Section(
        [table, html.Nav(turns(more, later), className="pager", **{"aria-label": "Pages"})], className="card"
    )


def _row(event: AuditEvent, view: View) -> list[Cell]:
    refused = event.outcome == Outcome.REFUSED
    sign = "✕ refused" if refused else "✓ done"
    outcome = html.Span(sign, className="harm verdict" if refused else "good verdict")
    loud = html.Strong(" ⚠ loud", className="warn") if event.loud else None
    job = html.A(event.job_name, href=f"/jobs/{event.job_id}") if event.job_id else event.job_name
    detail = json.dumps(event.detail, ensure_ascii=False, indent=1) if event.detail else ""
    fold = html.Details([html.Summary("show"), html.Pre(detail, tabIndex="0")], id=f"audit-{event.pk}")
    return [
        Cell(told.at(event.at, view), event.at.isoformat()), Cell(event.actor_name), Cell(event.action),
        Cell([outcome, loud], event.outcome), Cell(job, event.job_name), Cell(_about(event)), Cell(event.reason),
        Cell(fold if detail else "–", detail),
    ]  # fmt: skip


def _about(event: AuditEvent) -> Any:
    name = f"{event.object_type} {event.object_id}" if event.object_id else event.object_type
    return html.A(name, href=f"/proposals/{event.object_id}") if event.object_type == "proposal" else name
