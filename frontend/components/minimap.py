"""The whole window in a strip above its lanes: how busy the workers were, where the critical path went, what is
visible below. Dragging on it zooms (``assets/5_timeline.js``).
"""

from __future__ import annotations

import base64
from itertools import pairwise
from typing import Any

import numpy as np
from dash import html
from numpy.typing import NDArray

from analytics.model.activity import TYPE_COUNT, ActivityType
from frontend import words
from frontend.palette import Palette
from webapp.analysis.edge_index import EdgeIndex

COLUMNS = 320
BUSY_PX, PATH_PX = 34, 8
IDLE = (ActivityType.WAITING, ActivityType.UNKNOWN)


def minimap(index: EdgeIndex, span: tuple[int, int], colours: Palette) -> list[Any]:
    """The strip of the window ``span`` (ns): a picture, and the mark of what is visible."""
    busy, path = _busy(index, span), _path(index, span)
    workers = max(1, len(index.workers))
    total_ns = (span[1] - span[0]) * workers
    kinds = [int(code) for code in np.argsort(-busy.sum(axis=0), kind="stable") if busy[:, code].any()]
    share = busy / max(1, (span[1] - span[0]) / COLUMNS * workers)
    parts, floor = [], np.zeros(COLUMNS)
    for code in kinds:
        parts.append(_area(floor, floor + share[:, code], colours.activity(code)))
        floor = floor + share[:, code]
    parts += _runs(path, colours)
    height = BUSY_PX + PATH_PX
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS} {height}" preserveAspectRatio="none">'
        f"{''.join(parts)}</svg>"
    )
    most = ", ".join(
        f"{words.activity(code)} {words.percent(busy[:, code].sum() / total_ns)}" for code in kinds[:3]
    )
    text = f"The whole window. Workers' time: {most or 'nothing'}. The strip below is the critical path."
    source = base64.b64encode(picture.encode()).decode("ascii")
    return [
        html.Img(
            src=f"data:image/svg+xml;base64,{source}", alt=text, title="Drag to zoom", draggable="false"
        ),
        html.Div(className="mark", **{"aria-hidden": "true"}),
    ]


def _busy(index: EdgeIndex, span: tuple[int, int]) -> NDArray[np.float64]:
    """Time by column and type: what began before a border less what ended before it, summed up."""
    edges, borders = index.edges, np.linspace(span[0], span[1], COLUMNS + 1)
    busy = np.zeros((COLUMNS, TYPE_COUNT))
    picked = index.activities(index.workers, *span)
    for code in np.unique(edges.type[picked]).tolist():
        if code not in IDLE:
            mine = picked[edges.type[picked] == code]
            busy[:, code] = np.diff(_until(edges.src_ns[mine], borders) - _until(edges.dst_ns[mine], borders))
    return busy


def _until(at_ns: NDArray[np.int64], borders: NDArray[np.float64]) -> NDArray[np.float64]:
    """How long before each border each moment lies, added up over the moments before it."""
    ordered = np.sort(at_ns) - borders[0]
    before = np.searchsorted(ordered, borders - borders[0])
    sums = np.concatenate([[0.0], np.cumsum(ordered, dtype=np.float64)])
    until: NDArray[np.float64] = before * (borders - borders[0]) - sums[before]
    return until


def _path(index: EdgeIndex, span: tuple[int, int]) -> NDArray[np.int64]:
    """The type of the critical path at the middle of each column; -1 where there is none."""
    edges, path = index.edges, index.path
    middle = span[0] + (np.arange(COLUMNS) + 0.5) * (span[1] - span[0]) / COLUMNS
    at = np.searchsorted(edges.src_ns[path], middle, "right") - 1
    inside = (at >= 0) & (edges.dst_ns[path][at] >= middle) if len(path) else np.zeros(COLUMNS, np.bool_)
    return np.where(inside, edges.type[path][at], -1).astype(np.int64) if len(path) else np.full(COLUMNS, -1)


def _area(foot: NDArray[np.float64], top: NDArray[np.float64], colour: str) -> str:
    high = [f"{BUSY_PX * (1 - min(1.0, value)):.1f}" for value in top.tolist()]
    low = [f"{BUSY_PX * (1 - min(1.0, value)):.1f}" for value in foot.tolist()]
    over = "".join(f"V{y}H{x + 1}" for x, y in enumerate(high))
    back = "".join(f"V{y}H{x}" for x, y in reversed(list(enumerate(low))))
    return f'<path fill="{colour}" fill-opacity=".6" d="M0 {low[0]}{over}{back}Z"/>'


def _runs(path: NDArray[np.int64], colours: Palette) -> list[str]:
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(path)) + 1, [len(path)]]).tolist()
    return [
        f'<rect x="{first}" y="{BUSY_PX + 1}" width="{last - first}" height="{PATH_PX - 1}"'
        f' fill="{colours.activity(int(path[first]))}"/>'
        for first, last in pairwise(cuts)
        if path[first] >= 0
    ]
