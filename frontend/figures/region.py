"""What two applications can take together, with where they are, were and could go; and small maps."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from analytics.model.burst_answers import Facet, Region
from frontend import words
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.palette import Palette

HEIGHT_PX = 420
LABELS = 5
"""Edges that are named in the map; all are in the table."""

SMALL_PX = 120
_INSET = 10
Point = tuple[float, float]


def figure(
    region: Region, now: Point, target: Point, trail: Sequence[Point], colours: Palette, narrow: bool
) -> Figure:
    """The map. ``now`` and ``target`` are rates of the pair, ``trail`` earlier ones, oldest first."""
    surface = colours.surface
    first, second = region.applications
    most = [max(values) * 1.12 or 1.0 for values in _extent(region, [now, target, *trail])]
    outline = [*region.vertices, region.vertices[0]] if region.vertices else []
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter", "mode": "lines", "name": "feasible", "x": [v[0] for v in outline],
            "y": [v[1] for v in outline], "fill": "toself", "fillcolor": _faint(surface("good")),
            "line": {"color": surface("good"), "width": 2}, "hoverinfo": "skip",
        },
        {
            "type": "scatter", "mode": "lines", "name": "trail", "x": [p[0] for p in trail],
            "y": [p[1] for p in trail], "line": {"color": surface("muted"), "width": 1, "dash": "dot"},
            "hovertemplate": f"earlier: {first} %{{x:.3g}}, {second} %{{y:.3g}}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "lines+markers", "name": "equal burst", "x": [now[0], target[0]],
            "y": [now[1], target[1]], "line": {"color": surface("accent"), "width": 2, "dash": "dash"},
            "marker": {"size": [0, 11], "symbol": "diamond-open", "color": surface("accent"), "line": {"width": 2}},
            "hovertemplate": f"after an equal burst: {first} %{{x:.3g}}, {second} %{{y:.3g}}<extra></extra>",
        },
        {
            "type": "scatter", "mode": "markers", "name": "now", "x": [now[0]], "y": [now[1]],
            "marker": {"size": 12, "color": surface("text")},
            "hovertemplate": f"now: {first} %{{x:.3g}}, {second} %{{y:.3g}}<extra></extra>",
        },
    ]  # fmt: skip
    return {
        "data": traces,
        "layout": base.layout(
            colours,
            margin={"l": 64, "r": 16, "t": 8, "b": 48},
            xaxis=_axis(colours, first, most[0]),
            yaxis=_axis(colours, second, most[1]),
            annotations=[*_edges(region, most, colours, narrow), *_marks(now, target, most, colours)],
            dragmode=False,
            hovermode="closest",
            uirevision="region",
        ),
    }


def _extent(region: Region, more: Sequence[Point]) -> list[list[float]]:
    points = [*region.vertices, *more]
    return [[0.0, *(float(point[axis]) for point in points)] for axis in (0, 1)]


def _axis(colours: Palette, name: str, top: float) -> dict[str, Any]:
    return base.axis(
        colours, range=[0, top], title={"text": f"input of {_short(name)}", "font": {"size": 12}}, nticks=6,
        fixedrange=True, tickformat=",.3~r",
    )  # fmt: skip


def limits(facet: Facet) -> str:
    """The limits that make an edge: ``cpu of A and cpu of B``."""
    return words.series([limit_words(node, resource) for node, resource in facet.limits]) or "unknown"


def limit_words(node: str, resource: str) -> str:
    """A limit: ``cpu of A``; a component's cap stands for itself."""
    return resource if resource.startswith("cap of ") else f"{resource} of {node}"


def edges(region: Region) -> list[tuple[Facet, Point, Point]]:
    """Each edge that is no axis with its two corners: of a pair they come in the order of the corners."""
    corners = [(float(x), float(y)) for x, y in region.vertices[1:]]
    known = region.facets[: len(corners) - 1]
    return [(facet, corners[k], corners[k + 1]) for k, facet in enumerate(known)]


def _edges(region: Region, most: Sequence[float], colours: Palette, narrow: bool) -> list[dict[str, Any]]:
    """The longest edges named beside them, on the outside."""
    found = edges(region)

    def length(edge: tuple[Facet, Point, Point]) -> float:
        return sum(((edge[1][k] - edge[2][k]) / most[k]) ** 2 for k in (0, 1))

    longest = sorted(found, key=length, reverse=True)[: 2 if narrow else LABELS]
    notes = []
    for facet, right, left in longest:
        steep = abs(right[0] - left[0]) / most[0] < abs(right[1] - left[1]) / most[1]
        notes.append({
            "x": (right[0] + left[0]) / 2, "y": (right[1] + left[1]) / 2, "text": _short(limits(facet), 34),
            "showarrow": False, "xanchor": "right" if steep else "center", "yanchor": "middle" if steep else "top",
            "xshift": -8 if steep else 0, "yshift": 0 if steep else -8, "bgcolor": colours.surface("card"),
            "font": {"size": 11, "color": colours.surface("text")},
        })  # fmt: skip
    return notes


def _marks(now: Point, target: Point, most: Sequence[float], colours: Palette) -> list[dict[str, Any]]:
    """``now`` and where an equal burst leads, apart from each other."""
    near = sum(((now[k] - target[k]) / most[k]) ** 2 for k in (0, 1)) < 0.004
    found = [("now", now, -16)]
    if not near:
        found.append(("after an equal burst", target, 16))
    return [
        {
            "x": point[0], "y": point[1], "text": f"<b>{text}</b>", "showarrow": False, "yshift": shift,
            "xanchor": "right" if point[0] > most[0] / 2 else "left", "bgcolor": colours.surface("card"),
            "xshift": -8 if point[0] > most[0] / 2 else 8,
            "font": {"size": 12, "color": colours.surface("text" if text == "now" else "accent")},
        }
        for text, point, shift in found
    ]  # fmt: skip


def gauge(name: str, now: float, most: float, colours: Palette) -> Figure:
    """One application: what it gets now, and the most it can take."""
    top = max(now, most) * 1.1 or 1.0
    good = colours.surface("good")
    bar: dict[str, Any] = {"type": "bar", "orientation": "h", "y": [name], "hoverinfo": "skip"}
    return {
        "data": [
            {**bar, "name": "at most", "x": [most], "width": 0.5,
             "marker": {"color": _faint(good), "line": {"color": good, "width": 2}}},
            {**bar, "name": "now", "x": [now], "width": 0.25, "marker": {"color": colours.surface("text")}},
        ],
        "layout": base.layout(
            colours, margin={"l": 16, "r": 16, "t": 24, "b": 48}, barmode="overlay", dragmode=False,
            xaxis=base.axis(colours, range=[0, top], fixedrange=True, tickformat=",.3~r",
                            title={"text": f"input of {_short(name)}", "font": {"size": 12}}),
            yaxis=base.axis(colours, showticklabels=False, fixedrange=True, showgrid=False),
            annotations=[
                {"x": most, "y": name, "yshift": 52, "showarrow": False, "text": f"at most {words.number(most)}",
                 "xanchor": "right", "font": {"color": colours.surface("good"), "size": 12}},
                {"x": now, "y": name, "yshift": -52, "showarrow": False, "text": f"now {words.number(now)}",
                 "xanchor": "left" if now < top / 2 else "right", "font": {"size": 12}},
            ],
        ),
    }  # fmt: skip


def small(region: Region, now: Point, colours: Palette) -> str:
    """A small map as a picture: its address."""
    most = [max(values) or 1.0 for values in _extent(region, [now])]
    span = SMALL_PX - 2 * _INSET

    def at(point: Sequence[float]) -> str:
        return f"{_INSET + span * point[0] / most[0]:.1f},{SMALL_PX - _INSET - span * point[1] / most[1]:.1f}"

    x, y = at(now).split(",")
    shape = " ".join(at(vertex) for vertex in region.vertices)
    good, text, line = (colours.surface(name) for name in ("good", "text", "line"))
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SMALL_PX} {SMALL_PX}">'
        f'<path d="M{_INSET} {_INSET}V{SMALL_PX - _INSET}H{SMALL_PX - _INSET}" fill="none" stroke="{line}"/>'
        f'<polygon points="{shape}" fill="{good}" fill-opacity=".15" stroke="{good}" stroke-width="1.5"/>'
        f'<circle cx="{x}" cy="{y}" r="4" fill="{text}"/></svg>'
    )
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.14)"


def _short(name: str, most: int = 40) -> str:
    half = (most - 1) // 2
    return name if len(name) <= most else f"{name[:half]}…{name[-half:]}"
