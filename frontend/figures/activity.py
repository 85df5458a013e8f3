"""Which kind of work is critical: CP stacked over time, the conventional profile beside it in outline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.model.activity import ActivityType
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.figures.ranking import Series
from frontend.palette import Palette
from frontend.state import View
from webapp.analysis.shares import Steps


def figure(
    series: Sequence[Series], steps: Steps, marks: Sequence[tuple[int, str]], view: View, colours: Palette
) -> Figure:
    """Stacked area of the activity types' CP (0 to 1) and one outlined column of the profile of the range.

    ``marks`` are ``(start ns, words)`` of micro-batches, drawn as ticks at the foot.
    """
    stack = [item for item in series if item.cp > 0]
    areas = [_area(item, steps, view, colours) for item in stack]
    columns = [_column(item, colours) for item in series if item.kind != ActivityType.WAITING]
    return {
        "data": [*areas, *columns, *_ticks(marks, view, colours)],
        "layout": base.layout(
            colours,
            xaxis={**base.time_axis(colours, steps, view), "domain": [0, 0.86]},
            yaxis=base.share_axis(colours),
            xaxis2=base.axis(colours, domain=[0.9, 1], anchor="y", fixedrange=True, showgrid=False),
            barmode="stack",
            hovermode="x unified",
            meta=base.meta(steps, view),
            uirevision=base.uirevision(view),
        ),
    }


def _area(item: Series, steps: Steps, view: View, colours: Palette) -> dict[str, Any]:
    colour = _colour(item, colours)
    trace = base.stepped(steps, view, item.cp_steps, fill=0.0)
    return {
        **trace,
        "type": "scatter",
        "mode": "lines",
        "name": item.name,
        "stackgroup": "cp",
        "line": {"shape": "hv", "width": 0.5, "color": colour},
        "fillcolor": colour,
        "hovertemplate": "%{y:.3p}",
    }


def _column(item: Series, colours: Palette) -> dict[str, Any]:
    return {
        "type": "bar",
        "x": ["profile"],
        "y": [round(item.profile, 5)],
        "xaxis": "x2",
        "name": f"{item.name}, profile",
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 1.5, "color": _colour(item, colours)}},
        "hovertemplate": f"{item.name}: %{{y:.3p}} of recorded time<extra></extra>",
    }


def _ticks(marks: Sequence[tuple[int, str]], view: View, colours: Palette) -> list[dict[str, Any]]:
    if not marks:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": [view.axis_ms(at_ns) for at_ns, _ in marks],
            "y": [0.012] * len(marks),
            "text": [text for _, text in marks],
            "marker": {"symbol": "line-ns-open", "size": 6, "color": colours.surface("text")},
            "hovertemplate": "%{text}<extra></extra>",
            "hoverinfo": "text",
        }
    ]


def _colour(item: Series, colours: Palette) -> str:
    return colours.activity(item.kind) if item.kind else colours.surface("muted")
