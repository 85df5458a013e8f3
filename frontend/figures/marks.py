"""Every applied change on a job's charts: a line with its verdict, and the same in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from frontend import words
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.standing import AppliedChange

SIGNS = {
    State.VERIFIED: ("✓", "good"), State.REGRESSED: ("▼", "harm"), State.REVERTING: ("↻", "harm"),
    State.REVERTED: ("↩", "muted"), State.REVERT_FAILED: ("✕", "harm"), State.INCONCLUSIVE: ("?", "muted"),
}  # fmt: skip
"""Sign and colour by verdict."""

PENDING = ("●", "accent")
CROWDED, ROWS, ROW_PX = 0.1, 3, 18
"""Labels nearer than this share of the axis stand one under the other, in so many rows."""
LATE = 0.9
"""A label behind this share of the axis stands left of its line: right of it, it would be cut off."""


def mark(
    figure: Figure, changes: Sequence[AppliedChange], x_of: Callable[[int], float], colours: Palette
) -> Figure:
    """The figure with a labelled line at each change; ``x_of`` turns ns since 1970 into a place on its axis."""
    if not changes:
        return figure
    lines, labels = [], []
    places = _places(
        [x_of(change.at_ns) for change in changes], figure["layout"].get("xaxis", {}).get("range")
    )
    for change, (row, anchor) in zip(changes, places, strict=True):
        sign, kind = SIGNS.get(State(change.state), PENDING) if change.state else PENDING
        x, colour = x_of(change.at_ns), colours.surface(kind)
        lines.append({
            "type": "line", "xref": "x", "yref": "paper", "x0": x, "x1": x, "y0": 0, "y1": 1,
            "line": {"color": colour, "width": 2, "dash": "dot"},
        })  # fmt: skip
        labels.append({
            "xref": "x", "yref": "paper", "x": x, "y": 1, "xanchor": anchor, "yanchor": "top",
            "yshift": -ROW_PX * row, "showarrow": False,
            "text": f"{sign} {change.proposal_id}", "hovertext": told(change), "bgcolor": colours.surface("card"),
            "bordercolor": colour, "borderpad": 1, "font": {"size": 11, "color": colour},
        })  # fmt: skip
    layout: dict[str, Any] = figure["layout"]
    more = {
        "shapes": [*layout.get("shapes", []), *lines],
        "annotations": [*layout.get("annotations", []), *labels],
    }
    return {**figure, "layout": {**layout, **more}}


def _places(at: Sequence[float], ends: Sequence[float] | None) -> list[tuple[int, str]]:
    """The row of each label and the side of its line that it stands on, so that all can be read."""
    first, last = ends or (min(at), max(at))
    span = (last - first) or 1.0
    found = [(0, "left")] * len(at)
    before = None
    for i in sorted(range(len(at)), key=lambda i: at[i]):
        near = before is not None and at[i] - at[before] < CROWDED * span
        row = (found[before][0] + 1) % ROWS if near and before is not None else 0
        late = ends is not None and at[i] - first > LATE * span
        found[i], before = (row, "right" if late else "left"), i
    return found


def told(change: AppliedChange) -> str:
    """Who, what, and what came of it."""
    verdict = State(change.state).label if change.state else "unknown"
    who = f", decided by {change.decided_by}" if change.decided_by else ""
    why = f": {change.reason}" if change.reason else ""
    return f"Proposal {change.proposal_id}: {change.label}, {verdict}{who}{why}"


def spoken(changes: Sequence[AppliedChange], view: View) -> str:
    """The marks in a sentence, to go behind a chart's own; "" without any."""
    if not changes:
        return ""
    items = [f"at {view.time(item.at_ns):%H:%M:%S} {told(item)}" for item in changes]
    return f" {words.count(len(changes), 'change')} marked: {'; '.join(items)}."
