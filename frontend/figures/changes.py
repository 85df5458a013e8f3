"""What changed: bars to the left and right of zero, with how far chance reaches."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.model.answers import Change, Confidence
from frontend.figures import bars
from frontend.figures.base import Figure
from frontend.palette import Palette

PALE = 0.35
POINTS = 100


def figure(rows: Sequence[Change], names: Sequence[str], colours: Palette, narrow: bool) -> Figure:
    """A row a group: its change in percentage points; sure ones solid, with twice the standard error as a line."""
    y = bars.labels(names, narrow)
    sure = [change.confidence is Confidence.SURE for change in rows]
    trace = bars.bar(
        "change", y, [POINTS * change.cp_change for change in rows], colours.surface("accent"),
        hovertext=list(names), hovertemplate="%{hovertext}: %{x:+.3g} points<extra></extra>",
        error_x={
            "type": "data", "array": [round(2 * POINTS * change.cp_error, 6) for change in rows],
            "color": colours.surface("text"), "thickness": 1, "width": 3,
        },
    )  # fmt: skip
    trace["marker"]["opacity"] = [1.0 if known else PALE for known in sure]
    drawn = bars.figure([trace], y, colours, narrow, tickformat="+~g", rangemode="normal")
    drawn["layout"]["xaxis"] |= {
        "zeroline": True,
        "zerolinecolor": colours.surface("text"),
        "zerolinewidth": 1,
    }
    return drawn
