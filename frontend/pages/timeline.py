"""One window's timeline: what every worker did, which part of it was critical, and the windows around it.

Two callbacks answer at the same time: ``refresh`` here draws the strip of windows, ``lanes.draw`` the window
itself. Each follows its own part of the address, so that zooming asks for nothing but the lanes.
"""

from __future__ import annotations

import json
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from frontend import freshness, palette, words
from frontend.addressed import job_at
from frontend.components import panel
from frontend.figures import marks, strip
from frontend.pages import lanes
from frontend.state import View
from webapp.analysis import selectors
from webapp.jobs.models import Job
from webapp.reconfigurations.standing import applied_changes

NEIGHBOURS = 60
POLL_MS = 250
STRIP_PX = 96
WAIT_PX = 320
STORES = (
    "window-asked",
    "lanes-asked",
    "lanes-drawn",
    "lanes-figure",
    "lanes-path",
    "ask-again",
    "window-chosen",
)


def layout() -> Any:
    """The tab before its values come."""
    return html.Div(
        className="timeline",
        children=[
            dcc.Interval(id="poll", interval=POLL_MS, disabled=True),
            *[dcc.Store(id=name) for name in STORES],
            dcc.Download(id="lanes-download"),
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
                        extra=_zoom_buttons(),
                        above=[_lane_choices(), html.Div(id="minimap", className="minimap")],
                        chart=html.Div(
                            id="chart-lanes", style={"height": WAIT_PX}
                        ),  # assets/5_timeline.js draws
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


def _setting(label: str, changes: dict[str, str | None], title: str = "", **more: Any) -> Any:
    return html.Button(label, className="tool", title=title, **{"data-set": json.dumps(changes)}, **more)


def _window_buttons() -> Any:
    steps = [
        _button("‹ Earlier", "window-previous", "Window before ( [ )"),
        _button("Later ›", "window-next", "Window after ( ] )"),
    ]
    newest = _setting(
        "Newest", {"window": None, "segment": None, "zoom": None}, "Newest window", id="go-newest"
    )
    return html.Div([*steps, newest], className="tools")


def _segment_buttons() -> Any:
    return [
        _button("‹ Previous critical", "previous", "Previous segment of the critical path (p)"),
        _button("Next critical ›", "next", "Next segment of the critical path (n)"),
    ]


def _zoom_buttons() -> Any:
    return html.Div(
        className="tools",
        children=[
            _button("−", "zoom-out", "Zoom out ( - )"),
            _button("+", "zoom-in", "Zoom in ( + )"),
            _setting("Whole window", {"zoom": None}, "Show the whole window ( 0, or double click )", id="go-whole"),
            html.Button(
                "Perfetto", className="tool", id="save-trace",
                title="Save the whole window as a Chrome trace, which ui.perfetto.dev opens",
            ),
        ],
    )  # fmt: skip


def _lane_choices() -> Any:
    """Which lanes, in what order; each choice stands in the address."""
    pairs = [
        ("Order of the lanes", "order", ("By host", None), ("By CP", "cp")),
        ("Which lanes", "only", ("All workers", None), ("Critical only", "critical")),
        ("How many lanes", "lanes", ("At most 40", None), ("All, thin", "all")),
    ]
    find = html.Label(
        [
            html.Span("Show workers whose name, or host's name, contains", className="unseen"),
            dcc.Input(id="find-lanes", type="search", placeholder="Worker or host", autoComplete="off"),
        ]
    )
    groups = [
        html.Div(
            [_setting(label, {key: value}, id=f"{key}-{value or 'default'}") for label, value in options],
            className="choice",
            role="group",
            **{"aria-label": what},
        )
        for what, key, *options in pairs
    ]
    return html.Div([find, *groups], className="lane-choices")


def register(app: Dash) -> None:
    """Callbacks of the tab."""
    app.clientside_callback(
        ClientsideFunction("weir", "asked"),
        Output("window-asked", "data"), Output("lanes-asked", "data"),
        Input("url", "search"), State("window-asked", "data"), State("lanes-asked", "data"),
    )  # fmt: skip
    app.callback(
        Output("chart-strip", "figure"), Output("under-strip", "children"), Output("frame-strip", "aria-label"),
        Output("wait-strip", "hidden"),
        Input("window-asked", "data"), Input("tick", "n_intervals"), Input("screen", "data"),
        State("url", "search"), State("url", "pathname"),
        prevent_initial_call=True,
    )(refresh)  # fmt: skip
    app.clientside_callback(ClientsideFunction("weir", "strip"), Input("chart-strip", "clickData"))
    app.clientside_callback(ClientsideFunction("weir", "chosen"), Input("window-chosen", "data"))
    lanes.register(app)


def refresh(_asked: str, _tick: int, screen: str, query: str, path: str) -> list[Any]:
    """The head of the page, and the strip of windows."""
    from frontend.pages.job import draw_head

    view, job = View.parse(query or ""), job_at(path)
    draw_head(selectors.limits(job, *view.span(freshness.now_ns())), view)
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    if chosen is None:
        return [no_update, "No window yet", "No window yet.", False]
    return _strip(job, chosen, view, screen == "narrow")


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
    colours = palette.of(view.theme)
    drawn = strip.figure(windows, chosen, job.window_ns, view, colours, narrow)
    changes = applied_changes(job, chosen - reach, chosen + reach + job.window_ns)
    drawn = marks.mark(drawn, changes, view.axis_ms, colours)
    return [drawn, under, f"Window {at}: {found}.{marks.spoken(changes, view)}", True]
