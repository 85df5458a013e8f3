"""Which channel matters: CP of messages by sender and receiver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analytics.model.activity import ActivityType
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View
from webapp.analysis.shares import Share

MAX_WORKERS = 16


def figure(channels: Sequence[Share], names: dict[int, str], view: View, colours: Palette) -> Figure:
    """Heat map sender × receiver; beyond sixteen workers those with least CP are taken together."""
    by_worker: dict[int, float] = {}
    for share in channels:
        for worker in set(share.key[:2]):
            by_worker[worker] = by_worker.get(worker, 0.0) + share.cp
    chosen = sorted(by_worker, key=lambda worker: (-by_worker[worker], worker))
    rest = chosen[MAX_WORKERS:] if len(chosen) > MAX_WORKERS else []
    shown = sorted(chosen[: MAX_WORKERS if rest else None])
    place = {worker: i for i, worker in enumerate(shown)}
    labels = [_short(names.get(worker, f"worker {worker}")) for worker in shown]
    if rest:
        place |= dict.fromkeys(rest, len(shown))
        labels.append(f"others ({len(rest)})")
    cp = np.full((len(labels), len(labels)), np.nan)
    profile = np.zeros_like(cp)
    for share in channels:
        at = place[share.key[0]], place[share.key[1]]
        cp[at] = np.nan_to_num(cp[at]) + share.cp
        profile[at] += share.conventional
    surface = colours.surface
    return {
        "data": [
            {
                "type": "heatmap",
                "name": "cp",
                "x": labels,
                "y": labels,
                "z": [[None if v != v else round(float(v), 6) for v in row] for row in cp],
                "customdata": [[round(float(v), 6) for v in row] for row in profile],
                "colorscale": [[0, surface("grid")], [1, colours.activity(ActivityType.DATA_MESSAGE)]],
                "zmin": 0,
                "xgap": 1,
                "ygap": 1,
                "hoverongaps": False,
                "hovertemplate": "%{y} → %{x}<br>CP %{z:.3p}<br>in flight %{customdata:.3p} of the range"
                "<extra></extra>",
                "colorbar": {
                    "thickness": 10, "tickformat": ".2~p", "outlinewidth": 0, "nticks": 4,
                    "tickfont": {"color": surface("muted"), "size": 11},
                },
            }
        ],
        "layout": base.layout(
            colours,
            margin={"l": 112, "r": 8, "t": 8, "b": 88},
            xaxis=_axis(colours, "receiver", bool(labels)),
            yaxis={**_axis(colours, "sender", bool(labels)), "autorange": "reversed"},
            dragmode=False,
            uirevision="channels",
        ),
    }  # fmt: skip


def _axis(colours: Palette, title: str, visible: bool) -> dict[str, object]:
    return base.axis(
        colours, type="category", fixedrange=True, visible=visible,
        showgrid=False, tickangle=-45 if title == "receiver" else 0,
    )  # fmt: skip


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:7]}…{name[-8:]}"
