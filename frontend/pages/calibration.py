"""How far predictions may be trusted: predicted against observed, over all changes that were judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html

from frontend import freshness, palette, words
from frontend.components import facts, states
from frontend.components.facts import Cell, Changes
from frontend.components.panel import GRAPH_CONFIG
from frontend.components.proposals import body
from frontend.figures import calibration as figures
from frontend.request import person
from frontend.state import View, parameter
from webapp.reconfigurations import calibrating, selectors
from webapp.reconfigurations.calibrating import BUSY, RATE, Spread
from webapp.reconfigurations.selectors import Calibration

ADDRESS = "/calibration"
WHAT = {RATE: "Source rates", BUSY: "How busy operators are"}
COLUMNS = (
    "Policy", "Predictions", "Came true", "Came true, %", "Off by, median", "Half within", "90 % within", "Worst",
)  # fmt: skip
CHART_PX = 360


def layout() -> Any:
    """The page before its values come."""
    return html.Div(
        className="calibration",
        children=[
            html.Div(html.H1("Calibration"), className="page-head"),
            html.P("Reading …", id="calibration-sentence", className="sentence", role="status"),
            html.Div(states.skeleton(CHART_PX), id="calibration-body"),
            dcc.Store(id="calibration-drawn"),
        ],
    )


def register(app: Dash) -> None:
    """The callback of the page."""
    app.callback(
        Output("calibration-sentence", "children"), Output("calibration-body", "children"),
        Output("calibration-drawn", "data"), Input("url", "search"), Input("tick", "n_intervals"),
        State("calibration-drawn", "data"),
    )(refresh)  # fmt: skip


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """All judged predictions, those of one policy if one is chosen."""
    view, chosen = View.parse(query or ""), parameter(query or "", "policy")[:60]
    everything = selectors.calibration(person())
    policies = sorted({point.policy for point in everything})
    points = [point for point in everything if not chosen or point.policy == chosen]
    freshness.stamp()
    spreads = calibrating.spreads(points)
    if not spreads:
        return [_nothing(points), *body.changed(drawn, _empty())]
    return [
        sentence(points, spreads) + _limit(everything),
        *body.changed(drawn, _panels(points, spreads, policies, chosen, view)),
    ]


def sentence(points: Sequence[Calibration], spreads: Sequence[Spread]) -> str:
    """How often predictions came true, and how far off they were."""
    judged = [point for point in points if point.agrees is not None]
    right = sum(point.agrees is True for point in judged)
    changes = len({point.proposal_id for point in points})
    parts = [
        f"{right} of {words.count(len(judged), 'prediction')} about {words.count(changes, 'change')} came true."
    ]
    for what, name in ((RATE, "source rates"), (BUSY, "predictions of load")):
        mine = [item for item in spreads if item.what == what]
        if mine:
            worst = max(mine, key=lambda item: item.half)
            by = words.policy(worst.policy)
            parts.append(f"Half of the {name} were off by at most {size(worst.half, what)} ({by}).")
    return " ".join(parts)


def _limit(everything: Sequence[Calibration]) -> str:
    changes = len({point.proposal_id for point in everything})
    most = selectors.MOST_JUDGED
    return f" Only the newest {most:,} changes are counted." if changes >= most else ""


def size(value: float, what: str) -> str:
    """An error without its sign: 3 %, 5 points."""
    return words.percent(abs(value)) if what == RATE else f"{100 * abs(value):.2g} points"


def signed(value: float, what: str) -> str:
    """An error: +3.1 %, -5 points."""
    return f"{100 * value:+.1f} %" if what == RATE else f"{100 * value:+.1f} points"


def _nothing(points: Sequence[Calibration]) -> str:
    if points:
        return "Changes were made, but none could be measured: how far predictions may be trusted is not known yet."
    return "No change was judged yet: how far predictions may be trusted is not known."


def _empty() -> Any:
    return states.empty(
        "Nothing to compare yet",
        html.P("Each change that Weir applies is measured once it has settled, and what was predicted for it"
               " appears here beside what came. Dry runs and changes made elsewhere do not count."),
        html.A("Look at what waits", href="/inbox", className="primary"),
    )  # fmt: skip


def _panels(
    points: Sequence[Calibration], spreads: Sequence[Spread], policies: Sequence[str], chosen: str, view: View
) -> Any:
    options: list[tuple[str, Changes, bool]] = [("all", {"policy": None}, not chosen)]
    options += [(words.policy(name), {"policy": name}, chosen == name) for name in policies]
    parts = [facts.choice("Policy", options)]
    for what, title in WHAT.items():
        mine = [item for item in spreads if item.what == what]
        if mine:
            parts.append(_panel(points, mine, what, title, view))
    return html.Div(parts, className="stack")


def _panel(
    points: Sequence[Calibration], spreads: Sequence[Spread], what: str, title: str, view: View
) -> Any:
    colours = palette.of(view.theme)
    key = "rates" if what == RATE else "busy"
    spoken = "; ".join(
        f"{words.policy(item.policy)}: {item.agreed} of {item.count} came true, half within {size(item.half, what)}"
        for item in spreads
    )
    charts = [
        html.Div(
            dcc.Graph(id=f"chart-{name}-{key}", config=GRAPH_CONFIG, figure=figure, style={"height": CHART_PX}),
            className="chart", role="img", style={"height": CHART_PX},
            **{"aria-label": f"{title}, {says}. {spoken}."},
        )
        for name, figure, says in (
            ("scatter", figures.scatter(points, what, colours), "predicted against observed"),
            ("spread", figures.histogram(points, what, colours), "how far off predictions were"),
        )
    ]  # fmt: skip
    unit = "within 10 % of the prediction" if what == RATE else "within 10 points of the prediction"
    return html.Section(
        [
            html.Div(
                [
                    html.Div([html.H2(title, id=f"title-{key}"),
                              html.P(f"Line: as predicted; band: {unit}.", className="under")]),
                    html.Div(html.Button("CSV", className="tool", **{"data-act": "csv"}), className="tools"),
                ],
                className="panel-head",
            ),
            html.Div(charts, className="calibration-charts"),
            facts.table(title, COLUMNS, [_row(item) for item in spreads], wordy=(0, 7)),
        ],
        className="card panel", id=f"panel-{key}",
        **{"aria-labelledby": f"title-{key}", "data-file": f"weir-calibration-{key}"},
    )  # fmt: skip


def _row(item: Spread) -> list[Cell]:
    off = calibrating.error(item.worst) or 0.0
    number = item.worst.proposal_id
    worst = html.A(f"proposal {number}: {signed(off, item.what)}", href=f"/proposals/{number}")
    return [
        Cell(words.policy(item.policy), item.policy), Cell(f"{item.count:,}"), Cell(f"{item.agreed:,}"),
        Cell(f"{100 * item.agreed / item.count:.0f}", item.agreed / item.count),
        Cell(signed(item.median, item.what), item.median), Cell(size(item.half, item.what), item.half),
        Cell(size(item.most, item.what), item.most), Cell(worst, json.dumps([number, off])),
    ]  # fmt: skip
