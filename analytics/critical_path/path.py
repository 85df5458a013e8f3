"""Every edge of one window, and its representative critical path.

The path is walked back from the end vertex that most paths reach (ties: the lower worker) over the in-edge that
most paths use: among in-edges of one vertex that is the one whose source most paths reach. Ties go to the lower
worker, then to the local edge, then to the message sent last, then to the lower (type, operator).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.counts import PathCounts, WindowGraph, count_paths, share
from analytics.critical_path.cutting import Cut, advance, start_cut, vertex_of
from analytics.critical_path.grouping import Grouped
from analytics.critical_path.jit import kernel
from analytics.critical_path.labels import DEAD, Labels
from analytics.critical_path.summaries import summarise
from analytics.critical_path.sweep import Inside, build_graph, next_active
from analytics.critical_path.timeline import Timelines
from analytics.critical_path.trace_graph import TraceGraph, build, number_channels
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import Float64, WindowEdges, Windows, WindowStatus, WindowSummary
from analytics.model.trace import Int32, Int64, Records, UInt8


class _Edges(NamedTuple):
    """Columns of `WindowEdges` but for ``cp``."""

    src: Int32
    src_ns: Int64
    dst: Int32
    dst_ns: Int64
    type: UInt8
    operator: Int32
    share: Float64
    on_path: NDArray[np.bool_]


@kernel
def _compare(counts: PathCounts, u: int, v: int) -> int:
    """1 if more paths reach node u than v, -1 if fewer, 0 if as many. Neither may be reached by none."""
    if counts.forward_exponent[u] != counts.forward_exponent[v]:
        return 1 if counts.forward_exponent[u] > counts.forward_exponent[v] else -1
    return int(counts.forward[u] > counts.forward[v]) - int(counts.forward[u] < counts.forward[v])


@kernel
def _better_message(
    g: Grouped, graph: WindowGraph, inside: Inside, counts: PathCounts, k: int, best: int
) -> bool:
    """Whether the path comes through message ``k`` rather than ``best`` (-1: none yet), which end alike."""
    if best < 0:
        return True
    u, v = graph.src[k], graph.src[best]
    order = _compare(counts, u, v)
    if order != 0:
        return order > 0
    a, b = inside.message[k], inside.message[best]
    if g.msg_src[a] != g.msg_src[b]:
        return bool(g.msg_src[a] < g.msg_src[b])
    if u != v:
        return bool(u > v)
    if g.msg_type[a] != g.msg_type[b]:
        return bool(g.msg_type[a] < g.msg_type[b])
    return bool(g.msg_operator[a] < g.msg_operator[b])


@kernel
def _walk_back(
    n: int, g: Grouped, graph: WindowGraph, inside: Inside, counts: PathCounts,
    on_stretch: NDArray[np.bool_], on_message: NDArray[np.bool_],
) -> None:  # fmt: skip
    """Mark the stretches (by the node they begin at) and messages of the representative path."""
    at = -1
    for w in range(n):
        last = graph.offset[w + 1] - 1
        if counts.forward[last] > 0.0 and (at < 0 or _compare(counts, last, at) > 0):
            at = last
    worker = np.searchsorted(graph.offset, at, side="right") - 1
    while at != graph.offset[worker]:
        best = -1
        for i in range(graph.dst_pointer[at], graph.dst_pointer[at + 1]):
            k = graph.by_dst[i]
            if counts.forward[graph.src[k]] > 0.0 and _better_message(g, graph, inside, counts, k, best):
                best = k
        is_local = graph.open[at - 1] and counts.forward[at - 1] > 0.0
        if is_local and best >= 0:
            order = _compare(counts, at - 1, graph.src[best])
            is_local = order > 0 or (order == 0 and worker <= g.msg_src[inside.message[best]])
        if is_local:
            at -= 1
            on_stretch[at] = True
        else:
            on_message[best] = True
            at = graph.src[best]
            worker = g.msg_src[inside.message[best]]


@kernel
def _list_stretches(
    n: int, t: Timelines, labels: Labels, cut: Cut, begin: int, end: int, has_paths: bool, graph: WindowGraph,
    counts: PathCounts, on_stretch: NDArray[np.bool_], out: _Edges,
) -> int:  # fmt: skip
    count = 0
    for w in range(n):
        base = cut.offset[w]
        a = vertex_of(t, cut, w, 0)
        for j in range(cut.offset[w + 1] - base - 1):
            b = vertex_of(t, cut, w, j + 1)
            part = share(counts, base + j, base + j + 1) if has_paths and graph.open[base + j] else 0.0
            for u in range(max(a, t.offset[w]), b):
                label = t.label[u]
                if label != DEAD:
                    out.src[count], out.dst[count] = w, w
                    out.src_ns[count], out.dst_ns[count] = max(t.time[u], begin), min(t.time[u + 1], end)
                    out.type[count], out.operator[count] = labels.type[label], labels.operator[label]
                    out.share[count], out.on_path[count] = part, on_stretch[base + j]
                    count += 1
            a = b
    return count


@kernel
def _list_edges(
    n: int, g: Grouped, t: Timelines, labels: Labels, begin: int, end: int, active: Int64, has_paths: bool
) -> tuple[_Edges, int, int]:
    """All edges of the window, local ones first; returns them, how many are local and how many there are."""
    cut = start_cut(n, t)
    advance(n, t, begin, end, cut)
    graph, inside = build_graph(n, g, t, cut, begin, end, active)
    counts = count_paths(n, graph)
    on_stretch = np.zeros(cut.offset[n], np.bool_)
    on_message = np.zeros(len(graph.src), np.bool_)
    if has_paths:
        _walk_back(n, g, graph, inside, counts, on_stretch, on_message)
    size = len(graph.src) + n
    for w in range(n):
        size += cut.stop[w] - cut.first[w]
    out = _Edges(
        np.empty(size, np.int32), np.empty(size, np.int64), np.empty(size, np.int32), np.empty(size, np.int64),
        np.empty(size, np.uint8), np.empty(size, np.int32), np.zeros(size), np.zeros(size, np.bool_),
    )  # fmt: skip
    local = _list_stretches(n, t, labels, cut, begin, end, has_paths, graph, counts, on_stretch, out)
    for k in range(len(graph.src)):
        m, i = inside.message[k], local + k
        out.src[i], out.dst[i] = g.msg_src[m], g.msg_dst[m]
        out.src_ns[i] = max(g.msg_sent[m], begin)
        out.dst_ns[i] = min(g.msg_received[m], end)
        out.type[i], out.operator[i] = g.msg_type[m], g.msg_operator[m]
        out.on_path[i] = on_message[k]
        if has_paths:
            out.share[i] = share(counts, graph.src[k], graph.dst[k])
    return out, local, local + len(graph.src)


def window_edges(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    windows: Windows,
    *,
    bounds_ns: tuple[int, int] | None = None,
    horizon_ns: int | None = None,
) -> tuple[WindowSummary, WindowEdges, list[Diagnostic]]:
    """One window's summary, and every edge of its program activity graph with its part in the critical paths.

    Parameters are those of `analyse`; ``windows.count`` must be 1. Local edges come first, by (worker, time),
    then messages by (sender, send, receiver, receive, type, operator). Messages received before they
    were sent are no edges. Unless the status is OK nothing is on the path and all shares are 0.

    Raises
    ------
    ValueError
        If ``windows`` is not exactly one window, or as in `analyse`.
    """
    if windows.count != 1:
        raise ValueError(f"edges are listed for one window at a time, not {windows.count}")
    found, diagnostics = every_window_edges(
        records, alive_from_ns, alive_until_ns, windows, bounds_ns=bounds_ns, horizon_ns=horizon_ns
    )
    summary, edges = next(found)
    return summary, edges, diagnostics


def every_window_edges(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    windows: Windows,
    *,
    bounds_ns: tuple[int, int] | None = None,
    horizon_ns: int | None = None,
) -> tuple[Iterator[tuple[WindowSummary, WindowEdges]], list[Diagnostic]]:
    """`window_edges` of each window in turn; the timelines are laid out only once, for all of them."""
    graph = build(records, alive_from_ns, alive_until_ns, windows, bounds_ns, horizon_ns)
    channels = number_channels(graph.grouped, len(graph.born_ns))
    summaries = summarise(graph, channels, graph.sweep(channels))
    return _in_turn(graph, summaries), list(merge(graph.diagnostics))


def _in_turn(
    graph: TraceGraph, summaries: list[WindowSummary]
) -> Iterator[tuple[WindowSummary, WindowEdges]]:
    active = graph.bucket[:0]
    for k, summary in enumerate(summaries):
        active = next_active(k, active, graph.bucket_pointer, graph.bucket, graph.last_window)
        begin, end = int(graph.begins_ns[k]), int(graph.ends_ns[k])
        yield summary, _edges(graph, summary, begin, end, active)


def _edges(graph: TraceGraph, summary: WindowSummary, begin: int, end: int, active: Int64) -> WindowEdges:
    e, local, size = _list_edges(
        len(graph.born_ns) if begin < end else 0, graph.grouped, graph.timelines, graph.labels, begin, end,
        active if begin < end else active[:0], summary.status is WindowStatus.OK,
    )  # fmt: skip
    keys = (e.operator, e.type, e.dst_ns, e.dst, e.src_ns, e.src)
    order = np.lexsort((*(key[:size] for key in keys), np.arange(size) >= local))
    part = e.share[order]
    return WindowEdges(
        e.src[order], e.src_ns[order], e.dst[order], e.dst_ns[order], e.type[order], e.operator[order],
        part * (e.dst_ns - e.src_ns)[order] / max(end - begin, 1), part, e.on_path[order],
    )  # fmt: skip
