"""The places Weir asks by itself: adding them, and how each stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update, set_props
from django.core.exceptions import ValidationError

from frontend import freshness, words
from frontend.components import states
from frontend.components.facts import choice
from frontend.pages.connections import parts
from frontend.request import actor
from frontend.state import View, parameter
from webapp.telemetry.connections import services
from webapp.telemetry.connections.policies import may_change
from webapp.telemetry.connections.selectors import Connection, connections, described
from webapp.telemetry.connections.selectors import State as Standing
from webapp.telemetry.connections.wanted import DEFAULT_INTERVAL_S, INTERVAL_BOUNDS_S, Wanted
from webapp.telemetry.models import Source, SourceKind

MOST_SHOWN = 200
KIND_WORDS = {
    SourceKind.FLINK: "Flink cluster",
    SourceKind.SPARK_EVENT_LOG_DIRECTORY: "Directory of Spark event logs",
    SourceKind.OPENMETRICS: "OpenMetrics endpoint",
    SourceKind.AUTOSCALER: "Flink autoscaler",
}
EXPECTED = {
    SourceKind.FLINK: ("Address of its REST API", "http://jobmanager:8081"),
    SourceKind.SPARK_EVENT_LOG_DIRECTORY: ("Directory, as the workers see it", "/var/log/spark-events"),
    SourceKind.OPENMETRICS: ("Address of the endpoint", "http://taskmanager:9249/metrics"),
    SourceKind.AUTOSCALER: (
        "Address of its tables in PostgreSQL, without the password",
        "postgresql://reader@database:5432/autoscaler",
    ),
}
STANDING = {
    Standing.CONNECTED: ("live", "● connected"),
    Standing.WAITING: ("", "◌ waiting for the first answer"),
    Standing.FAILING: ("error", "✕ cannot be read"),
    Standing.UNASKED: ("quiet", "▲ not asked: the workers are away"),
    Standing.PAUSED: ("", "❚❚ paused"),
    Standing.ENDED: ("finished", "✓ ended"),
}
FIELDS = {"location": "Address", "job": "Job", "interval_s": "Seconds between scrapes", "kind": "Kind"}


def kind_of(query: str) -> SourceKind:
    """What the form adds, by the address of the page."""
    asked = parameter(query, "kind")
    return next((kind for kind in KIND_WORDS if kind == asked), SourceKind.FLINK)


def form() -> list[Any]:
    """How to add one, for those who may."""
    if not may_change(actor()):
        return [html.P("Only administrators can add, pause and remove sources.", className="muted")]
    low, high = INTERVAL_BOUNDS_S
    location = dcc.Input(id="source-location", type="text", maxLength=1000, autoComplete="off")
    interval = dcc.Input(id="source-interval", type="number", min=low, max=high, value=DEFAULT_INTERVAL_S)
    return [
        html.Section(
            className="card connection-form",
            children=[
                html.H2("Add a source"),
                html.Div(id="source-kinds"),
                html.Div(
                    [
                        html.Div(
                            [html.Label("Address", htmlFor="source-location", id="source-label"), location],
                            className="field long",
                        ),
                        html.Div(
                            [
                                parts.field("Job", "source-job", dcc.Input(id="source-job", maxLength=200)),
                                parts.field("Seconds between scrapes", "source-interval", interval),
                            ],
                            id="source-more", className="connection-fields", hidden=True,
                        ),
                        html.Button("Add", id="source-add", className="primary"),
                    ],
                    className="connection-fields",
                ),
                html.Div(id="source-said", role="alert"),
            ],
            **{"aria-label": "Add a source"},
        )
    ]  # fmt: skip


def chosen(query: str) -> list[Any]:
    """The form for the kind in the address."""
    kind = kind_of(query or "")
    first = SourceKind.FLINK
    options = [
        (label, {"kind": None if key == first else key.value}, key == kind)
        for key, label in KIND_WORDS.items()
    ]
    label, example = EXPECTED[kind]
    return [choice("Kind", options), label, example, kind != SourceKind.OPENMETRICS]


def refresh(query: str, _tick: int, drawn: str | None) -> list[Any]:
    """The list, read again."""
    view = View.parse(query or "")
    rows = list(connections(actor()).order_by("-id")[:MOST_SHOWN])
    found = described(actor(), rows)
    freshness.stamp()
    parts.say(sentence(found))
    return parts.changed("sources", drawn, _listed(found, view))


def sentence(found: Sequence[Connection]) -> str:
    """How all of them stand, in one line."""
    failing = [item for item in found if item.state == Standing.FAILING]
    unasked = sum(item.state == Standing.UNASKED for item in found)
    if not found:
        return "Weir asks nobody yet: add a source, or have programs send with a token."
    if failing:
        which = failing[0].source
        rest = f", and {len(failing) - 1} more" if len(failing) > 1 else ""
        count = f"{len(failing)} of {words.count(len(found), 'source')} cannot be read"
        return f"{count}: {which.location}{rest}."
    if unasked:
        return f"{unasked} of {words.count(len(found), 'source')} is not asked: the workers are away."
    connected = sum(item.state == Standing.CONNECTED for item in found)
    return f"{connected} of {words.count(len(found), 'source')} connected, none failing."


def _listed(found: Sequence[Connection], view: View) -> Any:
    if not found:
        return states.empty(
            "No source yet",
            html.P("Weir follows a Flink cluster by the address of its REST API, Spark jobs by their event logs, "
                   "and anything with metrics by its OpenMetrics endpoint."),
            html.P("Programs that send telemetry by themselves need no source but a token."),
        )  # fmt: skip
    change = may_change(actor())
    return html.Ul([_row(item, view, change) for item in found], className="sources")


def _row(item: Connection, view: View, change: bool) -> Any:
    source = item.source
    code, standing = STANDING[item.state]
    head = [
        html.Span(standing, className=f"state-word {code}"),
        html.Span(source.get_kind_display(), className="muted"),
        html.Code(source.location, className="where"),
    ]
    if change:
        head.append(html.Div(_tools(source), className="tools"))
    return html.Li(
        [html.Div(head, className="source-head"), *_details(item, view)],
        className="card source",
        key=str(source.pk),
        id=f"source-{source.pk}",
    )


def _tools(source: Source) -> list[Any]:
    about = source.location
    turn = ("Resume", "resume") if source.paused else ("Pause", "pause")
    tools = [] if source.paused else [parts.button("Ask now", {"do": "poll", "id": source.pk}, about)]
    question = f"Weir stops asking {about}. Its jobs and all they reported stay."
    return [
        *tools,
        parts.button(turn[0], {"do": turn[1], "id": source.pk}, about),
        parts.button("Remove…", {"do": "remove", "id": source.pk}, about, question),
    ]


def _details(item: Connection, view: View) -> list[Any]:
    source = item.source
    lines: list[Any] = []
    if item.state == Standing.FAILING:
        again = ""
        if item.next_try is not None:
            again = (
                f" Failed {words.count(item.failures, 'time')}; next try at {parts.at(item.next_try, view)}."
            )
        lines.append(html.P([html.Span(source.error.rstrip(".") + ".", className="error"), again]))
    if item.trouble:
        count = words.count(item.failing_count, "thing")
        lines.append(html.P(f"{count} found there cannot be read: {item.trouble}", className="error"))
    asked = f"last asked {parts.at(source.polled_at, view)}" if source.polled_at else "not asked yet"
    every = f", every {source.interval_s} s" if source.interval_s else ""
    lines.append(html.P([f"{asked}{every} · ", *_jobs(item)], className="muted"))
    return lines


def _jobs(item: Connection) -> list[Any]:
    if not item.job_count:
        return ["no jobs yet"]
    links: list[Any] = [f"{words.count(item.job_count, 'job')}: "]
    for job in item.jobs:
        links += [html.A(job.name, href=f"/jobs/{job.pk}"), ", "]
    hidden = item.job_count - len(item.jobs)
    return [*links[:-1], f" and {hidden:,} more"] if hidden > 0 else links[:-1]


def add(_clicks: int, _enter: int, location: str, job: str, interval_s: float, query: str) -> list[Any]:
    """Add what the form says."""
    kind = kind_of(query or "")
    scraped = kind == SourceKind.OPENMETRICS
    every_s = int(interval_s) if scraped and isinstance(interval_s, int | float) else 0
    wanted = Wanted(kind, str(location or ""), str(job or "") if scraped else "", every_s)
    try:
        source = services.add_connection(actor(), wanted)
    except ValidationError as error:
        return [parts.mistakes(error, FIELDS), location, job]
    except services.BusyError as error:
        return [html.P(f"{error}.", className="error"), location, job]
    _drawn_anew(query)
    return [html.P(f"Added {source.location}. It is asked within seconds."), "", ""]


def act(asked: dict[str, Any] | None, query: str) -> Any:
    """Pause, resume, ask or remove: what a button of the list sent."""
    if not asked:
        return no_update
    try:
        said = _act(str(asked.get("do")), int(asked["id"]))
    except Source.DoesNotExist:
        said = "That source is gone: somebody removed it."
    except (ValidationError, services.BusyError) as error:
        lines = parts.told(error) if isinstance(error, ValidationError) else [("", str(error))]
        said = f"Nothing was changed: {lines[0][1]}."
    _drawn_anew(query)
    return said


def _act(do: str, source_id: int) -> str:
    match do:
        case "pause" | "resume":
            source = services.pause_connection(actor(), source_id, do == "pause")
            return f"{'Paused' if source.paused else 'Resumed'} {source.location}."
        case "poll":
            return f"{services.poll_now(actor(), source_id).location} is asked within seconds."
        case "remove":
            services.remove_connection(actor(), source_id)
            return "Removed. Its jobs and all they reported stay."
    return "Nothing was done."


def _drawn_anew(query: str) -> None:
    children, digest = refresh(query, 0, None)
    set_props("sources-list", {"children": children})
    set_props("sources-drawn", {"data": digest})


def register(app: Dash) -> None:
    """Callbacks of this part."""
    app.callback(
        Output("sources-list", "children"), Output("sources-drawn", "data"), Input("url", "search"),
        Input("tick", "n_intervals"), State("sources-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("source-kinds", "children"), Output("source-label", "children"),
        Output("source-location", "placeholder"), Output("source-more", "hidden"), Input("url", "search"),
    )(chosen)  # fmt: skip
    app.callback(
        Output("source-said", "children"), Output("source-location", "value"), Output("source-job", "value"),
        Input("source-add", "n_clicks"), Input("source-location", "n_submit"),
        State("source-location", "value"), State("source-job", "value"), State("source-interval", "value"),
        State("url", "search"), running=[(Output("source-add", "disabled"), True, False)],
        prevent_initial_call=True,
    )(add)  # fmt: skip
    app.callback(
        Output("sources-done", "children"), Input("sources-do", "data"), State("url", "search"),
        prevent_initial_call=True,
    )(act)  # fmt: skip
