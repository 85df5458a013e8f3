"""The lanes of one window: drawn in the detail its visible part needs, with the side panel and the minimap."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from frontend import palette, words
from frontend.addressed import job_at
from frontend.components import minimap, segment, states
from frontend.figures import detail, marks, rows
from frontend.figures import lanes as figure_of
from frontend.figures.detail import Detail
from frontend.figures.lanes import Names
from frontend.figures.rows import Choice, Rows
from frontend.state import View
from webapp.analysis import selectors, timelines
from webapp.analysis.edge_index import EdgeIndex
from webapp.analysis.models import Timeline, TimelineState
from webapp.jobs.models import Job
from webapp.reconfigurations.standing import applied_changes

SHORTEST_ZOOM_NS = 1000
OUTPUTS = {
    "poll_off": Output("poll", "disabled"),
    "message": Output("timeline-message", "children"),
    "hidden": Output("timeline-body", "hidden"),
    "figure": Output("lanes-figure", "data"),
    "chart_style": Output("chart-lanes", "style"),
    "frame_style": Output("frame-lanes", "style"),
    "under": Output("under-lanes", "children"),
    "spoken": Output("frame-lanes", "aria-label"),
    "waited": Output("wait-lanes", "hidden"),
    "minimap": Output("minimap", "children"),
    "path": Output("lanes-path", "data"),
    "side": Output("side", "children"),
    "chosen": Output("window-chosen", "data"),
}
Answer = dict[str, Any]


def register(app: Dash) -> None:
    """Callbacks of the lanes; what the mouse does on them is in ``assets/5_timeline.js``."""
    app.callback(
        OUTPUTS,
        Input("lanes-asked", "data"), Input("ask-again", "data"), Input("tick", "n_intervals"),
        Input("screen", "data"), State("url", "pathname"), State("lanes-drawn", "data"),
        prevent_initial_call=True,
    )(draw)  # fmt: skip
    app.callback(
        Output("poll", "disabled", allow_duplicate=True),
        Input("timeline-retry", "n_clicks"), State("url", "search"), State("url", "pathname"),
        prevent_initial_call=True,
    )(retry)  # fmt: skip
    app.callback(
        Output("lanes-download", "data"),
        Input("save-trace", "n_clicks"), State("url", "search"), State("url", "pathname"),
        prevent_initial_call=True,
    )(save)  # fmt: skip
    # Polls pass only while nothing is under way: Dash throws an answer away if the same is asked again meanwhile.
    app.clientside_callback(
        ClientsideFunction("weir", "again"), Output("ask-again", "data"), Input("poll", "n_intervals")
    )
    # What is drawn, only the browser knows: an answer may come after its tab was left and opened again.
    app.clientside_callback(
        ClientsideFunction("weir", "drawn"), Output("lanes-drawn", "data"), Input("lanes-figure", "data")
    )
    app.clientside_callback(ClientsideFunction("weir", "path"), Input("lanes-path", "data"))


def _answer(**changes: Any) -> Answer:
    return {name: changes.get(name, no_update) for name in OUTPUTS}


def draw(asked: str, _again: int, _tick: int, screen: str, path: str, drawn: dict[str, str] | None) -> Answer:
    """The window and the part of it that ``asked`` names (as an address does), or what there is instead.

    Only what would look different is sent.
    """
    view, job = View.parse(asked or ""), job_at(path)
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    if chosen is None:
        nothing = states.empty("No window yet", "A timeline appears with the job's first analysed window.")
        return _answer(message=nothing, hidden=True, poll_off=True)
    row = timelines.timeline(job, chosen)
    if row is None or row.state == TimelineState.FAILED:
        why = row.error if row else "the window was analysed again"
        return _answer(
            message=_failed(why),
            hidden=True,
            poll_off=True,
            figure={"keys": None},
            side=None,
            waited=True,
            chosen=str(chosen),
        )
    if row.state == TimelineState.QUEUED:
        at = f"{view.time(chosen):%H:%M:%S.%f}"[:-3]
        waiting = f"Computing the timeline of {at} {view.zone_label} …"
        return _answer(
            message=None, hidden=False, poll_off=False, figure={"keys": None}, waited=False, under=waiting,
            spoken=waiting, chosen=str(chosen),
        )  # fmt: skip
    shown = _Shown(job, row, view, screen == "narrow")
    return _answer(
        message=None, hidden=False, poll_off=True, chosen=str(chosen), **shown.changes(drawn or {})
    )


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
    job, view = job_at(path), View.parse(query or "")
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    if not clicks or chosen is None:
        return no_update
    timelines.retry(job, chosen)
    return False


def save(clicks: int | None, query: str, path: str) -> Any:
    """The whole window as a Chrome trace, if it is computed."""
    job, view = job_at(path), View.parse(query or "")
    chosen = selectors.nearest_window_ns(job, view.window_ns)
    row = None if chosen is None else timelines.timeline(job, chosen)
    if not clicks or row is None or row.state != TimelineState.READY:
        return no_update
    return dcc.send_bytes(timelines.as_chrome_trace(row), f"weir-{job.pk}-{chosen}.trace.json")


def zoomed(view: View, start_ns: int, width_ns: int) -> tuple[int, int]:
    """The visible part of the window, inside it and not too short to be drawn."""
    if view.zoom_ns is None:
        return start_ns, start_ns + width_ns
    from_ns = min(view.zoom_ns[0], max(0, width_ns - SHORTEST_ZOOM_NS))
    to_ns = max(min(view.zoom_ns[1], width_ns), from_ns + SHORTEST_ZOOM_NS)
    return start_ns + from_ns, start_ns + to_ns


class _Shown:
    """A window that is ready, as the address wants it."""

    def __init__(self, job: Job, row: Timeline, view: View, narrow: bool) -> None:
        self.view, self.narrow, self.start_ns, self.width_ns = view, narrow, row.start_ns, job.window_ns
        self.colours = palette.of(view.theme)
        self.index: EdgeIndex = timelines.opened(row)
        edges = self.index.edges
        self.picked = picked = view.segment.find(self.index)
        workers = selectors.workers(job)
        self.changed = applied_changes(job, self.start_ns, self.start_ns + self.width_ns)
        self.names = Names(
            {w.number: w.name for w in workers}, {w.number: w.host for w in workers}, selectors.operators(job)
        )
        ends = () if picked is None else (int(edges.src[picked]), int(edges.dst[picked]))
        choice = Choice(view.lanes_by_cp, view.find, view.critical_lanes, view.all_lanes, ends)
        self.rows: Rows = rows.arrange(
            self.index, self.names.workers, self.names.hosts, choice, 13 if narrow else 28
        )
        self.span = zoomed(view, row.start_ns, job.window_ns)
        self.window_key = f"{row.pk} {row.run_id} {view.theme}"
        shown = blake2b(
            "\n".join([*self.rows.titles, self.rows.left_out, *map(repr, self.changed)]).encode(),
            digest_size=8,
        ).hexdigest()
        self.lanes_key = f"{self.window_key} {narrow} {self.span} {shown}"
        self.side_key = f"{self.window_key} {picked} {view.zone_label}"

    def changes(self, drawn: dict[str, str]) -> Answer:
        """What is not yet drawn. Its figure names what the browser must have ``drawn`` for it to be enough."""
        changed: Answer = {}
        picture: Answer = {}
        keys = {"window": self.window_key, "lanes": self.lanes_key, "side": self.side_key}
        if drawn == keys:
            return changed
        if drawn.get("window") != keys["window"]:
            window = self.start_ns, self.start_ns + self.width_ns
            changed |= {"minimap": minimap.minimap(self.index, window, self.colours), "path": self._path()}
        if drawn.get("lanes") != keys["lanes"]:
            picture, around = self._lanes()
            changed |= around
        if drawn.get("side") != keys["side"]:
            changed |= {"side": self._side()}
            picture = picture or {"selection": self._selection()}
        return changed | {"figure": {**picture, "keys": keys, "since": drawn or None}}

    def _selection(self) -> dict[str, Any]:
        return figure_of.selection(self.index.edges, self.rows, self.picked, self.start_ns, self.colours)

    def _path(self) -> Answer:
        """The critical path in order of time, for stepping along it; ns from the window's start on."""
        edges, path = self.index.edges, self.index.path
        return {
            "span_ns": self.width_ns,
            "ids": path.tolist(),
            "from_ns": (edges.src_ns[path] - self.start_ns).tolist(),
            "to_ns": (edges.dst_ns[path] - self.start_ns).tolist(),
        }

    def _lanes(self) -> tuple[Answer, Answer]:
        """The picture, and what changes around it."""
        edges, view = self.index.edges, self.view
        columns = figure_of.COLUMNS["narrow" if self.narrow else "wide"]
        found = detail.detail(self.index, self.rows, self.span, columns)
        drawn = figure_of.figure(
            edges, self.rows, found, self.names, self.start_ns, self.colours, self.narrow
        )
        drawn.figure["data"][0] = self._selection()
        figure = marks.mark(drawn.figure, self.changed, lambda ns: (ns - self.start_ns) / 1e6, self.colours)
        under = self._under(found)
        where = (
            "" if view.zoom_ns is None else f", {words.duration(self.span[1] - self.span[0])} of the window"
        )
        path = int(edges.on_path.sum())
        spoken = (
            f"Timeline of {len(self.rows.workers)} workers{where}, {under}: {words.count(path, 'segment')}."
            f"{marks.spoken(self.changed, view)}"
        )
        height = {"height": drawn.height_px}
        around = {
            "chart_style": height, "frame_style": height, "under": under, "spoken": spoken, "waited": True
        }  # fmt: skip
        return {"figure": figure}, around

    def _under(self, found: Detail) -> str:
        if not len(self.rows.workers):
            return f"No worker fits: {self.rows.left_out}."
        segments = sum(map(len, (found.critical, found.others, found.merged, found.merged_critical)))
        messages = sum(map(len, (found.critical_messages, found.messages, found.left_out))) + found.elsewhere
        counted = f"{words.count(segments, 'segment')}, {words.count(messages, 'message')} in view"
        parts = [counted, "outlined: the critical path", words.series(found.words()), self.rows.left_out]
        return " · ".join(part for part in parts if part)

    def _side(self) -> Any:
        edges = self.index.edges
        if self.picked is None:
            return segment.path(edges)
        names = self.names
        return segment.details(
            edges, self.picked, names.workers, names.hosts, names.operators, self.start_ns, self.view
        )
