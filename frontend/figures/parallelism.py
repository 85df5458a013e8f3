"""A lane per policy: the parallelism of each operator over time, and when targets were missed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analytics.scaling.lab import Lab, Lane
from frontend import words
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.figures.lines import DASHES, spread
from frontend.figures.ranking import TOP
from frontend.palette import Palette

LANE_PX = 132
AXIS_PX = 48
TITLE_SHARE = 0.2
"""The part of a lane's height above its chart, for its title."""

MARGIN_RIGHT_PX = {True: 92, False: 148}
NAME_LENGTH = {True: 9, False: 17}
LABEL_GAP = 0.17
HOURS_FROM_S = 3 * 3600.0


def height(lanes: int) -> int:
    """How high the chart of so many lanes is, with its axis."""
    return LANE_PX * max(lanes, 1) + AXIS_PX


def drawn_operators(lab: Lab) -> list[tuple[str, str]]:
    """The ``(id, name)`` of the operators with most instances anywhere, in the order of the graph."""
    most = {key: max(_most(lane, key) for lane in lab.lanes) for key, _ in lab.operators}
    kept = sorted(most, key=lambda key: -most[key])[:TOP]
    return [(key, name) for key, name in lab.operators if key in kept]


def unit_s(lab: Lab) -> float:
    """What the time axis counts: hours for long replays, else minutes."""
    return 3600.0 if max(lane.length_s for lane in lab.lanes) > HOURS_FROM_S else 60.0


def figure(lab: Lab, colours: Palette, narrow: bool) -> Figure:
    """The lanes from top to bottom, in the lab's order, all on the same scales."""
    operators = drawn_operators(lab)
    ceiling = 1.12 * max((_most(lane, key) for lane in lab.lanes for key, _ in operators), default=1)
    in_hours, per_unit_s = unit_s(lab) == 3600.0, unit_s(lab)
    traces: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for place, lane in enumerate(lab.lanes):
        axis = "y" if place == 0 else f"y{place + 1}"
        top = 1 - place / len(lab.lanes)
        title_y = top - TITLE_SHARE / len(lab.lanes)
        axes[f"yaxis{axis[1:]}"] = base.axis(
            colours, domain=[1 - (place + 1) / len(lab.lanes), title_y], range=[-0.04 * ceiling, ceiling],
            nticks=4, fixedrange=True, tickformat="d",
        )  # fmt: skip
        traces += [
            _line(lane, key, name, n, axis, per_unit_s, colours) for n, (key, name) in enumerate(operators)
        ]
        traces.append(_missed(lane, axis, per_unit_s, colours))
        notes.append(_title(lane, title_y, colours, narrow))
        notes += _labels(lane, operators, axis, ceiling, colours, narrow)
    longest = max(lane.length_s for lane in lab.lanes) / per_unit_s
    return {
        "data": traces,
        "layout": base.layout(
            colours,
            margin={"l": 40, "r": MARGIN_RIGHT_PX[narrow], "t": 4, "b": AXIS_PX - 8},
            xaxis=base.axis(
                colours, range=[0, longest], anchor="free", position=0, ticksuffix=" h" if in_hours else " min",
                nticks=4 if narrow else 8, tickangle=0, showgrid=False, fixedrange=True, rangemode="tozero",
            ),
            **axes,
            annotations=notes,
            hovermode="closest",
            dragmode=False,
            uirevision="lab",
        ),
    }  # fmt: skip


def _most(lane: Lane, key: str) -> int:
    return max(value for _, value in _course(lane, key))


def _course(lane: Lane, key: str) -> list[tuple[float, int]]:
    """``(from_s, parallelism)`` of an operator, and the end."""
    value = dict(lane.start).get(key, 0)
    found = [(0.0, value)]
    for step in lane.steps:
        for name, _, after in step.changes:
            if name == key:
                found.append((step.at_s, after))
    return [*found, (lane.length_s, found[-1][1])]


def _line(
    lane: Lane, key: str, name: str, place: int, axis: str, unit_s: float, colours: Palette
) -> dict[str, Any]:
    course = _course(lane, key)
    return {
        "type": "scatter", "mode": "lines", "name": f"{words.policy(lane.policy)}: {name}", "yaxis": axis,
        "x": [round(at_s / unit_s, 4) for at_s, _ in course], "y": [value for _, value in course],
        "line": {
            "shape": "hv", "width": 2 if place == 0 else 1.5, "dash": DASHES[place + (place > 0)],
            "color": colours.surface("accent" if place == 0 else "text"),
        },
        "hovertemplate": f"{words.policy(lane.policy)}: {name}, parallelism %{{y}}<extra></extra>",
    }  # fmt: skip


def _missed(lane: Lane, axis: str, unit_s: float, colours: Palette) -> dict[str, Any]:
    x: list[float | None] = []
    for low_s, high_s in lane.missed:
        x += [round(low_s / unit_s, 4), round(high_s / unit_s, 4), None]
    return {
        "type": "scatter", "mode": "lines", "name": f"{words.policy(lane.policy)}: under target", "yaxis": axis,
        "x": x, "y": [None if at is None else 0 for at in x],
        "line": {"width": 6, "color": colours.surface("harm")},
        "hovertemplate": f"{words.policy(lane.policy)}: a source delivered less than its target<extra></extra>",
    }  # fmt: skip


def _title(lane: Lane, y: float, colours: Palette, narrow: bool) -> dict[str, Any]:
    steps = "" if narrow else f" · {words.count(len(lane.steps), 'step')}"  # the table has them too
    missed = f"under target {words.seconds(lane.under_target_s)}" if lane.under_target_s else "on target"
    return {
        "xref": "paper", "yref": "paper", "x": 0, "y": y, "xanchor": "left", "yanchor": "bottom",
        "text": f"<b>{words.policy(lane.policy)}</b>{steps} · {missed}", "showarrow": False, "yshift": 1,
        "font": {"size": 12, "color": colours.surface("text")},
    }  # fmt: skip


def _labels(
    lane: Lane,
    operators: Sequence[tuple[str, str]],
    axis: str,
    ceiling: float,
    colours: Palette,
    narrow: bool,
) -> list[dict[str, Any]]:
    """Each operator's name and last parallelism at the right end of its line, moved apart if they would overlap."""
    ends = dict(lane.final)
    placed = spread([ends.get(key, 0) / ceiling for key, _ in operators], LABEL_GAP)
    return [
        {
            "xref": "paper", "yref": f"{axis} domain", "x": 1, "y": y, "xanchor": "left", "yanchor": "middle",
            "text": f"{_short(name, NAME_LENGTH[narrow])} <b>{ends.get(key, 0)}</b>", "showarrow": False,
            "xshift": 4, "align": "left", "hovertext": name,
            "font": {"size": 11, "color": colours.surface("accent" if place == 0 else "text")},
        }
        for place, ((key, name), y) in enumerate(zip(operators, placed, strict=True))
    ]  # fmt: skip


def _short(name: str, most: int) -> str:
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"
