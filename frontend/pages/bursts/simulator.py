"""Simulated bursts against five ways to route, for one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from analytics.model.burst_answers import SimulatedBursts, Strategy
from frontend import freshness, palette, words
from frontend.components import panel, states
from frontend.components.facts import Cell, table
from frontend.figures import simulated
from frontend.pages.bursts import cluster as cluster_page
from frontend.pages.bursts.cluster import Seen
from frontend.state import View
from webapp.bursts import simulations
from webapp.bursts.models import Cluster, SimulationState

POLL_MS = 1000
NOTHING = 1e-6
QUESTION = "How much is dropped when inputs burst?"
ASSUMED = (
    "Bursts begin at random times, the same for every strategy. A node that is asked for too much admits the same"
    " part of everything, and what one stage drops never reaches the next. BARRE's routing is taken at the largest"
    " burst and never changed; dynamic adaptation routes anew three steps after rates changed."
    " On time is what comes within 20 times the time that idle nodes take under the burst-unaware plan."
)
_PARTS = (
    ("bursts-said", "children"), ("bursts-message", "children"), ("bursts-body", "hidden"),
    ("bursts-poll", "disabled"),
    ("chart-bursts-missed", "figure"), ("frame-bursts-missed", "aria-label"), ("wait-bursts-missed", "hidden"),
    ("under-bursts-missed", "children"), ("list-bursts-missed", "children"), ("bursts-drawn", "data"),
)  # fmt: skip


def layout(cluster: Cluster) -> Any:
    """The page before its values come."""
    return html.Div(
        className="asked bursts simulator",
        children=[
            html.Div(
                className="page-head",
                children=[
                    html.H1(f"Simulated bursts of {cluster.name}"),
                    html.A(cluster.name, href=f"/bursts/{cluster.pk}"),
                ],
            ),
            dcc.Interval(id="bursts-poll", interval=POLL_MS, disabled=True),
            dcc.Store(id="bursts-drawn"),
            dcc.Store(id="bursts-again"),
            html.P("Reading …", id="bursts-said", className="sentence", role="status"),
            html.Div(id="bursts-message"),
            html.Div(
                panel.panel("bursts-missed", QUESTION, height_px=simulated.HEIGHT_PX),
                id="bursts-body", className="asked-body one",
            ),
            html.Div(
                html.P(ASSUMED),
                className="notes muted",
            ),
        ],
    )  # fmt: skip


def refresh(query: str, _tick: int, _poll: int, screen: str, path: str, drawn: str | None) -> list[Any]:
    """The page's values; while a worker plays, it is asked again."""
    freshness.stamp()
    seen = cluster_page.look(path, query)
    if not isinstance(seen, Seen) or seen.standing.model is None:
        return _without("Nothing can be simulated yet: the cluster has no answers.", None, True)
    version = seen.standing.model
    if why := simulations.too_large(version):
        return _without(f"This cluster is not simulated: {why}.", None, True)
    row = simulations.ask(version, seen.rates)
    if row.state == SimulationState.FAILED:
        return _without(
            "It cannot be simulated.", states.empty("No simulation", f"Because {row.error}."), True
        )
    found = simulations.results(row)
    if not found:
        return _without("Playing bursts …", None, False)
    view = View.parse(query or "")
    key = f"{row.pk} {view.theme} {screen}"
    if key == drawn:
        return [no_update] * len(_PARTS)
    said = sentence(found)
    rates = ", ".join(words.number(rate) for rate in row.params["rates"][:6])
    return [
        said, None, False, True, simulated.figure(found, palette.of(view.theme), screen == "narrow"), said, True,
        f"share of all that came in · {row.params['length']} steps from normal rates of {rates}"
        f"{' …' if len(row.params['rates']) > 6 else ''} · model {version.number}",
        _table(found), key,
    ]  # fmt: skip


def sentence(found: Sequence[SimulatedBursts]) -> str:
    """Up to where BARRE drops nothing, and what the others miss there."""
    clean = [one for one in found if one.strategy is Strategy.BARRE and one.missed <= NOTHING * one.offered]
    least = min(one.intensity_ratio for one in found)
    at = max((one.intensity_ratio for one in clean), default=least)
    missed = {
        one.strategy: one.missed / one.offered for one in found if one.intensity_ratio == at and one.offered
    }
    others = [
        f"{strategy} misses {words.percent(share)}"
        for strategy, share in missed.items()
        if strategy is not Strategy.BARRE
    ]
    if clean:
        return f"In bursts of +{words.percent(at)} BARRE's routing drops nothing; {words.series(others)}."
    own = words.percent(missed.get(Strategy.BARRE, 0.0))
    return f"Even in bursts of +{words.percent(at)} BARRE's routing misses {own}; {words.series(others)}."


def _table(found: Sequence[SimulatedBursts]) -> Any:
    rows = [
        [
            Cell(str(one.strategy)),
            Cell(f"+{one.intensity_ratio * 100:.0f}", one.intensity_ratio),
            Cell(
                words.percent(one.missed / one.offered if one.offered else 0.0),
                one.missed,
                one.strategy is Strategy.BARRE,
            ),
            Cell(words.percent(one.on_time_ratio), one.on_time_ratio),
            Cell(words.number(one.delay), one.delay),
        ]
        for one in sorted(found, key=lambda one: one.intensity_ratio)
    ]
    return table("Strategies", ("Strategy", "Burst, %", "Missed", "On time", "Mean delay"), rows)


def _without(sentence: str, message: Any, settled: bool) -> list[Any]:
    return [sentence, message, settled, settled, *[no_update] * (len(_PARTS) - 4)]


def register(app: Dash) -> None:
    """Callbacks of the page."""
    app.callback(
        [Output(*pair) for pair in _PARTS], Input("url", "search"), Input("tick", "n_intervals"),
        Input("bursts-again", "data"), Input("screen", "data"), State("url", "pathname"),
        State("bursts-drawn", "data"),
    )(refresh)  # fmt: skip
    # Polls pass only while nothing is under way, else the answers of a slow server would never be heard.
    app.clientside_callback(
        ClientsideFunction("weir", "again"),
        Output("bursts-again", "data"),
        Input("bursts-poll", "n_intervals"),
    )
