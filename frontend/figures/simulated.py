"""What is missed in simulated bursts, a line a strategy, against how strong the bursts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.model.burst_answers import SimulatedBursts, Strategy
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.figures.lines import spread
from frontend.palette import Palette

HEIGHT_PX = 340
DASHES = {
    Strategy.UNAWARE: "dot", Strategy.RESERVED: "dashdot", Strategy.ADAPTIVE: "dash",
    Strategy.ADAPTIVE_RESERVED: "longdash", Strategy.BARRE: "solid",
}  # fmt: skip


def figure(found: Sequence[SimulatedBursts], colours: Palette, narrow: bool) -> Figure:
    """The chart; lines are named at their right ends."""
    ends = {one.strategy: _missed(one) for one in found}  # the strongest bursts come last
    top = max([*map(_missed, found), 0.01]) * 1.1
    ratios = sorted({one.intensity_ratio for one in found})
    placed = dict(zip(ends, spread([value / top for value in ends.values()], 0.07), strict=True))
    return {
        "data": [_line(strategy, found, colours) for strategy in ends],
        "layout": base.layout(
            colours,
            margin={"l": 52, "r": 16 if narrow else 150, "t": 8, "b": 44},
            xaxis=base.axis(colours, tickformat="+.0%", range=[0, ratios[-1] * 1.02], fixedrange=True, nticks=6,
                            title={"text": "a bursting input grows by", "font": {"size": 12}}),
            yaxis=base.axis(colours, tickformat=".0%", range=[0, top], fixedrange=True),
            hovermode="x unified",
            dragmode=False,
            annotations=[] if narrow else [_label(name, y, colours) for name, y in placed.items()],
            showlegend=narrow,
            legend={"orientation": "h", "y": -0.25},
        ),
    }  # fmt: skip


def _missed(one: SimulatedBursts) -> float:
    return one.missed / one.offered if one.offered else 0.0


def _line(strategy: Strategy, found: Sequence[SimulatedBursts], colours: Palette) -> dict[str, Any]:
    mine = [one for one in found if one.strategy == strategy]
    barre = strategy is Strategy.BARRE
    return {
        "type": "scatter", "mode": "lines+markers", "name": str(strategy),
        "x": [one.intensity_ratio for one in mine], "y": [round(_missed(one), 6) for one in mine],
        "line": {"width": 3 if barre else 1.5, "dash": DASHES[strategy],
                 "color": colours.surface("accent" if barre else "muted")},
        "marker": {"size": 6}, "hovertemplate": "%{y:.3p}",
    }  # fmt: skip


def _label(strategy: Strategy, y: float, colours: Palette) -> dict[str, Any]:
    barre = strategy is Strategy.BARRE
    return {
        "xref": "paper", "yref": "paper", "x": 1, "y": y, "xanchor": "left", "yanchor": "middle", "xshift": 4,
        "text": f"<b>{strategy}</b>" if barre else str(strategy), "showarrow": False,
        "font": {"size": 11, "color": colours.surface("accent" if barre else "text")},
    }  # fmt: skip
