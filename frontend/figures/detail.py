"""Level of detail: what of a window's edges is drawn one by one, what is merged, and what is left out.

A chart with a hundred thousand bars is neither readable nor fast. So of the visible range the critical path and the
longest activities become bars; all others are merged, lane by lane and pixel column by pixel column, into a
texture in which each cell has the colour of what took most of it. Zooming in makes more of them bars, until
nothing is merged. ``Detail`` accounts for every visible edge exactly once, and ``Detail.words`` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.model.results import WindowEdges
from frontend import words
from frontend.figures.rows import Rows
from webapp.analysis.edge_index import EdgeIndex, Picked

MAX_BARS = 500
MAX_CRITICAL = 1500
MAX_MESSAGES = 200
MAX_CRITICAL_MESSAGES = 1000
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Texture:
    """Merged activities: ``busy_ns[row, column, k]`` of type ``kinds[k]``, and how many touch each cell."""

    kinds: list[int]
    busy_ns: Ints
    count: Ints

    def dominant(self) -> NDArray[np.int8]:
        """The type that takes most of each cell; -1 where nothing was merged."""
        if not self.kinds:
            return np.full(self.count.shape, -1, np.int8)
        most = np.array(self.kinds, np.int8)[self.busy_ns.argmax(axis=2)]
        return np.where(self.count > 0, most, np.int8(-1)).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Detail:
    """Positions in the edges.

    Of the activities that overlap the range on the shown lanes each is in exactly one of ``critical``, ``others``,
    ``merged`` and ``merged_critical``. Of the messages under way each is in exactly one of ``critical_messages``,
    ``messages`` and ``left_out``, but for those with an end on a lane not shown: ``elsewhere`` counts them.
    """

    from_ns: int
    to_ns: int
    critical: Picked
    others: Picked
    merged: Picked
    merged_critical: Picked
    texture: Texture
    critical_texture: Texture
    critical_messages: Picked
    messages: Picked
    left_out: Picked
    elsewhere: int

    def words(self) -> list[str]:
        """What is merged or left out, with counts; nothing if all is drawn."""
        said = []
        if len(self.merged):
            said.append(f"{words.count(len(self.merged), 'short segment')} merged by pixel and lane")
        if len(self.merged_critical):
            said.append(f"{words.count(len(self.merged_critical), 'short critical segment')} merged likewise")
        if len(self.left_out):
            said.append(f"{words.count(len(self.left_out), 'message')} of less CP not drawn")
        if said:
            said[-1] += " until you zoom in"
        if self.elsewhere:
            said.append(f"{words.count(self.elsewhere, 'message')} from or to hidden workers not drawn")
        return said


def detail(index: EdgeIndex, rows: Rows, span: tuple[int, int], columns: int) -> Detail:
    """What to draw of ``span`` (ns) on these rows, which are ``columns`` pixels wide."""
    edges = index.edges
    picked = index.activities(rows.workers, *span)
    on_path = edges.on_path[picked]
    others, merged = _longest(edges, picked[~on_path], span, columns)
    critical, merged_critical = picked[on_path], picked[:0]
    if len(critical) > MAX_CRITICAL:
        critical, merged_critical = _longest(edges, critical, span, columns)
    sent = index.messages(*span)
    shown = rows.shows(edges.src[sent]) & rows.shows(edges.dst[sent])
    arrows, left_out = _most_critical(edges, sent[shown])
    return Detail(
        *span, critical, others, merged, merged_critical,
        _texture(edges, merged, rows, span, columns), _texture(edges, merged_critical, rows, span, columns),
        arrows[edges.on_path[arrows]], arrows[~edges.on_path[arrows]], left_out, int((~shown).sum()),
    )  # fmt: skip


def _longest(
    edges: WindowEdges, picked: Picked, span: tuple[int, int], columns: int
) -> tuple[Picked, Picked]:
    """The longest, as far as they are a column wide and there is room for bars; and the rest."""
    length_ns = edges.dst_ns[picked] - edges.src_ns[picked]
    wide = length_ns * columns >= span[1] - span[0]
    if wide.sum() > MAX_BARS:
        longest = np.argsort(-length_ns, kind="stable")[:MAX_BARS]
        wide = np.zeros(len(picked), np.bool_)
        wide[longest] = True
    return picked[wide], picked[~wide]


def _most_critical(edges: WindowEdges, sent: Picked) -> tuple[Picked, Picked]:
    """The messages of the critical path and those with most CP (then the longest), and the rest."""
    on_path = edges.on_path[sent]
    length_ns = edges.dst_ns[sent] - edges.src_ns[sent]
    order = np.lexsort((-length_ns, -edges.cp[sent], ~on_path))
    path = int(on_path.sum())
    kept = np.zeros(len(sent), np.bool_)
    kept[order[: min(path, MAX_CRITICAL_MESSAGES)]] = True
    kept[order[path : path + MAX_MESSAGES]] = True
    return sent[kept], sent[~kept]


def _texture(edges: WindowEdges, merged: Picked, rows: Rows, span: tuple[int, int], columns: int) -> Texture:
    """Cut the merged activities at the borders of columns and add the pieces up, in whole ns."""
    if not len(merged):
        return Texture(
            [], np.zeros((rows.count, columns, 0), np.int64), np.zeros((rows.count, columns), np.int64)
        )
    borders = span[0] + np.arange(columns + 1, dtype=np.int64) * (span[1] - span[0]) // columns
    begin = np.maximum(edges.src_ns[merged], span[0])
    end = np.minimum(edges.dst_ns[merged], span[1])
    first = np.searchsorted(borders, begin, "right") - 1
    pieces = np.searchsorted(borders, end, "left") - first
    which = np.repeat(np.arange(len(merged)), pieces)
    column = first[which] + np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    length_ns = np.minimum(end[which], borders[column + 1]) - np.maximum(begin[which], borders[column])
    kinds, kind = np.unique(edges.type[merged], return_inverse=True)
    cell = rows.of(edges.src[merged])[which] * columns + column
    cells = rows.count * columns
    # float64 adds whole numbers exactly below 2**53: 104 days in ns
    busy = np.bincount(cell * len(kinds) + kind[which], length_ns, cells * len(kinds)).astype(np.int64)
    count = np.bincount(cell, minlength=cells)
    return Texture(
        kinds.tolist(), busy.reshape(rows.count, columns, len(kinds)), count.reshape(rows.count, columns)
    )
