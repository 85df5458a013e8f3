"""One window's timeline: what every worker did, which part of it was critical, and the windows around it."""

from __future__ import annotations

import json
import re
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, Patch, State, ctx, dcc, html, no_update

from analytics.model import edges as edge_bytes
from analytics.model.results import WindowEdges
from frontend import freshness, palette, words
from frontend.components import panel, segment, states
from frontend.figures import lanes, rows, strip
from frontend.request import actor
from frontend.state import View
from webapp.analysis import selectors, timelines
from webapp.analysis.models import Timeline, TimelineState
from webapp.jobs.models import Job

NEIGHBOURS = 60
POLL_MS = 400
STRIP_PX = 96
WAIT_PX = 320
LANES_CONFIG = {"displayModeBar": False, "responsive": True, "doubleClick": "reset", "scrollZoom": True}


def layout() -> Any:
    """The tab before its values come."""
    return html.Div(
        className="timeline",
        children=[
            dcc.Interval(id="poll", interval=POLL_MS, disabled=True),
            dcc.Store(id="lanes-drawn"),
            dcc.Store(id="window-chosen"),
            panel.panel("strip", "Which window?", height_px=STRIP_PX, listed=False, extra=_window_buttons()),
            html.Div(id="timeline-message"),
            html.Div(
                className="timeline-body",
                id="timeline-body",
                children=[
                    panel.panel(
                        "lanes",
                        "Who did what, and what was critical?",
                        height_px=WAIT_PX,
                        listed=False,
                        extra=_lane_choice(),
                        config=LANES_CONFIG,
                    ),
                    html.Aside(
                        className="card side",
                        children=[html.Div(_segment_buttons(), className="steps"), html.Div(id="side")],
                        **{"aria-label": "Selected segment"},
                    ),
                ],
            ),
        ],
    )


def _button(label: str, act: str, title: str) -> Any:
    return html.Button(label, className="tool", title=title, id=f"go-{act}", **{"data-act": act})


def _window_buttons() -> Any:
    newest = html.Button(
        "Newest",
        className="tool",
        id="go-newest",
        **{"data-set": json.dumps({"window": None, "segment": None})},
    )
    steps = [
        _button("‹ Earlier", "window-previous", "Window before ( [ )"),
        _button("Later ›", "window-next", "Window after ( ] )"),
    ]
    return html.Div([*steps, newest], className="tools")


def _segment_buttons() -> Any:
    return [
        _button("‹ Previous critical", "previous", "Previous segment of the critical path (p)"),
        _button("Next critical ›", "next", "Next segment of the critical path (n)"),
    ]


def _lane_choice() -> Any:
    return html.Button(
        "All workers",
        id="lanes-all",
        className="tool",
        hidden=True,
        **{"data-set": json.dumps({"lanes": "all"})},
    )


def register(app: Dash) -> None:
    """Callbacks of the tab."""
    app.callback(
        Output("chart-strip", "figure"), Output("under-strip", "children"), Output("frame-strip", "aria-label"),
        Output("wait-strip", "hidden"), Output("window-chosen", "data"), Output("poll", "disabled"),
        Output("timeline-message", "children"), Output("timeline-body", "hidden"), Output("lanes-drawn", "data"),
        Output("lanes-all", "hidden"),
        Output("chart-lanes", "figure"), Output("chart-lanes", "style"), Output("frame-lanes", "style"),
        Output("under-lanes", "children"), Output("frame-lanes", "aria-label"), Output("wait-lanes", "hidden"),
        Input("url", "search"), Input("tick", "n_intervals"), Input("poll", "n_intervals"),
        Input("screen", "data"), State("url", "pathname"), State("lanes-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("side", "children"), Output("chart-lanes", "figure", allow_duplicate=True),
        Input("url", "search"), Input("lanes-drawn", "data"), State("url", "pathname"),
        prevent_initial_call=True,
    )(select)  # fmt: skip
    app.callback(
        Output("poll", "disabled", allow_duplicate=True),
        Input("timeline-retry", "n_clicks"), State("url", "search"), State("url", "pathname"),
        prevent_initial_call=True,
    )(retry)  # fmt: skip
    for function, chart in (("lanes", "chart-lanes"), ("strip", "chart-strip")):
        app.clientside_callback(ClientsideFunction("weir", function), Input(chart, "clickData"))
    app.clientside_callback(ClientsideFunction("weir", "chosen"), Input("window-chosen", "data"))


def _job(path: str) -> Job:
    job = selectors.job(actor(), int(re.findall(r"\d+", path)[0]))
    if job is None:
        raise LookupError(f"no job at {path}")
    return job


def refresh(query: str, _tick: int, _poll: int, screen: str, path: str, drawn: str | None) -> list[Any]:
    """Strip of windows and lanes of the chosen one; lanes only when they would look different."""
    from frontend.pages.job import draw_head

    view, job = View.parse(query or ""), _job(path)
    if ctx.triggered_id != "poll":  # a poll asks for the lanes only
        draw_head(selectors.limits(job, *view.span(freshness.now_ns())), view)
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    if chosen is None:
        nothing = states.empty("No window yet", "A timeline appears with the job's first analysed window.")
        return [
            no_update,
            "No window yet",
            "No window yet.",
            False,
            None,
            True,
            nothing,
            True,
            *[no_update] * 8,
        ]
    narrow = screen == "narrow"
    head = _strip(job, chosen, view, narrow)
    row = timelines.timeline(job, chosen)
    if row is None or row.state == TimelineState.FAILED:
        why = row.error if row else "the window was analysed again"
        return [*head, True, _failed(why), True, None, True, *[no_update] * 6]
    if row.state == TimelineState.QUEUED:
        at = f"{view.time(chosen):%H:%M:%S.%f}"[:-3]
        waiting = f"Computing the timeline of {at} {view.zone_label} …"
        return [*head, False, None, False, None, True, *[no_update] * 3, waiting, waiting, False]
    key = f"{row.pk} {row.run_id} {chosen} {view.theme} {view.zone_label} {view.all_lanes} {narrow}"
    if key == drawn:
        return [*head, True, None, False, *[no_update] * 8]
    return [*head, True, None, False, key, *_lanes(job, row, view, narrow)]


def _strip(job: Job, chosen: int, view: View, narrow: bool) -> list[Any]:
    reach = NEIGHBOURS * job.window_ns
    windows = selectors.window_strip(job, chosen - reach, chosen + reach + job.window_ns)
    at = f"{view.time(chosen):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    here = next((w for w in windows if w[0] == chosen), None)
    if here is None or here[1] != "ok":
        found = f"no result: {words.status(here[1])}" if here else "no result"
    else:
        found = f"{here[3].replace('_', ' ')} {words.percent(here[2])} of critical paths"
    length = words.duration(job.window_ns)
    under = f"{at} {view.zone_label}, {length} long · {found} · bars: CP of each window's top activity"
    drawn = strip.figure(windows, chosen, job.window_ns, view, palette.of(view.theme), narrow)
    return [drawn, under, f"Window {at}: {found}.", True, str(chosen)]


def _failed(why: str) -> Any:
    return html.Div(
        className="state",
        role="alert",
        children=[
            html.H2("The timeline could not be computed"),
            html.P(why),
            html.Button("Try again", id="timeline-retry", className="primary"),
        ],
    )


def retry(clicks: int | None, query: str, path: str) -> Any:
    """Ask again for a timeline that failed."""
    job, view = _job(path), View.parse(query or "")
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    if not clicks or chosen is None:
        return no_update
    timelines.retry(job, chosen)
    return False


def _names(job: Job) -> tuple[dict[int, str], dict[int, str], dict[int, str]]:
    workers = selectors.workers(job)
    return {w.number: w.name for w in workers}, {w.number: w.host for w in workers}, selectors.operators(job)


def _edges(row: Timeline) -> WindowEdges:
    return edge_bytes.decode(bytes(row.payload or b""))


def _lanes(job: Job, row: Timeline, view: View, narrow: bool) -> list[Any]:
    edges = _edges(row)
    names, hosts, operators = _names(job)
    arranged = rows.arrange(edges, names, hosts, view.all_lanes, 13 if narrow else 19)
    span = row.start_ns, row.start_ns + job.window_ns
    drawn = lanes.figure(edges, arranged, operators, span, palette.of(view.theme), narrow)
    segments = int((edges.src == edges.dst).sum())
    messages = len(edges.src) - segments
    under = f"{words.count(segments, 'segment')}, {words.count(messages, 'message')} · outlined: the critical path"
    if drawn.left_out:
        under += f" · {drawn.left_out}"
    path = int(edges.on_path.sum())
    spoken = f"Timeline of {len(arranged.place)} workers, {under}: {words.count(path, 'segment')}."
    height = {"height": drawn.height_px}
    return [not arranged.left_out, drawn.figure, height, height, under, spoken, True]


def select(query: str, drawn: str | None, path: str) -> tuple[Any, Any]:
    """The side panel, and the frame around the selected segment."""
    if drawn is None:
        return [], no_update
    view, job = View.parse(query or ""), _job(path)
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    row = timelines.timeline(job, chosen) if chosen is not None else None
    if row is None or row.state != TimelineState.READY:
        return [], no_update
    edges = _edges(row)
    names, hosts, operators = _names(job)
    picked = view.segment if view.segment is not None and 0 <= view.segment < len(edges.src) else None
    arranged = rows.arrange(edges, names, hosts, view.all_lanes)
    figure = Patch()
    figure["data"][0] = lanes.selection(edges, arranged, picked, row.start_ns, palette.of(view.theme))
    if picked is None:
        return segment.path(edges), figure
    return segment.details(edges, picked, names, hosts, operators, row.start_ns, view), figure
