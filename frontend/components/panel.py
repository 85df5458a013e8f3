"""A chart with its question, what it rests on, its numbers as a list, and ways to take it away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from analytics.model.activity import ActivityType
from frontend import words
from frontend.components import states
from frontend.figures.ranking import Series

CHART_PX = 280
GRAPH_CONFIG = {"displayModeBar": False, "responsive": True, "doubleClick": False, "scrollZoom": False}


def panel(
    key: str,
    question: str,
    *,
    height_px: int = CHART_PX,
    listed: bool = True,
    extra: Any = None,
    above: Sequence[Any] = (),
    chart: Any = None,
) -> Any:
    """A panel before its values come; ``key`` names its parts: ``chart-key``, ``list-key``, ``under-key``.

    ``extra`` stands beside the tools, ``above`` between the head and the chart; ``chart`` replaces the one that
    Dash draws.
    """
    return html.Section(
        className="card panel",
        id=f"panel-{key}",
        **{"data-file": f"weir-{key}", "aria-labelledby": f"title-{key}"},
        children=[
            html.Div(
                className="panel-head",
                children=[
                    html.Div(
                        [
                            html.H2(question, id=f"title-{key}"),
                            html.P("…", id=f"under-{key}", className="under"),
                        ]
                    ),
                    html.Div([*([extra] if extra else []), *_tools(listed)], className="tools"),
                ],
            ),
            *above,
            html.Div(
                className="panel-body" if listed else "panel-body alone",
                children=[
                    html.Div(
                        className="chart",
                        id=f"frame-{key}",
                        role="img",
                        style={"height": height_px},
                        children=[
                            html.Div(states.skeleton(height_px), id=f"wait-{key}", className="wait"),
                            _graph(key, height_px) if chart is None else chart,
                        ],
                        **{"aria-label": f"{question} Loading."},
                    ),
                    *([html.Div(id=f"list-{key}", className="list")] if listed else []),
                ],
            ),
        ],
    )


def _graph(key: str, height_px: int) -> Any:
    return dcc.Graph(id=f"chart-{key}", config=GRAPH_CONFIG, figure=BLANK, style={"height": height_px})


BLANK = {
    "data": [],
    "layout": {
        "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)", "xaxis": {"visible": False},
        "yaxis": {"visible": False},
    },
}  # fmt: skip
"""A chart without values, behind its skeleton."""


def _tools(listed: bool) -> list[Any]:
    tools = [("csv", "CSV", "Save what is drawn as a table"), ("png", "PNG", "Save the chart as a picture")]
    if listed:
        tools.insert(0, ("table", "Table", "Show the numbers instead of the chart"))
    return [
        html.Button(label, className="tool", title=title, **{"data-act": act, "aria-pressed": "false"})
        if act == "table"
        else html.Button(label, className="tool", title=title, **{"data-act": act})
        for act, label, title in tools
    ]


def ranking(series: Sequence[Series], profile: str, empty: str, numbered: bool = False) -> Any:
    """The numbers of a chart: CP as a solid bar, the profile as an outline on it."""
    if not series:
        return html.P(empty, className="muted")
    widest = max(1e-9, *(max(item.cp, item.profile) for item in series))
    rows = [_row(i, item, widest, numbered) for i, item in enumerate(series)]
    members = next((item.members for item in series if item.members), ())
    head = html.Thead(
        html.Tr(
            [
                html.Th("Bar: CP, frame: " + profile, scope="col"),
                html.Th("CP, %", scope="col", title="critical participation: share of the critical paths"),
                html.Th(f"{profile}, %", scope="col"),
            ]
        )
    )
    return [html.Table([head, html.Tbody(rows)], className="ranking"), *_members(members)]


def _row(place: int, item: Series, widest: float, numbered: bool) -> Any:
    kind = ActivityType(item.kind).label if item.kind else "plain"
    sign = html.Span(place + 1, className="place") if numbered else html.I(className=f"swatch {kind}")
    bars = html.Div(
        className="bars",
        children=[
            html.I(className=f"fill {kind}", style={"width": f"{100 * item.cp / widest:.1f}%"}),
            html.I(className=f"outline {kind}", style={"width": f"{100 * item.profile / widest:.1f}%"}),
        ],
        **{"aria-hidden": "true"},
    )
    return html.Tr(
        [
            html.Th(
                [html.Div([sign, html.Span(fit(item.name), className="name")]), bars],
                scope="row",
                title=item.name,
            ),
            html.Td(figure_percent(item.cp), className="number strong"),
            html.Td(figure_percent(item.profile), className="number"),
        ]
    )


def _members(members: Sequence[tuple[str, float, float]]) -> list[Any]:
    if not members:
        return []
    items = [
        html.Li(f"{name}: {words.percent(cp)}, profile {words.percent(profile)}")
        for name, cp, profile in members[:100]
    ]
    if len(members) > 100:
        items.append(html.Li(f"and {len(members) - 100} more"))
    return [html.Details([html.Summary(f"The {len(members)} others"), html.Ul(items)], className="members")]


def figure_percent(share: float) -> str:
    """A share in percent to three significant digits, without the unit (it stands in the header)."""
    value = share * 100
    return (
        "0"
        if value == 0
        else f"{value:.0f}"
        if value >= 100
        else f"{value:.3g}"
        if value >= 0.01
        else "<0.01"
    )


def fit(name: str, length: int = 64) -> str:
    """A name that fits three lines of its row: both ends matter (``executor 1 core 17``), so the middle goes."""
    half = (length - 1) // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
