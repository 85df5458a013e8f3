"""Horizontal bars, a row each: for rankings whose names are read from top to bottom."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette

ROW_PX = 30
MARGIN_PX = 44
NAME = 22
NARROW_NAME = 14


def height(rows: int) -> int:
    """How high a chart of so many rows is, with its axis."""
    return MARGIN_PX + ROW_PX * max(rows, 2)


def labels(names: Sequence[str], narrow: bool) -> list[str]:
    """Names that fit beside the bars; equal ones are told apart by spaces nobody sees."""
    most = NARROW_NAME if narrow else NAME
    seen: dict[str, int] = {}
    found = []
    for name in names:
        short = name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2) :]}"
        seen[short] = seen.get(short, 0) + 1
        found.append(short + "\u200b" * (seen[short] - 1))
    return found


def bar(name: str, y: Sequence[str], x: Sequence[float], colour: Any, **more: Any) -> dict[str, Any]:
    """One bar a row."""
    return {
        "type": "bar", "orientation": "h", "name": name, "y": list(y), "x": [round(v, 6) for v in x],
        "marker": {"color": colour}, **more,
    }  # fmt: skip


def leads_to(changes: Sequence[Mapping[str, str | None]]) -> list[str]:
    """``customdata`` of bars: a click on one makes these changes to the address."""
    return [json.dumps(item) for item in changes]


def figure(
    traces: Sequence[dict[str, Any]], rows: Sequence[str], colours: Palette, narrow: bool, **more: Any
) -> Figure:
    """The chart: the first row on top, an axis of shares below."""
    return {
        "data": list(traces),
        "layout": base.layout(
            colours,
            margin={"l": 118 if narrow else 178, "r": 16, "t": 4, "b": MARGIN_PX - 12},
            xaxis=base.axis(
                colours, **{"tickformat": ".2~p", "rangemode": "tozero", "fixedrange": True, "nticks": 4, **more}
            ),
            yaxis=base.axis(
                colours, type="category", categoryorder="array", categoryarray=list(rows), autorange="reversed",
                fixedrange=True, showgrid=False, tickfont={"color": colours.surface("text"), "size": 12},
            ),
            dragmode=False,
            barmode="overlay",
            bargap=0.35,
            hovermode="closest",
            uirevision="bars",
        ),
    }  # fmt: skip
