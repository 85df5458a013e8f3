"""One window as lanes: a row a worker, bars for what it did, arrows for messages, the critical path outlined.

A chart with tens of thousands of bars is neither readable nor fast: short activities off the critical path
are merged per lane, the shortest messages left out, and ``Drawn.left_out`` says so in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from frontend import words
from frontend.figures import base
from frontend.figures.base import Figure
from frontend.figures.rows import Rows
from frontend.palette import Palette

MAX_BARS = 3000
MAX_MESSAGES = 800
LANE_PX, THIN_LANE_PX, MANY_ROWS = 24, 14, 60
FRAME_PX = 64
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure, its height, and what it leaves out in words ("" if nothing)."""

    figure: Figure
    height_px: int
    left_out: str


def figure(
    edges: WindowEdges,
    rows: Rows,
    operators: dict[int, str],
    span: tuple[int, int],
    colours: Palette,
    narrow: bool = False,
) -> Drawn:
    """Draw the edges of the window ``span`` (ns) on these rows; x is ms since the window's start."""
    seen = rows.shows(edges.src) & rows.shows(edges.dst)
    local = seen & (edges.src == edges.dst)
    message = seen & (edges.src != edges.dst)
    label = _Label(edges, operators)
    bars, merged = _bars(edges, rows, local, span, label, colours)
    arrows, omitted = _arrows(edges, rows, message, span[0], label, colours)
    lane_px = LANE_PX if rows.count <= MANY_ROWS else THIN_LANE_PX
    height = max(160, rows.count * lane_px + FRAME_PX)
    critical = np.flatnonzero(edges.on_path)
    critical = critical[np.lexsort((edges.dst_ns[critical], edges.src_ns[critical]))]
    left_out = words.series([text for text in (rows.left_out, merged, omitted) if text])
    return Drawn(
        {
            "data": [selection(edges, rows, None, span[0], colours), *bars, *arrows],
            "layout": base.layout(
                colours,
                margin={"l": 100 if narrow else 132, "r": 12, "t": 8, "b": 40},
                barmode="overlay",
                bargap=0,
                hovermode="closest",
                xaxis=base.axis(
                    colours, range=[0, (span[1] - span[0]) / 1e6], ticksuffix=" ms", tickangle=0,
                    nticks=4 if narrow else 8,
                    title={"text": "since the window's start", "standoff": 4, "font": {"size": 11}},
                ),
                yaxis=base.axis(
                    colours, range=[rows.count - 0.5, -0.5], tickvals=list(range(rows.count)),
                    ticktext=rows.titles, fixedrange=True, showgrid=False, zeroline=False,
                ),
                meta={"edges": True, "critical": critical.tolist()},
                uirevision=f"{span[0]} {rows.count}",
            ),
        },
        height,
        left_out,
    )  # fmt: skip


def selection(
    edges: WindowEdges, rows: Rows, chosen: int | None, start_ns: int, colours: Palette
) -> dict[str, Any]:
    """The frame around the selected edge; an empty trace if none is, or if its lane is not drawn."""
    x: list[float] = []
    y: list[float] = []
    if chosen is not None and 0 <= chosen < len(edges.src):
        ends = [int(edges.src[chosen]), int(edges.dst[chosen])]
        if rows.shows(np.array(ends)).all():
            first, last = ((int(t[chosen]) - start_ns) / 1e6 for t in (edges.src_ns, edges.dst_ns))
            top, foot = (float(rows.place[worker]) for worker in ends)
            if ends[0] == ends[1]:
                x, y = (
                    [first, last, last, first, first],
                    [top - 0.45, top - 0.45, top + 0.45, top + 0.45, top - 0.45],
                )
            else:
                x, y = [first, last], [top, foot]
    return {
        "type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip",
        "line": {"width": 4, "color": colours.surface("accent")},
    }  # fmt: skip


class _Label:
    """What hovering an edge says."""

    def __init__(self, edges: WindowEdges, operators: dict[int, str]) -> None:
        self.edges = edges
        self.operators = operators

    def __call__(self, i: int) -> str:
        edges = self.edges
        kind = words.activity(int(edges.type[i]))
        operator = self.operators.get(int(edges.operator[i]), "")
        length = words.duration(int(edges.dst_ns[i]) - int(edges.src_ns[i]))
        path = "on the critical path" if edges.on_path[i] else "not on it"
        head = f"<b>{operator}</b> · {kind}" if operator else f"<b>{kind}</b>"
        return f"{head}<br>{length} · CP {words.percent(float(edges.cp[i]))} · {path}"


def _bars(
    edges: WindowEdges, rows: Rows, local: Mask, span: tuple[int, int], label: _Label, colours: Palette
) -> tuple[list[dict[str, Any]], str]:
    critical = np.flatnonzero(local & edges.on_path)
    others = np.flatnonzero(local & ~edges.on_path)
    room = max(500, MAX_BARS - len(critical))
    merged: list[dict[str, Any]] = []
    note = ""
    if len(others) > room:
        bucket_ns = max(1, (span[1] - span[0]) * rows.count // room)
        short = (edges.dst_ns[others] - edges.src_ns[others]) < bucket_ns
        merged, count = _merged(edges, rows, others[short], span[0], bucket_ns, colours)
        note = f"{int(short.sum()):,} short activities off the critical path are merged into {count:,} bars"
        others = others[~short]
    traces = [*merged]
    for chosen, on_path in ((others, False), (critical, True)):
        for code in np.unique(edges.type[chosen]).tolist():
            picked = chosen[edges.type[chosen] == code]
            traces.append(_bar(edges, rows, picked, code, on_path, span[0], label, colours))
    return traces, note


def _bar(
    edges: WindowEdges, rows: Rows, picked: NDArray[np.intp], code: int, on_path: bool, start_ns: int,
    label: _Label, colours: Palette,
) -> dict[str, Any]:  # fmt: skip
    listed = picked.tolist()
    return {
        "type": "bar",
        "orientation": "h",
        "name": f"{words.activity(code)}{', critical path' if on_path else ''}",
        "base": _ms(edges.src_ns[picked] - start_ns),
        "x": _ms(edges.dst_ns[picked] - edges.src_ns[picked]),
        "y": [rows.place[worker] for worker in edges.src[picked].tolist()],
        "width": 0.72,
        "customdata": listed,
        "hovertext": [label(i) for i in listed],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "marker": _paint(code, on_path, colours),
    }


def _paint(code: int, on_path: bool, colours: Palette) -> dict[str, Any]:
    paint: dict[str, Any] = {
        "color": colours.activity(code),
        "opacity": 1.0 if on_path else 0.35,
        "line": {"width": 2 if on_path else 0, "color": colours.surface("text")},
    }
    if code == ActivityType.WAITING:
        paint["pattern"] = {"shape": "/", "size": 6, "solidity": 0.35, "fgcolor": colours.surface("card")}
    return paint


def _merged(
    edges: WindowEdges, rows: Rows, picked: NDArray[np.intp], start_ns: int, bucket_ns: int, colours: Palette
) -> tuple[list[dict[str, Any]], int]:
    """Short activities by lane and bucket of time, each bar in the colour of what took most of it."""
    bucket = (edges.src_ns[picked] - start_ns) // bucket_ns
    lengths = (edges.dst_ns[picked] - edges.src_ns[picked]).tolist()
    groups: dict[tuple[int, int], dict[int, list[int]]] = {}
    for worker, place, code, length in zip(
        edges.src[picked].tolist(), bucket.tolist(), edges.type[picked].tolist(), lengths, strict=True
    ):
        groups.setdefault((worker, place), {}).setdefault(code, []).append(length)
    by_kind: dict[int, list[tuple[float, float, int, str]]] = {}
    for (worker, place), kinds in groups.items():
        code = max(kinds, key=lambda kind: sum(kinds[kind]))
        total = sum(map(sum, kinds.values()))
        count = sum(map(len, kinds.values()))
        parts = [f"{words.activity(k)} {words.duration(sum(v))}" for k, v in kinds.items()]
        text = f"<b>{count:,} short activities merged</b><br>{', '.join(parts)}"
        by_kind.setdefault(code, []).append((place * bucket_ns / 1e6, total / 1e6, rows.place[worker], text))
    traces = []
    for code, bars in sorted(by_kind.items()):
        traces.append(
            {
                "type": "bar", "orientation": "h", "name": f"{words.activity(code)}, merged", "width": 0.72,
                "base": [b[0] for b in bars], "x": [b[1] for b in bars], "y": [b[2] for b in bars],
                "customdata": [-1] * len(bars), "hovertext": [b[3] for b in bars],
                "hovertemplate": "%{hovertext}<extra></extra>", "marker": _paint(code, False, colours),
            }
        )  # fmt: skip
    return traces, len(groups)


def _arrows(
    edges: WindowEdges, rows: Rows, message: Mask, start_ns: int, label: _Label, colours: Palette
) -> tuple[list[dict[str, Any]], str]:
    critical = np.flatnonzero(message & edges.on_path)
    others = np.flatnonzero(message & ~edges.on_path)
    note = ""
    if len(others) > MAX_MESSAGES:
        lengths = edges.dst_ns[others] - edges.src_ns[others]
        note = f"the {len(others) - MAX_MESSAGES:,} shortest messages off the critical path are left out"
        others = others[np.argsort(-lengths, kind="stable")[:MAX_MESSAGES]]
    traces = []
    for chosen, on_path in ((others, False), (critical, True)):
        for code in np.unique(edges.type[chosen]).tolist():
            picked = chosen[edges.type[chosen] == code]
            traces.append(_arrow(edges, rows, picked, code, on_path, start_ns, label, colours))
    return traces, note


def _arrow(
    edges: WindowEdges, rows: Rows, picked: NDArray[np.intp], code: int, on_path: bool, start_ns: int,
    label: _Label, colours: Palette,
) -> dict[str, Any]:  # fmt: skip
    sent, received = _ms(edges.src_ns[picked] - start_ns), _ms(edges.dst_ns[picked] - start_ns)
    x: list[float | None] = []
    y: list[int | None] = []
    texts: list[str] = []
    ids: list[int] = []
    for i, first, last in zip(picked.tolist(), sent, received, strict=True):
        x += [first, last, None]
        y += [rows.place[int(edges.src[i])], rows.place[int(edges.dst[i])], None]
        text = label(i)
        texts += [text, text, ""]
        ids += [i, i, -1]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{words.activity(code)}{', critical path' if on_path else ''}",
        "x": x,
        "y": y,
        "customdata": ids,
        "hovertext": texts,
        "hovertemplate": "%{hovertext}<extra></extra>",
        "opacity": 1.0 if on_path else 0.35,
        "line": {"width": 2.5 if on_path else 1.2, "color": colours.activity(code)},
        "marker": {
            "symbol": "arrow", "angleref": "previous", "size": [4, 11, 0] * len(picked),
            "color": colours.activity(code),
            "line": {"width": 1 if on_path else 0, "color": colours.surface("text")},
        },
    }  # fmt: skip


def _ms(values_ns: Sequence[int] | NDArray[np.int64]) -> list[float]:
    return [round(float(value) / 1e6, 6) for value in values_ns]
