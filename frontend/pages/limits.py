"""What limits a job: the four summaries of its critical paths."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, html

from analytics.model.activity import ActivityType
from frontend import freshness, palette, words
from frontend.addressed import job_at
from frontend.components import panel, sentence
from frontend.figures import activity, channels, lines, marks
from frontend.figures.ranking import Series, ranked
from frontend.state import View
from webapp.analysis import selectors
from webapp.analysis.selectors import Limits
from webapp.analysis.shares import Share
from webapp.reconfigurations.standing import applied_changes

PANELS = {
    "activity": "Which kind of work is critical?",
    "worker": "Which worker holds the others up?",
    "operator": "Which operator should be rescaled?",
    "channel": "Which channel between workers matters?",
}
Filled = tuple[dict[str, Any], Any, str, str]
"""A panel's figure, list, subtitle and spoken line."""


def layout() -> Any:
    """The tab before its values come."""
    return html.Div(
        className="panels",
        children=[
            panel.panel("activity", PANELS["activity"]),
            panel.panel("worker", PANELS["worker"]),
            panel.panel("operator", PANELS["operator"], extra=_definitions()),
            panel.panel("channel", PANELS["channel"], height_px=320),
        ],
    )


def _definitions() -> Any:
    """The two ways to count an operator's share."""
    return html.Div(
        className="choice",
        role="group",
        children=[
            html.Button(
                "Processing",
                id="operators-processing",
                className="tool",
                **{"data-set": '{"operators": null}'},
            ),
            html.Button(
                "All types",
                id="operators-all",
                className="tool",
                **{"data-set": json.dumps({"operators": "all"})},
            ),
        ],
        **{"aria-label": "What counts for an operator"},
    )


def register(app: Dash) -> None:
    """Callbacks of the tab."""
    outputs = [
        Output(f"{part}-{key}", prop)
        for key in PANELS
        for part, prop in (
            ("chart", "figure"),
            ("list", "children"),
            ("under", "children"),
            ("frame", "aria-label"),
            ("wait", "hidden"),
        )
    ]
    outputs += [Output("operators-processing", "aria-pressed"), Output("operators-all", "aria-pressed")]
    app.callback(
        outputs,
        Input("url", "search"),
        Input("tick", "n_intervals"),
        Input("screen", "data"),
        State("url", "pathname"),
    )(refresh)
    for key in PANELS:
        if key == "channel":
            continue
        app.clientside_callback(
            ClientsideFunction("weir", "chart"),
            Input(f"chart-{key}", "clickData"),
            Input(f"chart-{key}", "relayoutData"),
            State(f"chart-{key}", "figure"),
        )


def refresh(query: str, _tick: int, _screen: str, path: str) -> list[Any]:
    """The four summaries, and the head of the page."""
    from frontend.pages.job import draw_head

    view = View.parse(query or "")
    found = selectors.limits(job_at(path), *view.span(freshness.now_ns()))
    draw_head(found, view)
    over_time = [_activity(found, view), _worker(found, view), _operator(found, view)]
    filled = [*_marked(over_time, found, view), _channel(found, view)]
    pressed = [str(not view.all_operator_types).lower(), str(view.all_operator_types).lower()]
    return [value for item in filled for value in (*item, True)] + pressed


def _marked(panels: list[Filled], found: Limits, view: View) -> list[Filled]:
    """The panels with every change that was applied within the range."""
    steps = found.coverage.steps
    changes = applied_changes(found.job, steps.start_ns, steps.end_ns)
    colours, more = palette.of(view.theme), marks.spoken(changes, view)
    return [
        (marks.mark(figure, changes, view.axis_ms, colours), listed, under, f"{spoken}{more}")
        for figure, listed, under, spoken in panels
    ]


def _under(found: Limits, view: View, unit: str) -> str:
    """Unit, window and completeness."""
    cover = found.coverage
    per = words.duration(cover.steps.width_ns)
    all_windows = cover.window_count + sum(cover.without_result.values())
    return f"{unit} · per {per} {view.span_words} · {cover.window_count:,} of {words.count(all_windows, 'window')}"


def _activity(found: Limits, view: View) -> Filled:
    total = sentence.recorded_time(found)
    silent = (ActivityType.WAITING, ActivityType.UNKNOWN)
    series = ranked(
        [share for share in found.activities if share.key[0] != ActivityType.WAITING],
        lambda share: words.activity(share.key[0]),
        total,
        kind=lambda share: share.key[0],
        always=lambda share: share.key[0] == ActivityType.UNKNOWN,
    )
    drawn = [item if item.kind not in silent else _without_profile(item) for item in series]
    steps = found.coverage.steps
    batches = selectors.micro_batches(found.job, steps.start_ns, steps.end_ns)
    figure = activity.figure(drawn, steps, batches, view, palette.of(view.theme))
    listed = panel.ranking(drawn, "profile", "No window with a result in this range.")
    return figure, listed, _under(found, view, "share of critical paths"), _spoken(PANELS["activity"], series)


def _without_profile(item: Series) -> Series:
    """Unknown time is nothing a profiler would have seen."""
    return Series(item.name, item.cp, 0.0, item.cp_steps, item.profile_steps * 0, item.kind)


def _worker(found: Limits, view: View) -> Filled:
    def name(share: Share) -> str:
        number = share.key[0]
        return found.worker_names.get(number, f"worker {number}")

    total = sum(share.conventional for share in found.workers)
    series = ranked(found.workers, name, total)
    figure = lines.figure(series, found.coverage.steps, view, palette.of(view.theme), "profile")
    listed = panel.ranking(series, "profile", "No worker is on a critical path in this range.", numbered=True)
    unit = f"share of critical paths, {words.count(len(found.workers), 'worker')}"
    return figure, listed, _under(found, view, unit), _spoken(PANELS["worker"], series)


def _operator(found: Limits, view: View) -> Filled:
    names = found.operator_names
    if view.all_operator_types:
        shares, total = _by_operator(found.operators), sentence.recorded_time(found)
        unit, profile = "all types: share of critical paths", "profile"
    else:
        shares, total = found.operator_processing, 1.0
        unit, profile = "processing only, per worker (SnailTrail)", "busy"
    series = ranked(shares, lambda share: names.get(share.key[0], "no operator"), total)
    figure = lines.figure(series, found.coverage.steps, view, palette.of(view.theme), profile)
    listed = panel.ranking(series, profile, "No operator is on a critical path in this range.", numbered=True)
    return figure, listed, _under(found, view, unit), _spoken(PANELS["operator"], series)


def _by_operator(shares: Sequence[Share]) -> list[Share]:
    """The activity types of each operator added up."""
    summed: dict[int, Share] = {}
    for share in shares:
        number = share.key[0]
        if number < 0:
            continue
        known = summed.get(number)
        summed[number] = share if known is None else Share(
            (number,), known.cp + share.cp, known.conventional + share.conventional,
            known.cp_steps + share.cp_steps, known.conventional_steps + share.conventional_steps,
        )  # fmt: skip
    return [
        Share((number,), s.cp, s.conventional, s.cp_steps, s.conventional_steps)
        for number, s in summed.items()
    ]


def _channel(found: Limits, view: View) -> Filled:
    names = found.worker_names

    def name(share: Share) -> str:
        return f"{names.get(share.key[0], '?')} → {names.get(share.key[1], '?')}"

    series = ranked(found.channels, name, sentence.recorded_time(found), kind=lambda share: share.key[2])
    figure = channels.figure(found.channels, names, view, palette.of(view.theme))
    listed = panel.ranking(series, "profile", "No message is on a critical path in this range.")
    channel_count = words.count(len(found.channels), "channel")
    unit = f"share of critical paths, sender (row) to receiver (column), {channel_count}"
    return figure, listed, _under(found, view, unit), _spoken(PANELS["channel"], series)


def _spoken(question: str, series: Sequence[Series]) -> str:
    critical = [f"{item.name} {words.percent(item.cp)}" for item in series if item.cp > 0]
    return f"{question} {words.series(critical) if critical else 'Nothing in this range'}."
