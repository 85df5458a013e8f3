"""All jobs, with what needs attention first."""

from __future__ import annotations

import json
from typing import Any

import dash_ag_grid as dag
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update
from django.utils import timezone

from analytics.model.activity import ActivityType
from frontend import freshness, words
from frontend.components import states
from frontend.request import actor
from frontend.state import View
from webapp.analysis.overview import PAGE_ROWS, SORTS, JobRow, overview

ROW_PX = 36
TILES = (
    ("all", "jobs", "all jobs"),
    ("quiet", "not reporting", "their newest data are older than three intervals"),
    ("error", "with a data problem", "their source cannot be read"),
    ("unlimited", "without a limiter", "no critical path found in the last 15 min"),
)
NARROW = ("name", "limiter", "cp")


def layout() -> Any:
    """The page before its values come."""
    return html.Div(
        className="overview",
        children=[
            html.Div(
                className="page-head",
                children=[
                    html.H1("Jobs"),
                    html.Label("Search a job by name", htmlFor="search", className="unseen"),
                    dcc.Input(id="search", type="search", placeholder="Search a job ( / )", className="search"),
                ],
            ),
            html.Div([_tile(*tile) for tile in TILES], className="tiles", role="group"),
            html.Div(id="jobs-empty", hidden=True),
            html.Div(states.skeleton(ROW_PX * 6), id="jobs-loading"),
            html.Div([_grid(), html.Nav(id="pager", className="pager", **{"aria-label": "Pages"})],
                     id="jobs", className="jobs", hidden=True),
        ],
    )  # fmt: skip


def _tile(key: str, label: str, title: str) -> Any:
    return html.Button(
        className="tile", id=f"tile-{key}", title=title,
        children=[html.Span("–", id=f"tile-{key}-count", className="tile-count"), html.Span(label)],
        **{"data-set": '{"show": null}' if key == "all" else f'{{"show": "{key}"}}', "aria-pressed": "false"},
    )  # fmt: skip


def _grid() -> Any:
    surface = {
        "backgroundColor": "var(--weir-card)", "foregroundColor": "var(--weir-text)",
        "borderColor": "var(--weir-line)", "headerBackgroundColor": "var(--weir-card)",
        "headerTextColor": "var(--weir-muted)", "rowHoverColor": "var(--weir-page)",
        "accentColor": "var(--weir-accent)", "rowHeight": ROW_PX, "headerHeight": ROW_PX,
        "fontFamily": "inherit", "fontSize": 14, "wrapperBorderRadius": 6,
        "rangeSelectionBorderColor": "var(--weir-accent)",
    }  # fmt: skip
    return dag.AgGrid(
        id="jobs-grid",
        columnDefs=columns("wide", ""),
        rowData=[],
        getRowId="params.data.id",
        defaultColDef={
            "sortable": True,
            "resizable": True,
            "suppressMovable": True,
            "comparator": {"function": "weirKeepOrder"},
        },
        dashGridOptions={
            "theme": {"function": f"themeQuartz.withParams({surface})"},
            "suppressColumnVirtualisation": True,
            "animateRows": False,
            "suppressCellFocus": False,
            "tooltipShowDelay": 300,
            "ensureDomOrder": True,
        },
        style={"height": ROW_PX * 7, "width": "100%"},
    )


def columns(screen: str, query: str) -> list[dict[str, Any]]:
    """The table's columns; a narrow screen has the most important ones. The server sorts, over all pages."""
    sort = View.parse(query or "").sort
    right = {"type": "rightAligned", "cellClass": "number ag-right-aligned-cell"}
    every = [
        {"field": "name", "headerName": "Job", "cellRenderer": "JobLink", "minWidth": 110, "flex": 2},
        {"field": "engine", "headerName": "Engine", "minWidth": 90, "flex": 0.8, "tooltipField": "engine_full"},
        {"field": "fresh", "headerName": "Newest data", "cellRenderer": "Freshness", "minWidth": 160, "flex": 1.2},
        {"field": "limiter", "headerName": "Limited by", "cellRenderer": "Limiter", "minWidth": 120, "flex": 2.4},
        {"field": "cp", "headerName": "CP, %", "minWidth": 84, "flex": 0.6, **right},
        {"field": "spark", "headerName": "CP, last hour", "cellRenderer": "Sparkline", "minWidth": 136,
         "flex": 1, "sortable": False, "cellDataType": False},
        {"field": "unknown", "headerName": "Unknown, %", "minWidth": 128, "flex": 0.7, **right},
        {"field": "rate", "headerName": "Input, rows/s", "minWidth": 136, "flex": 0.8, **right},
    ]  # fmt: skip
    for column in every:
        if column["field"] == sort.removeprefix("-") and sort.removeprefix("-") in SORTS:
            column["sort"] = "desc" if sort.startswith("-") else "asc"
    return [column for column in every if screen == "wide" or column["field"] in NARROW]


def row(job: JobRow) -> dict[str, Any]:
    """One line of the table."""
    state = freshness.of(job.job, job.source_error, timezone.now())
    limiter = job.limiter
    if limiter is None:
        named = "cannot tell yet"
    elif limiter.activity == ActivityType.UNKNOWN:
        named = "cannot tell: unknown"
    else:
        named = words.activity(limiter.activity)
    return {
        "id": str(job.job.pk),
        "name": job.job.name,
        "engine": job.job.get_engine_display().split(" ")[0],
        "engine_full": job.job.get_engine_display(),
        "fresh": state.words,
        "state": state.code,
        "problem": job.source_error,
        "kind": limiter.activity.label if limiter else "",
        "limiter": f"{limiter.operator} · {named}" if limiter and limiter.operator else named,
        "cp": _percent(limiter.cp if limiter else None),
        "spark": [None if value is None else round(value, 3) for value in job.sparkline],
        "unknown": _percent(job.unknown_cp),
        "rate": None if job.input_rows_per_s is None else float(f"{job.input_rows_per_s:.3g}"),
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else float(f"{share * 100:.3g}")


def register(app: Dash) -> None:
    """Callbacks of the page."""
    counts = [Output(f"tile-{key}-count", "children") for key, _, _ in TILES]
    pressed = [Output(f"tile-{key}", "aria-pressed") for key, _, _ in TILES]
    app.callback(
        [
            Output("jobs-grid", "rowData"), Output("jobs-grid", "style"), Output("jobs", "hidden"),
            Output("jobs-empty", "children"), Output("jobs-empty", "hidden"), Output("jobs-loading", "hidden"),
            Output("pager", "children"),
            *counts, *pressed,
        ],
        Input("url", "search"), Input("tick", "n_intervals"), State("jobs-grid", "rowData"),
    )(refresh)  # fmt: skip
    app.callback(Output("jobs-grid", "columnDefs"), Input("screen", "data"), State("url", "search"))(columns)
    app.clientside_callback(ClientsideFunction("weir", "sorted"), Input("jobs-grid", "columnState"))
    app.callback(Output("search", "value"), Input("search", "id"), State("url", "search"))(
        lambda _, query: View.parse(query or "").search
    )


def refresh(query: str, _tick: int, before: list[dict[str, Any]]) -> list[Any]:
    """Table, tiles and stamp, read again."""
    view = View.parse(query or "")
    found = overview(
        actor(), timezone.now(), search=view.search, show=view.show, sort=view.sort, page=view.page
    )
    shown = [row(item) for item in found.rows]
    counts = [f"{found.counts[key]:,}" for key, _, _ in TILES]
    pressed = [str((view.show or "all") == key).lower() for key, _, _ in TILES]
    freshness.stamp()
    height = min(max(len(shown), 3) + 1, 18) * ROW_PX + 4
    return [
        no_update if shown == before else shown,
        {"height": height, "width": "100%"},
        not shown,
        None if shown else _nothing(view, bool(found.counts["all"])),
        bool(shown),
        True,
        _pager(found.row_count, view.page),
        *counts,
        *pressed,
    ]


def _pager(row_count: int, page: int) -> Any:
    """Which rows these are of how many, and the ways to the others; nothing if they fit one page."""
    last = max(0, row_count - 1) // PAGE_ROWS
    if last == 0:
        return None
    here = min(page, last)
    first = here * PAGE_ROWS
    return [
        _turn("‹ Earlier rows", here - 1 if here else None),
        html.Span(
            f"{first + 1:,} to {min(first + PAGE_ROWS, row_count):,} of {words.count(row_count, 'job')}"
        ),
        _turn("More rows ›", here + 1 if here < last else None),
    ]


def _turn(label: str, page: int | None) -> Any:
    if page is None:
        return html.Button(label, className="tool", disabled=True)
    return html.Button(
        label, className="tool", **{"data-set": json.dumps({"page": page + 1 if page else None})}
    )


def _nothing(view: View, others: bool) -> Any:
    if view.search or others:
        words_ = f"No job matches “{view.search}”." if view.search else "No job is in this state."
        return states.empty(words_, html.A("Show all jobs", href="/?search=&show=", className="primary"))
    return states.empty(
        "No job has reported yet",
        html.P("Jobs appear here by themselves, within seconds of their first records."),
        html.P("Ways to a first job:"),
        html.Ul(
            [
                html.Li("make run starts a demo stream; it takes about a minute until it shows."),
                html.Li(
                    [
                        "Follow the event logs of a Spark job that runs with ",
                        html.Code("spark.eventLog.enabled=true"),
                        ": ",
                        html.Code("manage.py add_source spark-event-log-directory DIRECTORY"),
                    ]
                ),
                html.Li([html.A("Upload a trace file", href="/upload"), " of any format Weir reads."]),
                html.Li(["Store a file of activities: ", html.Code("manage.py ingest FILE --job NAME")]),
                html.Li(
                    [
                        "Only want an answer for a file? ",
                        html.Code(
                            "python -m analytics critical-path FILE --format spark-event-log --window 1s"
                        ),
                    ]
                ),
            ]
        ),
    )
