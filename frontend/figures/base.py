"""What all charts share: surface, axes, hover, and how values become a compact trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from frontend.palette import Palette
from frontend.state import View
from webapp.analysis.shares import Steps

FONT = 'system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
Figure = dict[str, Any]
Values = NDArray[np.float64]


def layout(colours: Palette, **more: Any) -> dict[str, Any]:
    """The layout of any chart; ``more`` overrides."""
    surface = colours.surface
    base = {
        "paper_bgcolor": surface("card"),
        "plot_bgcolor": surface("card"),
        "font": {"family": FONT, "size": 12, "color": surface("text")},
        "margin": {"l": 44, "r": 12, "t": 8, "b": 32},
        "showlegend": False,
        "dragmode": "zoom",
        "hoverlabel": {
            "bgcolor": surface("card"),
            "bordercolor": surface("muted"),
            "font": {"color": surface("text"), "family": FONT, "size": 12},
            "namelength": 40,
        },
        "autosize": True,
    }
    return {**base, **more}


def axis(colours: Palette, **more: Any) -> dict[str, Any]:
    """An axis in the theme's colours."""
    surface = colours.surface
    return {
        "gridcolor": surface("grid"),
        "linecolor": surface("line"),
        "zerolinecolor": surface("line"),
        "tickfont": {"color": surface("muted"), "size": 11},
        "automargin": False,
        **more,
    }


def time_axis(colours: Palette, steps: Steps, view: View) -> dict[str, Any]:
    """The time axis of a page's charts: all show the same range."""
    first = view.axis_ms(steps.start_ns)
    return axis(
        colours,
        type="date",
        range=[first, first + steps.count * steps.width_ns / 1e6],
        nticks=4,  # four labels fit the narrowest card without being turned and cut off
        tickangle=0,
        tickformatstops=[
            {"dtickrange": [None, 1000], "value": "%H:%M:%S.%L"},
            {"dtickrange": [1000, 60_000], "value": "%H:%M:%S"},
            {"dtickrange": [60_000, None], "value": "%H:%M"},
        ],
        hoverformat="%Y-%m-%d %H:%M:%S",
        showgrid=False,
    )


def share_axis(colours: Palette, top: float | None = 1.0) -> dict[str, Any]:
    """A vertical axis of shares, from zero."""
    ends = {"range": [0, top]} if top else {"rangemode": "tozero"}
    return axis(colours, tickformat=".2~p", fixedrange=True, **ends)


def meta(steps: Steps, view: View) -> dict[str, Any]:
    """What the browser needs to turn a point of the chart into a time (ns as text: JavaScript rounds them)."""
    return {
        "start": str(steps.start_ns), "width": str(steps.width_ns), "count": steps.count,
        "x0": view.axis_ms(steps.start_ns),
    }  # fmt: skip


def stepped(steps: Steps, view: View, values: Values, fill: float | None = None) -> dict[str, Any]:
    """``x0``, ``dx`` and ``y`` of a line that holds each step's value until the next; NaN is a gap, or ``fill``."""
    listed = [fill if value != value else round(float(value), 5) for value in values]
    return {
        "x0": view.axis_ms(steps.start_ns),
        "dx": steps.width_ns / 1e6,
        "xtype": "scaled",
        "y": [*listed, listed[-1] if listed else None],
        "line": {"shape": "hv"},
    }


def uirevision(view: View) -> str:
    """Changes when the range is another one, so that a live update keeps what the reader zoomed."""
    return f"{view.range} {view.from_ns} {view.to_ns}"
