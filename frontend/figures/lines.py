"""One line a group: workers, or operators. They have no colour of their own; the first one stands out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from frontend.figures import base
from frontend.figures.base import Figure
from frontend.figures.ranking import Series
from frontend.palette import Palette
from frontend.state import View
from webapp.analysis.shares import Steps

DASHES = ("solid", "solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
FEW_POINTS = 60
LABEL_GAP = 0.075
"""Least distance of two labels, in parts of the chart's height."""


def figure(series: Sequence[Series], steps: Steps, view: View, colours: Palette, profile: str) -> Figure:
    """CP per step as lines, numbered at their right end as in the list beside; the first one's profile is thin.

    ``profile`` says what the thin line is.
    """
    top = max((float(max(s.cp_steps[s.cp_steps == s.cp_steps], default=0)) for s in series), default=0.0)
    ceiling = min(1.0, max(0.005, top * 1.15))
    traces = [_line(i, item, steps, view, colours) for i, item in enumerate(series)]
    if series:
        traces.append(_profile(series[0], steps, view, colours, profile))
    return {
        "data": traces,
        "layout": base.layout(
            colours,
            margin={"l": 44, "r": 24, "t": 8, "b": 32},
            xaxis=base.time_axis(colours, steps, view),
            yaxis=base.share_axis(colours, ceiling),
            hovermode="x unified",
            annotations=_labels(series, ceiling, colours),
            meta=base.meta(steps, view),
            uirevision=base.uirevision(view),
        ),
    }


def _line(rank: int, item: Series, steps: Steps, view: View, colours: Palette) -> dict[str, Any]:
    first = rank == 0
    known = int((item.cp_steps == item.cp_steps).sum())
    return {
        **base.stepped(steps, view, item.cp_steps),
        "type": "scatter",
        "mode": "lines+markers" if known <= FEW_POINTS else "lines",
        "name": item.name,
        "line": {
            "shape": "hv",
            "width": 2.5 if first else 1.5,
            "dash": DASHES[min(rank, len(DASHES) - 1)],
            "color": colours.surface("accent" if first else "muted"),
        },
        "marker": {"size": 4},
        "hovertemplate": "%{y:.3p}",
    }


def _profile(item: Series, steps: Steps, view: View, colours: Palette, words: str) -> dict[str, Any]:
    return {
        **base.stepped(steps, view, item.profile_steps),
        "type": "scatter",
        "mode": "lines",
        "name": f"{item.name}, {words}",
        "line": {"shape": "hv", "width": 1, "color": colours.surface("accent")},
        "opacity": 0.6,
        "hovertemplate": "%{y:.3p}",
    }


def _labels(series: Sequence[Series], ceiling: float, colours: Palette) -> list[dict[str, Any]]:
    """The list's numbers at the right ends of the lines, moved apart where they would overlap."""
    ends = []
    for rank, item in enumerate(series):
        known = item.cp_steps[item.cp_steps == item.cp_steps]
        if len(known) and item.cp > 0:
            ends.append((float(known[-1]) / ceiling, rank))
    placed = spread([height for height, _ in ends])
    return [
        {
            "xref": "paper", "yref": "paper", "x": 1, "y": y, "xanchor": "left", "yanchor": "middle",
            "text": f"<b>{rank + 1}</b>" if rank == 0 else str(rank + 1), "showarrow": False, "xshift": 4,
            "font": {"size": 11, "color": colours.surface("accent" if rank == 0 else "muted")},
        }
        for (_, rank), y in zip(ends, placed, strict=True)
    ]  # fmt: skip


def spread(heights: Sequence[float], gap: float = LABEL_GAP) -> list[float]:
    """Heights (0 to 1) moved up, then back under 1, so that neighbours are at least ``gap`` apart."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = [0.0] * len(heights)
    low = 0.0
    for i in order:
        placed[i] = max(heights[i], low)
        low = placed[i] + gap
    high = 1.0
    for i in reversed(order):
        placed[i] = min(placed[i], high)
        high = placed[i] - gap
    return placed
