"""What waits waited for: a bar a hop, made of the kinds of work behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analytics.model.answers import WhyGroup
from frontend import words
from frontend.figures import bars
from frontend.figures.base import Figure
from frontend.palette import Palette

PIECES = 8
SMALLEST_SHARE = 0.16
"""A piece below this share of the widest bar has no room for its name."""


def figure(
    by_hop: Mapping[int, Sequence[WhyGroup]], name: Callable[[WhyGroup], str], value: Callable[[WhyGroup], int],
    counted: bool, colours: Palette, narrow: bool,
) -> Figure:  # fmt: skip
    """Hop 1 on top, its largest pieces first; the smaller ones are one piece in grey. Time in seconds."""
    rows = [f"hop {hop}" for hop in by_hop]
    scale = 1.0 if counted else 1e9
    widest = max((sum(map(value, found)) for found in by_hop.values()), default=0) or 1
    pieces: list[dict[str, Any]] = []
    for row, found in zip(rows, by_hop.values(), strict=True):
        ordered = sorted(found, key=lambda group: -value(group))
        for group in ordered[:PIECES]:
            if value(group):
                shown = name(group) if value(group) / widest >= (0.45 if narrow else SMALLEST_SHARE) else ""
                colour = colours.activity(group.type)
                pieces.append(_piece(name(group), row, value(group), scale, counted, colour, shown, colours))
        rest = sum(map(value, ordered[PIECES:]))
        if rest:
            many = f"others ({len(ordered) - PIECES})"
            pieces.append(_piece(many, row, rest, scale, counted, colours.surface("line"), "", colours))
    axis = {"tickformat": "~s", "ticksuffix": "" if counted else "s"}
    drawn = bars.figure(pieces, rows, colours, narrow, **axis)
    drawn["layout"] |= {"barmode": "stack", "bargap": 0.25}
    drawn["layout"]["margin"] = {**drawn["layout"]["margin"], "l": 48}
    return drawn


def _piece(
    name: str, row: str, value: int, scale: float, counted: bool, colour: str, shown: str, colours: Palette
) -> dict[str, Any]:
    told = f"{value:,}" if counted else words.duration(value)
    return bars.bar(
        name, [row], [value / scale], colour,
        text=[shown], textposition="inside", insidetextanchor="start", constraintext="none", cliponaxis=False,
        textfont={"color": colours.surface("card")},
        hovertemplate=f"{row}, {name}: {told}<extra></extra>",
    ) | {"marker": {"color": colour, "line": {"width": 1, "color": colours.surface("card")}}}  # fmt: skip
