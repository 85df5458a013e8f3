"""One window's critical path as it is, above the one it would have: both from the window's start on, in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from analytics.model.activity import ActivityType
from analytics.model.answers import PathStep, WhatIfPaths
from frontend import words
from frontend.figures import bars
from frontend.figures.base import Figure
from frontend.palette import Palette

HEIGHT_PX = 132
NOW, THEN = "as it is", "then"
ROOM = {True: 0.3, False: 0.12}
"""The share of the window below which a bar has no room for its name, on a phone and on a desk."""
APART = 80
"""With more steps than that there is no room between them."""

Lead = Callable[[PathStep], Mapping[str, str | None]]


def figure(
    found: WhatIfPaths, name: Callable[[PathStep], str], lead: Lead, colours: Palette, narrow: bool
) -> Figure:
    """Two rows of bars in the colours of their types, hatched where it waits; what is saved is blank at the end.

    A click on a bar leads to the segment.
    """
    window = found.window
    length_ns = max(window.end_ns - window.start_ns, 1)
    traces = [
        _row(row, steps, window.start_ns, length_ns, name, lead, colours, narrow)
        for row, steps in ((NOW, found.now), (THEN, window.path))
    ]
    traces.append(_saved(window.saved_ns, length_ns, colours, narrow))
    axis = {"tickformat": "~f", "ticksuffix": " ms", "range": [0, length_ns / 1e6]}
    drawn = bars.figure(traces, (NOW, THEN), colours, narrow, **axis)
    drawn["layout"]["margin"] = {**drawn["layout"]["margin"], "l": 62}
    drawn["layout"] |= {"bargap": 0.2, "uniformtext": {"minsize": 10, "mode": "hide"}}
    return drawn


def _row(
    row: str, steps: Sequence[PathStep], start_ns: int, length_ns: int, name: Callable[[PathStep], str], lead: Lead,
    colours: Palette, narrow: bool,
) -> dict[str, Any]:  # fmt: skip
    shown = [step for step in steps if step.dst_ns > step.src_ns]
    long = [step.dst_ns - step.src_ns for step in shown]
    waits = [step.type == int(ActivityType.WAITING) for step in shown]
    card = colours.surface("card")
    return bars.bar(
        row, [row] * len(shown), [ns / 1e6 for ns in long], None,
        base=[(step.src_ns - start_ns) / 1e6 for step in shown],
        text=[name(step) if ns / length_ns >= ROOM[narrow] else "" for step, ns in zip(shown, long, strict=True)],
        textposition="inside", insidetextanchor="middle", textangle=0, constraintext="inside",
        textfont={"color": card, "size": 12}, customdata=bars.leads_to([lead(step) for step in shown]),
        hovertext=[f"{name(step)}<br>{_took(step)}" for step in shown],
        hovertemplate="%{hovertext}<extra></extra>",
    ) | {
        "marker": {
            "color": [colours.activity(step.type) for step in shown],
            "line": {"width": 1 if len(shown) <= APART else 0, "color": card},
            "pattern": {"shape": ["/" if wait else "" for wait in waits], "size": 5, "fgcolor": card},
        }
    }  # fmt: skip


def _took(step: PathStep) -> str:
    now, was = step.dst_ns - step.src_ns, step.was_dst_ns - step.was_src_ns
    return words.duration(now) if now == was else f"{words.duration(now)}, was {words.duration(was)}"


def _saved(saved_ns: int, length_ns: int, colours: Palette, narrow: bool) -> dict[str, Any]:
    said = f"saved {words.duration(saved_ns)}"
    text = colours.surface("text")
    is_any = saved_ns > 0
    return bars.bar(
        "saved", [THEN] * is_any, [saved_ns / 1e6] * is_any, "rgba(0,0,0,0)",
        base=[(length_ns - saved_ns) / 1e6] * is_any,
        text=[said if saved_ns / length_ns >= ROOM[narrow] else ""] * is_any, textposition="inside",
        insidetextanchor="middle", textangle=0, textfont={"color": text, "size": 12},
        hovertemplate=f"{said}<extra></extra>",
    ) | {"marker": {"color": "rgba(0,0,0,0)", "line": {"width": 1, "color": colours.surface("line")}}}  # fmt: skip
