"""One cluster: what it can take, the map of a pair, what would change that, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from analytics.model.burst_answers import Survey as Answers
from analytics.model.bursts import BurstModel
from frontend import freshness, palette, words
from frontend.components import facts, panel, states
from frontend.figures import headroom, region
from frontend.pages.bursts import said, tables, trying
from frontend.pages.bursts.wish import Wish
from frontend.request import actor
from frontend.state import View
from webapp.bursts import live, past, selectors
from webapp.bursts.live import Live
from webapp.bursts.models import Cluster
from webapp.bursts.past import Point, Rates
from webapp.bursts.policies import may_change
from webapp.bursts.selectors import Standing

SPAN_STEP_NS = 15_000_000_000
MAP = "What can two applications take together?"
_TOP = (
    ("burst-sentence", "children"), ("burst-basis", "children"), ("burst-message", "children"),
    ("burst-body", "hidden"), ("burst-controls", "children"), ("burst-controls-drawn", "data"),
    ("chart-burst-map", "figure"), ("frame-burst-map", "aria-label"), ("wait-burst-map", "hidden"),
    ("under-burst-map", "children"), ("list-burst-map", "children"), ("under-burst-apps", "children"),
    ("list-burst-apps", "children"), ("title-burst-map", "children"), ("under-burst-binding", "children"),
    ("list-burst-binding", "children"),
)  # fmt: skip
_REST = (
    ("under-burst-maps", "children"), ("list-burst-maps", "children"), ("under-burst-losses", "children"),
    ("list-burst-losses", "children"), ("chart-burst-history", "figure"), ("frame-burst-history", "aria-label"),
    ("wait-burst-history", "hidden"), ("under-burst-history", "children"), ("under-burst-alerts", "children"),
    ("list-burst-alerts", "children"), ("under-burst-plan", "children"),
    ("list-burst-plan", "children"), ("under-burst-model", "children"), ("list-burst-model", "children"),
    ("burst-rest-drawn", "data"),
)  # fmt: skip


def layout(cluster: Cluster) -> Any:
    """The page before its values come."""
    from frontend.pages.bursts import actions

    return html.Div(
        className="asked bursts cluster",
        children=[
            html.Div(
                className="page-head",
                children=[
                    html.H1(cluster.name, title=cluster.name),
                    html.A("All clusters", href="/bursts"),
                    html.A("Simulated bursts", href=f"/bursts/{cluster.pk}/simulator"),
                ],
            ),
            html.P("Reading …", id="burst-sentence", className="sentence", role="status"),
            html.P("…", id="burst-basis", className="basis muted"),
            html.Div(id="burst-message"),
            dcc.Store(id="burst-controls-drawn"),
            dcc.Store(id="burst-rest-drawn"),
            html.Div(
                id="burst-body",
                className="asked-body",
                children=[
                    panel.panel(
                        "burst-map", MAP, height_px=region.HEIGHT_PX,
                        above=[html.Div(id="burst-controls", className="controls whatif")],
                    ),
                    facts.sheet("burst-apps", "What does each application get, and could it get?"),
                    facts.sheet("burst-binding", "What stops growth, and what would more of it buy?"),
                    facts.sheet("burst-maps", "Which pairs compete?"),
                    facts.sheet("burst-losses", "What if a node is lost?"),
                    facts.sheet("burst-plan", "Which routing carries every burst up to the headroom?"),
                    panel.panel(
                        "burst-history", "How did headroom go, and where is it heading?",
                        height_px=headroom.HEIGHT_PX, listed=False,
                    ),
                    facts.sheet("burst-alerts", "When was it too little?"),
                    facts.sheet("burst-model", "What does this rest on?"),
                ],
            ),
            *actions.proposing(cluster),
            *(actions.forms(cluster) if may_change(actor(), cluster) else []),
        ],
    )  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """Everything that the page rests on, once it is known."""

    standing: Standing
    model: BurstModel
    answers: Answers
    rates: tuple[float, ...]
    view: View
    wish: Wish


def look(path: str, query: str) -> Seen | Standing | None:
    """What there is to show: all of it, only how the cluster stands, or nothing (it is not there)."""
    found = _cluster(path)
    if found is None:
        return None
    standing = selectors.standing(found)
    answers = standing.answers
    if standing.model is None or answers is None or not standing.comparable:
        return standing
    model = selectors.model_of(standing.model)
    wish = Wish.parse(query or "").known(model)
    return Seen(standing, model, answers, answers.headroom.rates, View.parse(query or ""), wish)


def _cluster(path: str) -> Cluster | None:
    parts = (path or "").strip("/").split("/")
    number = int(parts[1]) if len(parts) > 1 and parts[1].isdigit() and len(parts[1]) < 19 else None
    return None if number is None else selectors.cluster(actor(), number)


def refresh_top(query: str, _tick: int, screen: str, path: str, drawn: str | None) -> list[Any]:
    """The sentence, the map and the table of applications: all that follows the sliders."""
    seen = look(path, query)
    freshness.stamp()
    if seen is None:
        return [
            "There is no such cluster, or you may not see it.",
            "",
            None,
            True,
            *[no_update] * (len(_TOP) - 4),
        ]
    if isinstance(seen, Standing):
        return [*_not_yet(seen), True, *[no_update] * (len(_TOP) - 4)]
    pair = _pair(seen)
    earlier = past.rates(seen.standing, _steady_span(seen.view), pair)
    beside = tuple(said.PEAK_FACTOR * rate for rate in _peak(seen, earlier))
    found = live.solve(seen.model, seen.rates, seen.wish.change, pair, beside if any(beside) else None)
    figure, spoken = _map(seen, found, pair, earlier, screen == "narrow")
    key, controls = trying.controls(seen.model, seen.wish, drawn)
    return [
        said.sentence(seen.standing.cluster.name, found, seen.wish.change, seen.view.span_words),
        _basis(seen, found), _message(seen.standing, seen.view), False, controls, key, figure, spoken, True,
        _under_map(seen, found), tables.edges(found.region),
        tables.under_applications(seen.answers, found, seen.wish.change.is_nothing),
        tables.applications(seen.model, seen.answers, found, seen.wish.change.is_nothing), _title(seen),
        *tables.binding(found),
    ]  # fmt: skip


def _title(seen: Seen) -> str:
    names = [one.name for one in seen.model.applications]
    if len(names) == 1:
        return f"How much can {names[0]} take?"
    return f"What can {seen.wish.pair[0]} and {seen.wish.pair[1]} take together?"


def _pair(seen: Seen) -> tuple[int, int] | None:
    names = [one.name for one in seen.model.applications]
    return (names.index(seen.wish.pair[0]), names.index(seen.wish.pair[1])) if seen.wish.pair[1] else None


def _steady_span(view: View) -> tuple[int, int]:
    """The range in whole steps of time, so that moving a slider does not read the past anew."""
    first, last = view.span(freshness.now_ns())
    if view.is_absolute:
        return first, last
    return first // SPAN_STEP_NS * SPAN_STEP_NS, -(-last // SPAN_STEP_NS) * SPAN_STEP_NS


def _peak(seen: Seen, earlier: Rates) -> tuple[float, ...]:
    """The highest rate of each application in the page's range, or as it is now."""
    return tuple(map(max, zip(seen.rates, earlier.peak or seen.rates, strict=True)))


def _map(
    seen: Seen, found: Live, pair: tuple[int, int] | None, earlier: Rates, narrow: bool
) -> tuple[Any, str]:
    colours = palette.of(seen.view.theme)
    if pair is None:
        most = seen.answers.headroom.max_rate[0]
        if not seen.wish.change.is_nothing and found.proportional < float("inf"):
            most = found.rates[0] * found.proportional
        name = seen.model.applications[0].name
        spoken = f"{name} gets {said.amount(found.rates[0])} and can take at most {said.amount(most)}."
        return region.gauge(name, found.rates[0], min(most, 1e300), colours), spoken
    if found.region is None or not found.region.vertices:
        return panel.BLANK, "No map: nothing limits one of the two, or the others alone do not fit."
    now, target = ((values[pair[0]], values[pair[1]]) for values in (found.rates, found.target))
    figure = region.figure(found.region, now, target, earlier.trail, colours, narrow)
    return figure, tables.spoken(found.region, now, target)


def _under_map(seen: Seen, found: Live) -> str:
    if not seen.wish.pair[1]:
        return "now, and the most it can take with the nodes as they are"
    if found.region is None:
        return "nothing limits one of the two: there is no edge to draw"
    if not found.region.vertices:
        return "the other applications alone do not fit: these two can take nothing"
    rest = len(found.rates) - 2
    others = f" · {words.count(rest, 'other application')} at their present rates" if rest else ""
    return f"inside: nothing drops · edges: what stops them · dots: earlier {seen.view.span_words}{others}"


def _basis(seen: Seen, found: Live) -> str:
    survey = seen.standing.survey
    at = seen.view.time(survey.at_ns) if survey and survey.at_ns else None
    model = seen.standing.model
    told = f"Rates as of {at:%Y-%m-%d %H:%M:%S} {seen.view.zone_label}" if at else "Rates of now"
    number = f" · model {model.number} ({model.version})" if model else ""
    group = seen.standing.cluster.group
    whose = f" · group {group.name}" if group else " · in no group"
    return f"{told}{number}{whose} · solved in {found.took_ms:.0f} ms"


def _message(standing: Standing, view: View) -> Any:
    survey = standing.survey
    lines = []
    if standing.alert is not None:
        limit = f", first stopped by {standing.alert.limit}" if standing.alert.limit else ""
        threshold = words.percent(standing.alert.threshold_ratio)
        since = f"{view.time(standing.alert.opened_ns):%Y-%m-%d %H:%M} {view.zone_label}"
        lines.append(
            f"▼ Headroom has been below {threshold} since {since}{limit}; the lowest was"
            f" {said.growth(standing.alert.least_ratio)}."
        )
    if standing.stale:
        lines.append(
            "▲ The model is newer than the worker's answers: maps of pairs, losses and history follow soon."
        )
    if survey is not None and survey.error:
        lines.append(f"▲ There is no newer answer, because {survey.error}.")
    return html.Div([html.P(line, className="warn") for line in lines], role="alert") if lines else None


def _not_yet(standing: Standing) -> list[Any]:
    name = html.Em(standing.cluster.name)
    if standing.model is None:
        return [["Nothing can be told about ", name, ": it has no model."], "", None]
    if standing.survey is not None and standing.survey.error:
        told = states.empty(
            "No answer yet",
            f"Because {standing.survey.error}. Applications of a job's name get its measured input; give the others"
            " their rates below, or by the API.",
        )
        return [["Nothing can be told about ", name, " yet."], "", told]
    if standing.answers is not None:
        told = states.empty(
            "The model has other applications now",
            "What was computed is of the applications before. A worker looks at every cluster four times a minute.",
        )
        return [["Nothing is known yet about ", name, " as it is now."], "", told]
    waits = states.empty(
        "Waiting for the first answer", "A worker looks at every cluster four times a minute."
    )
    return [["Nothing is known about ", name, " yet."], "", waits]


def refresh_rest(query: str, _tick: int, path: str, drawn: str | None) -> list[Any]:
    """What does not follow the sliders: small maps, losses, history, routing and the model."""
    found = _cluster(path)
    if found is None:
        return [no_update] * len(_REST)
    view, asked = View.parse(query or ""), Wish.parse(query or "")
    bounds = (found.burst_ratio, found.alert_ratio)
    key = f"{selectors.stamp(found)} {view} {asked.pair} {bounds}"
    seen = None if key == drawn else look(path, query)
    if not isinstance(seen, Seen):
        return [no_update] * len(_REST)
    cluster = seen.standing.cluster
    colours = palette.of(view.theme)
    trend = selectors.forecast(cluster, freshness.now_ns())
    told = said.foretold(trend, view, cluster.alert_ratio)
    span = view.span(freshness.now_ns())
    points = past.history(cluster.pk, *span)
    return [
        *tables.small_maps(seen.model, seen.answers, seen.wish.pair, colours),
        *tables.losses(seen.answers, seen.model),
        headroom.figure(points, span, bounds, view, colours), _history_spoken(points, told), True,
        f"{words.count(len(points), 'point')} {view.span_words} · {told}",
        *tables.alerts(selectors.alerts(cluster), view, cluster.alert_ratio),
        *tables.plan(seen.model, seen.rates, cluster),
        *tables.model(seen.standing, seen.model), key,
    ]  # fmt: skip


def _history_spoken(points: Sequence[Point], told: str) -> str:
    if not points:
        return f"No headroom is known in this range. {told}"
    first, last = points[0].ratio, points[-1].ratio
    return f"Headroom went from {said.growth(first)} to {said.growth(last)}. {told}"


def register(app: Dash) -> None:
    """Callbacks of the page."""
    app.callback(
        [Output(*pair) for pair in _TOP], Input("url", "search"), Input("tick", "n_intervals"),
        Input("screen", "data"), State("url", "pathname"), State("burst-controls-drawn", "data"),
    )(refresh_top)  # fmt: skip
    app.callback(
        [Output(*pair) for pair in _REST], Input("url", "search"), Input("tick", "n_intervals"),
        State("url", "pathname"), State("burst-rest-drawn", "data"),
    )(refresh_rest)  # fmt: skip
