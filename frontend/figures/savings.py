"""What would be saved: by everything that could be made faster, and in every window by one of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from analytics.model.answers import Target, WhatIfAnswer, WhatIfRanking, WhatIfRow
from analytics.model.results import WindowStatus
from frontend.figures import bars, base
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View

PALE = 0.35


def ranking(
    rows: Sequence[WhatIfRow], names: Sequence[str], answer: WhatIfRanking, chosen: Target | None,
    leads: Sequence[Mapping[str, str | None]], colours: Palette, narrow: bool,
) -> Figure:  # fmt: skip
    """A row a candidate: pale what no time at all would save, solid 2×, a line 1.5×, framed CP. A click chooses."""
    length = max(answer.length_ns, 1)
    y = bars.labels(names, narrow)
    saved = {f: [row.saved_ns[i] / length for row in rows] for i, f in enumerate(answer.factors)}
    accent, muted, text = (colours.surface(name) for name in ("accent", "muted", "text"))
    solid = [accent if row.target == chosen else muted for row in rows]
    common = {"customdata": bars.leads_to(leads), "hovertext": list(names)}

    def one(name: str, x: Sequence[float], colour: Any, **more: Any) -> dict[str, Any]:
        hover = f"%{{hovertext}}: %{{x:.3p}}<extra>{name}</extra>"
        return bars.bar(name, y, x, colour, hovertemplate=hover, **common, **more)

    traces = [
        one("CP", [row.cp for row in rows], "rgba(0,0,0,0)"),
        one("saved at ∞×", saved[math.inf], solid, opacity=PALE),
        one("saved at 2×", saved[2.0], solid),
        one("saved at 1.5×", saved[1.5], None),
    ]
    traces[0]["marker"]["line"] = {"width": 1, "color": text}
    mark = {"symbol": "line-ns-open", "size": 16, "line": {"width": 2}, "color": text}
    traces[3] |= {"type": "scatter", "mode": "markers", "marker": mark}
    return bars.figure(traces, y, colours, narrow)


def windows(answer: WhatIfAnswer, width_ns: int, view: View, colours: Palette) -> Figure:
    """A bar a window of the job's width: the share of it that would be saved; none without a critical path.

    A click chooses the window.
    """
    fine = [window for window in answer.windows if window.status is WindowStatus.OK]
    starts = [window.start_ns // width_ns * width_ns for window in fine]
    widths = [(window.end_ns - window.start_ns) / 1e6 for window in fine]
    shares = [window.saved_ns / max(window.end_ns - window.start_ns, 1) for window in fine]
    trace: dict[str, Any] = {
        "type": "bar",
        "name": "saved",
        "x": [view.axis_ms(start) for start in starts],
        "width": widths,
        "offset": 0,
        "y": [round(share, 6) for share in shares],
        "customdata": bars.leads_to([{"window": str(start)} for start in starts]),
        "marker": {"color": colours.surface("accent"), "line": {"width": 0}},
        "hovertemplate": "%{x|%H:%M:%S.%L}: %{y:.3p} saved<extra></extra>",
    }
    return {
        "data": [trace],
        "layout": base.layout(
            colours,
            xaxis=base.axis(
                colours, type="date", nticks=4, tickangle=0, tickformat="%H:%M:%S", showgrid=False,
                fixedrange=True,
            ),
            yaxis=base.share_axis(colours, max(0.01, min(1.0, 1.1 * max(shares, default=0.0)))),
            dragmode=False,
            bargap=0,
            hovermode="closest",
            uirevision=base.uirevision(view),
        ),
    }  # fmt: skip
