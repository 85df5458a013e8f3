"""One window as lanes: a row a worker, bars for what it did, arrows for messages, the critical path outlined.

What is drawn one by one and what is merged is decided in ``detail``; this module only draws it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from frontend import words
from frontend.figures import base, png
from frontend.figures.base import Figure
from frontend.figures.detail import Detail
from frontend.figures.rows import Rows
from frontend.palette import Palette
from webapp.analysis.edge_index import Picked

LANE_PX, THINNEST_LANE_PX, CHART_PX = 24, 5, 1000
FRAME_PX = 56
TITLE_PX = 13
MARGIN_PX = {"wide": 184, "narrow": 104}
MARGIN_RIGHT_PX = 12
COLUMNS = {"wide": 960, "narrow": 270}
"""Pixel columns of the plot area, about: what is narrower than one cannot be seen by itself."""

PALE = 0.35


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure and its height."""

    figure: Figure
    height_px: int


def lane_px(rows: int) -> int:
    """The height of a lane: all of them fit on a screen or so."""
    return max(THINNEST_LANE_PX, min(LANE_PX, CHART_PX // max(1, rows)))


def figure(
    edges: WindowEdges,
    rows: Rows,
    found: Detail,
    names: Names,
    start_ns: int,
    colours: Palette,
    narrow: bool = False,
) -> Drawn:
    """Draw ``found`` on these rows; x is ms since ``start_ns``, the window's start."""
    pen = _Pen(edges, rows, names, start_ns, colours, lane_px(rows.count))
    picture, numbers = pen.texture(found)
    bars = [
        *pen.outline(found.critical),
        *pen.bars(found.others, False),
        *pen.bars(found.critical, True),
    ]
    messages = ((found.messages, False), (found.critical_messages, True))
    points = [trace for picked, on_path in messages for trace in pen.points(picked, on_path)]
    height = max(160, rows.count * pen.lane_px + FRAME_PX)
    titled = _titled(rows, pen.lane_px)
    layout = base.layout(
        colours,
        height=height,
        margin={"l": MARGIN_PX["narrow" if narrow else "wide"], "r": MARGIN_RIGHT_PX, "t": 8, "b": 40},
        barmode="overlay",
        bargap=0,
        hovermode="closest",
        xaxis=base.axis(
            colours, range=[(found.from_ns - start_ns) / 1e6, (found.to_ns - start_ns) / 1e6], ticksuffix=" ms",
            tickangle=0, nticks=4 if narrow else 8,
            title={"text": "since the window's start", "standoff": 4, "font": {"size": 11}},
        ),
        yaxis=base.axis(
            colours, range=[rows.count - 0.5, -0.5], tickvals=titled, ticktext=[rows.titles[row] for row in titled],
            fixedrange=True, showgrid=False, zeroline=False,
            ticklabeloverflow="allow",  # else Plotly measures every title anew for each title
        ),
        meta={"edges": True, "lane_px": pen.lane_px, "who": _who(rows, names), "merged": numbers},
        images=picture,
        shapes=[shape for picked, on_path in messages for shape in pen.lines(picked, on_path)],
    )  # fmt: skip
    return Drawn({"data": [pen.selection(None), *bars, *points], "layout": layout}, height)


@dataclass(frozen=True, eq=False)
class Names:
    """What ids are called: workers, their hosts, operators."""

    workers: dict[int, str]
    hosts: dict[int, str]
    operators: dict[int, str]

    def worker(self, worker: int) -> str:
        """A worker's name, with its host."""
        host = self.hosts.get(worker, "")
        name = self.workers.get(worker, f"worker {worker}")
        return f"{name} on {host}" if host else name


def selection(
    edges: WindowEdges, rows: Rows, chosen: int | None, start_ns: int, colours: Palette
) -> dict[str, Any]:
    """The frame around the selected edge; an empty trace if none is, or if its lane is not drawn."""
    x: list[float] = []
    y: list[float] = []
    if chosen is not None and 0 <= chosen < len(edges.src):
        ends = rows.of(np.array([edges.src[chosen], edges.dst[chosen]]))
        if (ends >= 0).all():
            first, last = ((int(t[chosen]) - start_ns) / 1e6 for t in (edges.src_ns, edges.dst_ns))
            top, foot = (float(row) for row in ends)
            x, y = [first, last], [top, foot]
            if edges.src[chosen] == edges.dst[chosen]:
                x = [first, last, last, first, first]
                y = [top - 0.45, top - 0.45, top + 0.45, top + 0.45, top - 0.45]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip", "cliponaxis": False,
        "line": {"width": 4, "color": colours.surface("accent")}, "meta": {"number": chosen},
    }  # fmt: skip


def _titled(rows: Rows, height_px: int) -> list[int]:
    """The rows whose titles fit: where lanes are thin, hosts first, then what has most CP."""
    apart = -(-TITLE_PX // height_px)
    taken: set[int] = set()
    for row in sorted(range(rows.count), key=lambda row: (-rows.weights[row], row)):
        if not taken.intersection(range(row - apart + 1, row + apart)):
            taken.add(row)
    return sorted(taken)


def _who(rows: Rows, names: Names) -> list[str]:
    who = [""] * rows.count
    for worker, row in zip(rows.workers.tolist(), rows.places.tolist(), strict=True):
        who[row] = names.worker(worker)
    return who


class _Pen:
    """Draws edges as traces."""

    def __init__(
        self, edges: WindowEdges, rows: Rows, names: Names, start_ns: int, colours: Palette, height_px: int
    ) -> None:
        self.edges, self.rows, self.names, self.start_ns = edges, rows, names, start_ns
        self.colours, self.lane_px = colours, height_px
        self.gap_px = 6 if height_px >= 12 else 1 if height_px >= 8 else 0

    def selection(self, chosen: int | None) -> dict[str, Any]:
        return selection(self.edges, self.rows, chosen, self.start_ns, self.colours)

    def texture(self, found: Detail) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Merged activities as a picture under the bars: the pale colour of what takes most of each cell, its full
        one on the critical path; and the same as numbers, for what hovering says and for saving.
        """
        if not len(found.merged) and not len(found.merged_critical):
            return [], None
        pale, full = found.texture.dominant(), found.critical_texture.dominant()
        kinds = sorted({*found.texture.kinds, *found.critical_texture.kinds})
        code = np.zeros(256, np.uint8)
        code[kinds] = np.arange(1, len(kinds) + 1)
        critical = code[full] + np.uint8(len(kinds))
        cells = np.where(full >= 0, critical, np.where(pale >= 0, code[pale], np.uint8(0)))
        count = np.minimum(found.texture.count + found.critical_texture.count, 255).astype(np.uint8)
        pixels = np.repeat(cells, self.lane_px, axis=0)
        at = np.arange(len(pixels)) % self.lane_px
        pixels[(at < self.gap_px // 2) | (at >= self.lane_px - (self.gap_px + 1) // 2)] = 0
        shades = [(0, 0, 0, 0), *(_rgba(self.colours.activity(kind), PALE) for kind in kinds)]
        shades += [_rgba(self.colours.activity(kind), 1.0) for kind in kinds]
        picture = {
            "source": f"data:image/png;base64,{_base64(png.encode(pixels, shades))}", "layer": "below",
            "xref": "x", "yref": "y", "x": (found.from_ns - self.start_ns) / 1e6, "y": -0.5, "sizing": "stretch",
            "sizex": (found.to_ns - found.from_ns) / 1e6, "sizey": len(cells),
        }  # fmt: skip
        numbers = {
            "columns": cells.shape[1], "cells": _base64(cells.tobytes()), "count": _base64(count.tobytes()),
            "kinds": [words.activity(kind) for kind in kinds],
        }  # fmt: skip
        return [picture], numbers

    def outline(self, critical: Picked) -> list[dict[str, Any]]:
        """A band behind each run of critical segments, two pixels wider on all sides: their outline."""
        edges, text = self.edges, self.colours.surface("text")
        if not len(critical):
            return []
        runs = critical[np.lexsort((edges.src_ns[critical], edges.src[critical]))]
        begin, end, worker = edges.src_ns[runs], edges.dst_ns[runs], edges.src[runs]
        starts = np.append(True, (worker[1:] != worker[:-1]) | (begin[1:] > end[:-1]))
        first, last = np.flatnonzero(starts), np.append(np.flatnonzero(starts)[1:], len(runs)) - 1
        return [
            {
                "type": "bar", "orientation": "h", "hoverinfo": "skip",
                "base": self._ms(begin[first]), "x": _ms(end[last] - begin[first]),
                "y": self.rows.of(worker[first]).tolist(),
                "width": min(1.0, (self.lane_px - self.gap_px + 4) / self.lane_px),
                "marker": {"color": text, "line": {"width": 2 if self.gap_px else 1, "color": text}},
            }
        ]  # fmt: skip

    def bars(self, picked: Picked, on_path: bool) -> list[dict[str, Any]]:
        """A trace a type."""
        return [
            {
                "type": "bar", "orientation": "h", "name": self._name(code, on_path), **self._place(chosen),
                "width": max(0.6, (self.lane_px - self.gap_px) / self.lane_px),
                "customdata": chosen.tolist(),
                "hovertext": self._labels(chosen),
                "hovertemplate": "%{hovertext}<extra></extra>",
                "marker": self._paint(code, on_path),
            }
            for code, chosen in self._by_type(picked)
        ]  # fmt: skip

    def lines(self, picked: Picked, on_path: bool) -> list[dict[str, Any]]:
        """Messages as lines, a path a type: as a trace each would be an element of its own."""
        edges, row = self.edges, self.rows.of
        shapes = []
        for code, chosen in self._by_type(picked):
            sent = zip(self._ms(edges.src_ns[chosen]), row(edges.src[chosen]).tolist(), strict=True)
            received = zip(self._ms(edges.dst_ns[chosen]), row(edges.dst[chosen]).tolist(), strict=True)
            path = "".join(
                f"M{x},{y}L{to_x},{to_y}" for (x, y), (to_x, to_y) in zip(sent, received, strict=True)
            )
            line = {"width": 2.5 if on_path else 1.2, "color": self.colours.activity(code)}
            opacity = 1.0 if on_path else PALE
            shapes.append(
                {"type": "path", "path": path, "xref": "x", "yref": "y", "line": line, "opacity": opacity}
            )
        return shapes

    def points(self, picked: Picked, on_path: bool) -> list[dict[str, Any]]:
        """The points of the messages' arrows, where they arrived: there they can be hovered and chosen."""
        return [self._points(code, chosen, on_path) for code, chosen in self._by_type(picked)]

    def _points(self, code: int, picked: Picked, on_path: bool) -> dict[str, Any]:
        edges, row = self.edges, self.rows.of
        downward = row(edges.dst[picked]) > row(edges.src[picked])
        return {
            "type": "scatter",
            "mode": "markers",
            "name": self._name(code, on_path),
            "x": self._ms(edges.dst_ns[picked]),
            "y": row(edges.dst[picked]).tolist(),
            "customdata": picked.tolist(),
            "meta": {"sent": self._ms(edges.src_ns[picked]), "sender": row(edges.src[picked]).tolist()},
            "hovertext": self._labels(picked),
            "hovertemplate": "%{hovertext}<extra></extra>",
            "opacity": 1.0 if on_path else 0.5,
            "marker": {
                "symbol": np.where(downward, "triangle-down", "triangle-up").tolist(),
                "size": 9 if self.gap_px > 1 else 6,
                "color": self.colours.activity(code),
                "line": {"width": 1 if on_path else 0, "color": self.colours.surface("text")},
            },
        }

    def _by_type(self, picked: Picked) -> list[tuple[int, Picked]]:
        kinds = self.edges.type[picked]
        return [(code, picked[kinds == code]) for code in np.unique(kinds).tolist()]

    def _name(self, code: int, on_path: bool) -> str:
        return f"{words.activity(code)}{', critical path' if on_path else ''}"

    def _place(self, picked: Picked) -> dict[str, Any]:
        edges = self.edges
        return {
            "base": self._ms(edges.src_ns[picked]),
            "x": _ms(edges.dst_ns[picked] - edges.src_ns[picked]),
            "y": self.rows.of(edges.src[picked]).tolist(),
        }

    def _ms(self, at_ns: NDArray[np.int64]) -> list[float]:
        return _ms(at_ns - self.start_ns)

    def _paint(self, code: int, on_path: bool) -> dict[str, Any]:
        colour = self.colours.activity(code)
        if code == ActivityType.WAITING:  # never critical
            grid = self.colours.surface("grid")
            return {
                "color": colour,
                "pattern": {"shape": "/", "size": 6, "solidity": 0.25, "fgcolor": colour, "bgcolor": grid},
            }
        return {"color": colour, "opacity": 1.0 if on_path else PALE}

    def _labels(self, picked: Picked) -> list[str]:
        """What hovering each edge says."""
        edges = self.edges
        columns = (
            getattr(edges, name)[picked].tolist()
            for name in ("type", "operator", "src", "dst", "cp", "on_path")
        )
        lengths = (edges.dst_ns[picked] - edges.src_ns[picked]).tolist()
        return [self._label(*row) for row in zip(*columns, lengths, strict=True)]

    def _label(
        self, code: int, operator: int, src: int, dst: int, cp: float, on_path: bool, length_ns: int
    ) -> str:
        kind, name = words.activity(code), self.names.operators.get(operator, "")
        head = f"<b>{name}</b> · {kind}" if name else f"<b>{kind}</b>"
        who = self.names.worker(src) if src == dst else f"{self.names.worker(src)} → {self.names.worker(dst)}"
        path = "on the critical path" if on_path else "not on it"
        return f"{head}<br>{words.duration(length_ns)} · CP {words.percent(cp)} · {path}<br>{who}"


def _ms(lengths_ns: NDArray[np.int64]) -> list[float]:
    lengths_ms: list[float] = np.round(lengths_ns / 1e6, 6).tolist()
    return lengths_ms


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _rgba(colour: str, opacity: float) -> png.Shade:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue, round(opacity * 255)
