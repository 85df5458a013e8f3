"""The tables of a cluster's page, each with the line above it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from dash import html

from analytics.model.burst_answers import Rebalance, Region
from analytics.model.burst_answers import Survey as Answers
from analytics.model.bursts import BurstModel, machines
from frontend import words
from frontend.components.facts import Cell, table
from frontend.figures import region as maps
from frontend.pages.bursts import said
from frontend.palette import Palette
from frontend.state import View
from webapp.bursts import live
from webapp.bursts.live import Live
from webapp.bursts.models import Cluster, HeadroomAlert, Origin
from webapp.bursts.selectors import Standing

MOST_ROWS = 400
Table = list[Any]


def _first(total: int) -> str:
    """Said where a table is cut."""
    return f" · the first {MOST_ROWS} of {total:,} are shown" if total > MOST_ROWS else ""


def binding(found: Live) -> Table:
    """The line and the table of what stops growth, and what more of it would bring."""
    if not found.binding:
        return ["nothing that the model knows", html.P("Nothing stops growth.", className="muted")]
    rows = [
        [
            Cell(maps.limit_words(item.node, item.resource)),
            Cell("all together" if item.level == 1 else "those that could go on"),
            Cell(said.amount(item.gain), item.gain, strong=True),
            Cell(said.amount(item.price), item.price),
        ]
        for item in found.binding[:MOST_ROWS]
    ]
    columns = ("What", "Stops", "10 % more of it lets each grow by", "One unit more, about")
    under = "solved again with 10 % more of each, since the price of a unit holds only up to the next kink"
    return [under + _first(len(found.binding)), table("What stops growth", columns, rows, (0, 1))]


def edges(found: Region | None) -> Any:
    """What makes each edge of the map."""
    if found is None:
        return html.P("What stops it stands below.", className="muted")
    if not found.facets:
        return html.P("There is no edge to name.", className="muted")
    first, second = found.applications
    rows = [
        [
            Cell(maps.limits(facet)),
            Cell(words.number(facet.weights[0]), facet.weights[0]),
            Cell(words.number(facet.weights[1]), facet.weights[1]),
            Cell(words.number(facet.bound), facet.bound, strong=True),
        ]
        for facet in found.facets
    ]
    columns = ("What stops it", f"{first} ×", f"+ {second} ×", "≤")
    return table("Edges of the map", columns, rows)


def spoken(found: Region, now: tuple[float, float], target: tuple[float, float]) -> str:
    """The map in words."""
    first, second = found.applications
    most = [max(vertex[axis] for vertex in found.vertices) for axis in (0, 1)]
    told = "; ".join(dict.fromkeys(maps.limits(facet) for facet in found.facets))
    return (
        f"Feasible rates of {first} (up to {words.number(most[0])}) and {second} (up to {words.number(most[1])});"
        f" now {words.number(now[0])} and {words.number(now[1])}, after an equal burst {words.number(target[0])}"
        f" and {words.number(target[1])}. Edges: {told}."
    )


def under_applications(answers: Answers, found: Live, as_it_is: bool) -> str:
    """What the table of applications tells."""
    unit = "in the model's unit of rates"
    cut = _first(len(found.rates))
    if found.joint < 0:
        fewer = (
            "they cannot fit by equal amounts"
            if math.isinf(found.joint)
            else f"each is {said.amount(-found.joint)} too much"
        )
        return f"{unit} · these inputs do not fit: {fewer}{cut}"
    equal = f"all can grow by {said.amount(found.joint)} each at once"
    if not as_it_is:
        return f"{unit} · {equal}; some can go on alone{cut}"
    single = said.amount(answers.headroom.single)
    return f"{unit} · {equal}; any one of them by {single} with one routing that need not change{cut}"


def applications(model: BurstModel, answers: Answers, found: Live, as_it_is: bool) -> Any:
    """Each application's rate, what it can grow by, and what it could take alone."""
    columns = ["Application", "Now", "Can grow by", "Then at"]
    if as_it_is:
        columns += ["Alone by", "At most"]
    rows = []
    for q, one in enumerate(model.applications[:MOST_ROWS]):
        cells = [
            Cell(one.name),
            Cell(words.number(found.rates[q]), found.rates[q]),
            Cell(said.amount(found.each[q]), found.each[q], strong=True),
            Cell(words.number(found.target[q]), found.target[q]),
        ]
        if as_it_is:
            alone, most = answers.headroom.alone[q], answers.headroom.max_rate[q]
            cells += [Cell(said.amount(alone), alone), Cell(said.amount(most), most)]
        rows.append(cells)
    return table("Applications", columns, rows)


def losses(answers: Answers, model: BurstModel) -> Table:
    """The line and the table of what each machine's loss costs."""
    if not machines(model):
        why = "No machines are named in the model, so nobody can tell what the loss of one would cost."
        return ["only instances are known", html.P(why, className="muted")]
    if not answers.losses:
        return ["more nodes than are tried one by one", html.P("Not computed.", className="muted")]
    found = sorted(answers.losses, key=lambda loss: loss.proportional)
    held = sum(loss.proportional >= 1 for loss in found)
    rows = [
        [
            Cell(loss.node),
            Cell("✓ all fits" if loss.proportional >= 1 else "✕ something drops"),
            Cell(said.growth(loss.proportional - 1), loss.proportional - 1, strong=True),
        ]
        for loss in found[:MOST_ROWS]
    ]
    under = (
        f"{held} of {words.count(len(found), 'node')} can be lost without a drop, with routing adapted to it"
        f"{_first(len(found))}"
    )
    return [under, table("Loss of each node", ("Node", "Present rates", "All can grow by"), rows, (0, 1))]


def small_maps(model: BurstModel, answers: Answers, chosen: tuple[str, str], colours: Palette) -> Table:
    """The line and the maps of all pairs; a click shows one large."""
    if len(model.applications) < 2:
        return [
            "there is one application",
            html.P("One application has nobody to compete with.", className="muted"),
        ]
    if not answers.maps:
        return ["a map needs two applications that something limits", html.P("No pairs.", className="muted")]
    names = list(dict.fromkeys(name for found in answers.maps for name in found.applications))
    every = [one.name for one in model.applications]
    rate = dict(zip(every, answers.headroom.rates, strict=True))
    cells = [_small(found, names, rate, chosen, colours) for found in answers.maps if found.vertices]
    left_out = f" (those most loaded of {len(every)})" if len(names) < len(every) else ""
    pairs = words.count(len(cells), "pair")
    under = f"{pairs} of {len(names)} applications{left_out} · choose one to see it large"
    style = {"--count": str(max(len(names) - 1, 1))}
    return [under, html.Div(cells, className="small-maps", style=style)]


def _small(
    found: Region, names: Sequence[str], rate: dict[str, float], chosen: tuple[str, str], colours: Palette
) -> Any:
    first, second = found.applications
    now = (rate[first], rate[second])
    both = f"{first} × {second}"
    button = html.Button(
        [
            html.Img(src=maps.small(found, now, colours), alt="", className="small-map"),
            html.Span(both, className="small-caption", title=both),
        ],
        className="small-button",
        title=f"Show {first} and {second} large",
        **{
            "data-set": json.dumps({"x": first, "y": second}),
            "aria-pressed": "true" if set(chosen) == {first, second} else "false",
        },
    )
    place = {"gridColumn": names.index(first) + 1, "gridRow": names.index(second)}
    return html.Div(button, className="small-cell", style=place)


def plan(model: BurstModel, rates: Sequence[float], cluster: Cluster) -> Table:
    """The line and the table of shares, exact and rounded to key groups."""
    found, odd = live.routing(model, rates)
    rows = [
        [
            Cell(one.name),
            Cell(application.name),
            Cell(stage.name),
            Cell(one.node),
            Cell(words.percent(found.fractions[k]), found.fractions[k]),
            Cell(found.key_groups[k]),
        ]
        for k, (application, stage, one) in enumerate(model.components())
        if len(stage.components) > 1
    ]
    under = f"shares of each stage · {_carried(found)}{_first(len(rows))}"
    if len(rows) > MOST_ROWS:
        under += f", all by GET /api/v1/clusters/{cluster.pk}/plan"
    if not rows:
        return [
            "every stage runs on one node: there is nothing to share out",
            html.P("Nothing to route.", className="muted"),
        ]
    notes = [html.P(f"Not rounded, since its shares follow from its edges: {item.example}.") for item in odd]
    columns = ("Component", "Application", "Stage", "Node", "Share", f"Key groups of {found.groups}")
    return [under, [table("Routing", columns, rows[:MOST_ROWS], (0, 1, 2, 3)), *notes]]


def _carried(found: Rebalance) -> str:
    """How far all inputs, and any one, can grow with the shares."""
    rounded = f"rounded to {found.groups} key groups"
    if found.joint < 0:
        return (
            f"these inputs do not fit; once each is {said.amount(-found.joint)} less, these shares carry them,"
            f" {rounded} once it is {said.amount(-found.rounded_joint)} less"
        )
    exact, each = said.amount(found.joint), said.amount(found.rounded_joint)
    return (
        f"exact: all can grow by {exact} without a change, any one by {said.amount(found.single)} · {rounded}:"
        f" {each} and {said.amount(found.rounded_single)}"
    )


def alerts(found: Sequence[HeadroomAlert], view: View, threshold: float) -> Table:
    """The line and the table of the times at which there was too little."""
    under = f"alerts of the cluster itself, below {words.percent(threshold)} now; the newest first"
    if not found:
        return [under, html.P("Headroom was never below its alert.", className="muted")]
    rows = [
        [
            Cell(_when(item.opened_ns, view)),
            Cell(
                "still" if item.closed_ns is None else _when(item.closed_ns, view),
                strong=item.closed_ns is None,
            ),
            Cell(words.percent(item.threshold_ratio), item.threshold_ratio),
            Cell(said.growth(item.least_ratio), item.least_ratio),
            Cell(item.limit or "–"),
        ]
        for item in found
    ]
    columns = (f"From, {view.zone_label}", "To", "Below", "Lowest", "First stopped by")
    return [under, table("Alerts", columns, rows, (0, 1, 4))]


def _when(at_ns: int, view: View) -> Any:
    return html.Span(f"{view.time(at_ns):%Y-%m-%d %H:%M:%S}", className="when")


def model(standing: Standing, known: BurstModel) -> Table:
    """The line and the list of what the model is made of, and what was odd about it."""
    row = standing.model
    assert row is not None
    components = sum(1 for _ in known.components())
    counts = ((len(known.applications), "application"), (len(known.nodes), "node"), (components, "component"))
    size = ", ".join(words.count(number, noun) for number, noun in counts)
    under = f"model {row.number}, {row.get_origin_display()} by {row.made_by_name}, version {row.version} · {size}"
    items = [
        html.Li(f"{said.FLAGS.get(item['code'], item['code'])}: {item['count']} ({item['example']})")
        for item in row.diagnostics
    ]
    index = (
        f"BARRE's index has {words.count(row.index_points, 'point')}."
        if row.index_points
        else "There is no point index."
    )
    flags = (
        [html.P("To be taken with care:"), html.Ul(items)]
        if items
        else [html.P("Nothing odd was found in it.")]
    )
    derived = row.origin == Origin.DERIVED
    return [under, [html.P(said.counted(known, derived)), *flags, html.P(index, className="muted")]]
