"""Predicted against observed, with the line on which a prediction came true, and how the errors are spread."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from frontend import words
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette
from webapp.reconfigurations.calibrating import RATE, error
from webapp.reconfigurations.selectors import Calibration

BAND = 0.1
BINS = (-0.3, -0.2, -0.1, -0.05, -0.03, -0.01, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3)
SIGNS = ("circle", "square", "diamond", "triangle-up", "x", "star")
SHADES = ("accent", "open", "good", "warn", "text", "muted")


def scatter(points: Sequence[Calibration], what: str, colours: Palette) -> Figure:
    """Every judged number: predicted to the right, observed upwards; a policy has a sign and a colour."""
    shown = [point for point in points if point.what == what and error(point) is not None]
    top = 1.1 * max((max(point.predicted or 0, point.after or 0) for point in shown), default=1.0)
    policies = sorted({point.policy for point in shown})
    band = [{
        "type": "scatter", "mode": "lines", "x": [0, top, top, 0], "hoverinfo": "skip", "showlegend": False,
        "y": [0, top * (1 + BAND), top * (1 - BAND), 0] if what == RATE else [BAND, top + BAND, top - BAND, -BAND],
        "fill": "toself", "fillcolor": _faint(colours.surface("open")), "line": {"width": 0},
    }, {
        "type": "scatter", "mode": "lines", "x": [0, top], "y": [0, top], "hoverinfo": "skip", "showlegend": False,
        "line": {"color": colours.surface("text"), "width": 1},
    }]  # fmt: skip
    dots = [_dots(shown, policy, rank, what, colours) for rank, policy in enumerate(policies)]
    form = {"tickformat": "~s" if what == RATE else ".0%", "range": [0, top], "fixedrange": True, "nticks": 6}
    return {
        "data": [*band, *dots],
        "layout": base.layout(
            colours, showlegend=len(policies) > 1, dragmode=False, hovermode="closest",
            margin={"l": 60, "r": 12, "t": 8, "b": 48}, legend={"x": 0.02, "y": 0.98, "bgcolor": "rgba(0,0,0,0)"},
            xaxis=base.axis(colours, title=_axis_title("predicted", what), **form),
            yaxis=base.axis(colours, title=_axis_title("observed", what), **form),
        ),
    }  # fmt: skip


def _dots(
    points: Sequence[Calibration], policy: str, rank: int, what: str, colours: Palette
) -> dict[str, Any]:
    mine = [point for point in points if point.policy == policy]
    return {
        "type": "scatter", "mode": "markers", "name": words.policy(policy),
        "x": [point.predicted for point in mine],
        "y": [point.after for point in mine], "text": [f"proposal {point.proposal_id}" for point in mine],
        "marker": {
            "size": 9, "symbol": SIGNS[rank % len(SIGNS)], "color": colours.surface(SHADES[rank % len(SHADES)]),
        },
        "hovertemplate": "%{text}: predicted %{x:.4~g}, observed %{y:.4~g}<extra></extra>" if what == RATE
        else "%{text}: predicted %{x:.0%}, observed %{y:.0%}<extra></extra>",
    }  # fmt: skip


def histogram(points: Sequence[Calibration], what: str, colours: Palette) -> Figure:
    """How many predictions were off by how much, what is outside the outermost bins in the bins beyond them."""
    counts = binned([off for point in points if point.what == what and (off := error(point)) is not None])
    return {
        "data": [{
            "type": "bar", "x": bin_words(what), "y": counts, "name": "predictions",
            "marker": {"color": colours.surface("accent")}, "hovertemplate": "%{x}: %{y}<extra></extra>",
        }],
        "layout": base.layout(
            colours, dragmode=False, margin={"l": 44, "r": 12, "t": 8, "b": 92}, bargap=0.1,
            xaxis=base.axis(colours, type="category", tickangle=-45, fixedrange=True,
                            title=_axis_title("off by", what)),
            yaxis=base.axis(
                colours, title=_title("predictions"), rangemode="tozero", fixedrange=True, tickformat=",d",
                dtick=-(-max(counts) // 5) or 1,
            ),
        ),
    }  # fmt: skip


def binned(errors: Sequence[float]) -> list[int]:
    """How many errors are below, between and above the edges."""
    counts = [0] * (len(BINS) + 1)
    for off in errors:
        counts[sum(off >= edge for edge in BINS)] += 1
    return counts


def bin_words(what: str) -> list[str]:
    """The bins as the axis names them."""
    unit = " %" if what == RATE else ""
    edges = [f"{100 * edge:+.0f}" for edge in BINS]
    between = [f"{low} to {high}{unit}" for low, high in pairwise(edges)]
    return [f"below {edges[0]}{unit}", *between, f"{edges[-1]}{unit} and more"]


def _axis_title(word: str, what: str) -> dict[str, Any]:
    if word == "off by":
        return _title("off by, % of the prediction" if what == RATE else "off by, points")
    return _title(f"{word}, records/s" if what == RATE else f"{word}, busy share")


def _title(text: str) -> dict[str, Any]:
    return {"text": text, "font": {"size": 12}, "standoff": 8}


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
