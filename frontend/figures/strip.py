"""The windows around the chosen one: a bar each, as high as the CP of what limited it most."""

from __future__ import annotations

from collections.abc import Sequence

from analytics.model.activity import BY_LABEL
from frontend import words
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View

Window = tuple[int, str, float, str]
"""Start in ns, status, CP of the top activity type, its label."""


def figure(
    windows: Sequence[Window], chosen_ns: int, width_ns: int, view: View, colours: Palette, narrow: bool
) -> Figure:
    """Bars of the windows in order of time; one without a result is grey and hatched, the chosen one outlined."""
    good = [status == "ok" for _, status, _, _ in windows]
    texts = [_text(window, view) for window in windows]
    text, muted = colours.surface("text"), colours.surface("muted")
    return {
        "data": [
            {
                "type": "bar",
                "name": "windows",
                "x": [view.axis_ms(start) + width_ns / 2e6 for start, _, _, _ in windows],
                "y": [round(cp, 4) if ok else 1.0 for (_, _, cp, _), ok in zip(windows, good, strict=True)],
                "width": width_ns / 1e6 * 0.86,
                "customdata": [str(start) for start, _, _, _ in windows],
                "hovertext": texts,
                "hovertemplate": "%{hovertext}<extra></extra>",
                "marker": {
                    "color": [
                        colours.activity(BY_LABEL[label]) if ok else muted
                        for (_, _, _, label), ok in zip(windows, good, strict=True)
                    ],
                    "opacity": [1.0 if start == chosen_ns else 0.6 for start, _, _, _ in windows],
                    "line": {
                        "width": [2 if start == chosen_ns else 0 for start, _, _, _ in windows], "color": text,
                    },
                    "pattern": {
                        "shape": ["" if ok else "/" for ok in good], "size": 5,
                        "fgcolor": colours.surface("card"), "bgcolor": muted,
                    },
                },
            }
        ],
        "layout": base.layout(
            colours,
            margin={"l": 44, "r": 12, "t": 4, "b": 24},
            xaxis={
                **base.axis(
                    colours, type="date", nticks=4 if narrow else 8, tickformat="%H:%M:%S", tickangle=0,
                    showgrid=False, fixedrange=True,
                ),
                "range": _range(windows, width_ns, view),
            },
            yaxis={**base.share_axis(colours), "nticks": 3},
            dragmode=False,
            hovermode="closest",
            bargap=0,
            meta={"starts": [str(start) for start, _, _, _ in windows], "chosen": str(chosen_ns)},
        ),
    }  # fmt: skip


def _text(window: Window, view: View) -> str:
    start, status, cp, label = window
    found = f"no result: {words.status(status)}"
    if status == "ok":
        found = f"{label.replace('_', ' ')}, CP {words.percent(cp)}"
    at = f"{view.time(start):%H:%M:%S.%f}"[:-3]
    return f"{at}<br>{found}"


def _range(windows: Sequence[Window], width_ns: int, view: View) -> list[float] | None:
    if not windows:
        return None
    return [view.axis_ms(windows[0][0]), view.axis_ms(windows[-1][0] + width_ns)]
