"""Headroom of a cluster over time, with the burst it must take and the threshold of the alert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View
from webapp.bursts.past import Point

HEIGHT_PX = 240
CEILING = 10.0
"""More than ten times more is as good as any: beyond it the axis says nothing."""


def figure(
    points: Sequence[Point], span: tuple[int, int], thresholds: tuple[float, float], view: View,
    colours: Palette,
) -> Figure:  # fmt: skip
    """Headroom of all together, and after the loss of the worst node; ``thresholds``: burst to take, alert."""
    surface = colours.surface
    times = [view.axis_ms(point.at_ns) for point in points]
    known = [min(point.ratio, CEILING) for point in points]
    lost = [None if p.least_after_loss is None else min(p.least_after_loss, CEILING) for p in points]
    burst, alert = thresholds
    top = max([*known, *(value for value in lost if value is not None), burst, alert, 0.1]) * 1.15
    low = min([0.0, *known, *(value for value in lost if value is not None)])
    marks = "lines+markers" if len(points) < 40 else "lines"
    traces: list[dict[str, Any]] = [
        _line("all can grow by", times, known, surface("accent"), 2.5, marks),
        _line("after the loss of the worst node", times, lost, surface("muted"), 1.5, marks, dash="dash"),
    ]
    return {
        "data": traces,
        "layout": base.layout(
            colours,
            margin={"l": 56, "r": 16, "t": 8, "b": 32},
            xaxis=base.axis(colours, type="date", nticks=4, tickangle=0, showgrid=False, fixedrange=True,
                            range=[view.axis_ms(span[0]), view.axis_ms(span[1])], hoverformat="%Y-%m-%d %H:%M:%S"),
            yaxis=base.axis(colours, tickformat=".0%", fixedrange=True, range=[low * 1.1, top], zeroline=True),
            hovermode="x unified",
            dragmode=False,
            shapes=[_level(burst, surface("text"), "dot"), _level(alert, surface("harm"), "solid")],
            annotations=[_note(burst, "configured burst", surface("text"), up=burst >= alert),
                         _note(alert, "alert below", surface("harm"), up=burst < alert)],
            uirevision=base.uirevision(view),
        ),
    }  # fmt: skip


def _line(
    name: str, times: Sequence[float], values: Sequence[float | None], colour: str, width: float, marks: str,
    dash: str = "solid",
) -> dict[str, Any]:  # fmt: skip
    return {
        "type": "scatter", "mode": marks, "name": name, "x": list(times), "y": list(values),
        "line": {"color": colour, "width": width, "dash": dash}, "marker": {"size": 4},
        "hovertemplate": "%{y:.3p}",
    }  # fmt: skip


def _level(value: float, colour: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": value, "y1": value,
        "line": {"color": colour, "width": 1, "dash": dash},
    }  # fmt: skip


def _note(value: float, text: str, colour: str, up: bool) -> dict[str, Any]:
    return {
        "xref": "paper", "x": 0, "xanchor": "left", "y": value, "yanchor": "bottom" if up else "top", "text": text,
        "showarrow": False, "font": {"size": 11, "color": colour},
    }  # fmt: skip
