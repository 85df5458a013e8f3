"""All clusters, and the form that makes one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
import orjson
from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import PermissionDenied, ValidationError

from frontend import freshness, words
from frontend.components import states
from frontend.components.facts import Cell, Changes, choice, table
from frontend.pages.bursts import said
from frontend.pages.bursts.setup_text import HINT, setup_of
from frontend.pages.connections import parts
from frontend.request import actor
from frontend.state import View, parameter
from webapp.accounts.models import User
from webapp.bursts import deriving, selectors, services
from webapp.bursts.policies import groups_for
from webapp.bursts.selectors import Standing
from webapp.jobs.policies import visible_jobs

COLUMNS = (
    "Cluster", "State", "All can grow by", "… without the worst node", "What stops it", "Configured burst",
    "Applications", "Group",
)  # fmt: skip
HINTS = {
    "model": "The burst model as JSON: nodes with capacities, applications with stages and components.",
    "jobs": HINT,
}
EXAMPLE = {
    "nodes": {"A": {"cpu": 4}, "B": {"cpu": 4}},
    "applications": {
        name: {
            "stages": [
                {
                    "name": "count",
                    "selectivity": 1,
                    "components": [
                        {"name": f"{name}-{node}", "node": node, "cost": {"cpu": cost}} for node in ("A", "B")
                    ],
                }
            ]
        }
        for name, cost in (("clicks", 0.002), ("orders", 0.005))
    },
}


def layout() -> Any:
    """The page before its values come."""
    return html.Div(
        className="asked bursts",
        children=[
            html.Div(html.H1("Bursts"), className="page-head"),
            html.P("Reading …", id="clusters-sentence", className="sentence", role="status"),
            html.Div(states.skeleton(160), id="clusters-list"),
            dcc.Store(id="clusters-drawn"),
            html.Details(
                className="card fold",
                id="cluster-form",
                children=[
                    html.Summary("Add a cluster"),
                    html.Div(id="cluster-kinds"),
                    parts.field("Name", "cluster-name", dcc.Input(id="cluster-name", maxLength=services.MOST_NAME)),
                    parts.field(
                        html.Span("Model", id="cluster-label"), "cluster-text",
                        dcc.Textarea(id="cluster-text", rows=10, className="code-field"),
                    ),
                    html.P("", id="cluster-hint", className="hint muted"),
                    _group(),
                    html.Button("Add the cluster", id="cluster-add", className="primary"),
                    html.Div(id="cluster-said", role="alert"),
                ],
            ),
        ],
    )  # fmt: skip


def _group() -> Any:
    names = [group.name for group in groups_for(actor())]
    return dmc.Select(
        data=[{"value": "", "label": "none"}, *({"value": name, "label": name} for name in names)],
        id="cluster-group", label="Group", value="", allowDeselect=False,
        description="Only its members see the cluster, and it guards the group's jobs: a scale-down that leaves"
        " less than the configured burst is refused.",
    )  # fmt: skip


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The list, and the words about it."""
    view = View.parse(query or "")
    found = selectors.standings(actor())
    total = selectors.how_many(actor()) if len(found) == selectors.MOST_LISTED else len(found)
    freshness.stamp()
    return [
        sentence(found, freshness.now_ns(), total),
        *parts.changed("clusters", drawn, _listed(found, view)),
    ]


def sentence(found: Sequence[Standing], now_ns: int, total: int) -> str:
    """How all of them stand, in one line; ``total``: with those that are not listed.

    Only those with a current answer count as having the headroom they need.
    """
    if not found:
        return "No cluster is known yet: Weir needs to know which applications share which nodes."
    low = [item for item in found if item.alert is not None]
    if low:
        names = words.series([item.cluster.name for item in low[:3]])
        more = f" and {len(low) - 3} more" if len(low) > 3 else ""
        head = f"Too little headroom in {names}{more}: {len(low)} of {words.count(len(found), 'cluster')}"
    others = [item for item in found if item.alert is None]
    current = [
        kind for kind in (said.state(item, now_ns) for item in others) if kind in (said.CURRENT, said.SHORT)
    ]
    short = current.count(said.SHORT)
    if not low:
        good = len(current) - short
        many = "All" if good == len(found) else f"{good}"
        head = (
            f"{found[0].cluster.name}, the only cluster, has the headroom it needs"
            if good == len(found) == 1
            else f"{many} of {words.count(len(found), 'cluster')} have the headroom they need"
        )
    if short:
        head += f"; {short} could not take the configured burst"
    if unknown := len(others) - len(current):
        head += f"; nothing current is known of {unknown}"
    cut = f" Listed are {len(found):,} of {total:,}, those with an alert first." if total > len(found) else ""
    return f"{head}.{cut}"


def _listed(found: Sequence[Standing], view: View) -> Any:
    if not found:
        return states.empty(
            "No cluster yet",
            "A cluster is nodes and the applications that share them. From it follows how much all inputs can grow"
            " before something drops, for which pairs of applications, and what stops them.",
            "Add one below: upload its model, or name jobs that Weir measures.",
        )
    rows = [_row(item, view) for item in found]
    columns = (*COLUMNS, f"As of, {view.zone_label}")
    return html.Div(table("Clusters", columns, rows, (0, 1, 4, 7, 8)), className="card")


def _row(item: Standing, view: View) -> list[Cell]:
    answers, survey = item.answers, item.survey
    kind, word = said.state(item, freshness.now_ns())
    link = html.A(item.cluster.name, href=f"/bursts/{item.cluster.pk}")
    least = min((loss.proportional for loss in answers.losses), default=None) if answers else None
    as_of = view.time(survey.at_ns) if survey and survey.at_ns else None
    return [
        Cell(link, item.cluster.name),
        Cell(html.Span(word, className=f"state-word {kind}")),
        Cell(said.growth(answers.ratio) if answers else "–", answers.ratio if answers else None, strong=True),
        Cell(said.growth(least - 1) if least is not None else "–", None if least is None else least - 1),
        Cell(said.stops(answers.headroom.binding) if answers else (survey.error if survey else "–")),
        Cell(said.growth(item.cluster.burst_ratio), item.cluster.burst_ratio),
        Cell(len(item.model.applications) if item.model else "–"),
        Cell(item.cluster.group.name if item.cluster.group else "–"),
        Cell(html.Span(f"{as_of:%Y-%m-%d %H:%M:%S}" if as_of else "–", className="when")),
    ]


def kinds(query: str) -> list[Any]:
    """The form for the kind in the address."""
    kind = "jobs" if parameter(query or "", "kind") == "jobs" else "model"
    options: list[tuple[str, Changes, bool]] = [
        ("Upload its model", {"kind": None}, kind == "model"),
        ("Derive it from jobs", {"kind": "jobs"}, kind == "jobs"),
    ]
    if kind == "model":
        return [choice("How", options), "Model", HINTS[kind], json.dumps(EXAMPLE, indent=1)]
    names = list(visible_jobs(actor()).order_by("-last_received_at").values_list("name", flat=True)[:3])
    known = f" Jobs Weir knows: {', '.join(names)}." if names else ""
    return [choice("How", options), "Jobs", HINTS[kind] + known, "ad-events\nnode-1 = 8"]


def add(_clicks: int, name: str, text: str, group: str | None, query: str) -> Any:
    """Make the cluster that the form describes, and go to it."""
    person = actor()
    try:
        if not isinstance(person, User):
            raise PermissionDenied("sign in to add clusters")
        theirs = services.group_named(person, str(group or ""))
        if parameter(query or "", "kind") == "jobs":
            made = deriving.create_derived(person, str(name or ""), setup_of(str(text or "")), theirs)
        else:
            made = services.create_cluster(person, str(name or ""), document_of(text), group=theirs)
    except ValidationError as error:
        return parts.mistakes(error, {"name": "Name", "model": "Model", "setup": "Jobs", "group": "Group"})
    except PermissionDenied as error:
        return html.P(str(error), className="error")
    set_props("url", {"pathname": f"/bursts/{made.pk}"})
    return no_update


def document_of(text: Any) -> Any:
    """What a field of JSON says.

    Raises
    ------
    ValidationError
        If it is no JSON.
    """
    try:
        return orjson.loads(str(text or ""))
    except orjson.JSONDecodeError as error:
        raise ValidationError({"model": f"no JSON: {error}"}) from error


def register(app: Dash) -> None:
    """Callbacks of the page."""
    app.callback(
        Output("clusters-sentence", "children"), Output("clusters-list", "children"),
        Output("clusters-drawn", "data"), Input("url", "search"), Input("tick", "n_intervals"),
        State("clusters-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("cluster-kinds", "children"), Output("cluster-label", "children"),
        Output("cluster-hint", "children"), Output("cluster-text", "placeholder"), Input("url", "search"),
    )(kinds)  # fmt: skip
    app.callback(
        Output("cluster-said", "children"), Input("cluster-add", "n_clicks"), State("cluster-name", "value"),
        State("cluster-text", "value"), State("cluster-group", "value"), State("url", "search"),
        running=[(Output("cluster-add", "disabled"), True, False)], prevent_initial_call=True,
    )(add)  # fmt: skip
