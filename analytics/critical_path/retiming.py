"""Re-timing a window's graph: when everything would have happened had some of its edges been faster.

Every vertex happens as soon as all edges into it have been gone through: t'(v) = max over edges (u, v) of
t'(u) + d'(u, v), taken in topological order. The rules, and with them the assumptions of every "what if":

- Vertices without an edge into them keep their time: the window's start on each worker, and the moment a worker
  is added. Nothing before the window gets faster.
- An activity takes its recorded time, or that divided by the factor where it is made faster.
- A message takes as long as it did, unless messages of its type are what is made faster. What follows a receive
  on a worker needs the message, also when the worker was busy as it arrived: the graph knows no better, and the
  paths that critical participation counts make the same assumption.
- A wait takes no time of its own: it lasts from what the worker did before until the message that ends it. It
  shrinks if the message comes earlier and grows if the worker gets there earlier.
- A wait that no recorded message ends keeps its duration, like Unknown: nobody says what it depends on.
- A wait that reaches the window's end and no message ends there holds up nothing: no work follows it inside.
- Unknown keeps its duration. Nobody reported what it is, so nobody can promise that it shrinks.
- Order on a worker stays as it was, resources are as free as they were, and the amount of work does not change.
- Edges cut by the window's borders count with the part inside.

The window's work is done when its last vertex has happened. With every duration as recorded each vertex keeps its
time, so nothing is saved; t' only sums and maximises durations, so a shorter one can never make anything later.
Times are float64 ns since the window's start: exact for whole ones up to 2**53 (104 days).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.edge_graph import EdgeGraph, number_vertices, uncaused_waits
from analytics.critical_path.jit import kernel
from analytics.model.activity import ActivityType
from analytics.model.results import Float64, WindowEdges
from analytics.model.trace import Int64


class Retimable(NamedTuple):
    """A window ready to be re-timed. ``duration_ns`` is one an edge, ``earliest_ns`` one a vertex.

    Both are relative to ``begin_ns``. ``order`` is topological; it holds fewer than all vertices if messages
    within one instant go in a circle.
    """

    begin_ns: int
    end_ns: int
    graph: EdgeGraph
    order: Int64
    earliest_ns: Float64
    duration_ns: Float64


@kernel
def _topological_order(vertices: int, src: Int64, dst: Int64) -> Int64:
    pointer = np.zeros(vertices + 1, np.int64)
    missing = np.zeros(vertices, np.int64)
    for e in range(len(src)):
        pointer[src[e] + 1] += 1
        missing[dst[e]] += 1
    for v in range(vertices):
        pointer[v + 1] += pointer[v]
    cursor = pointer[:vertices].copy()
    target = np.empty(len(src), np.int64)
    for e in range(len(src)):
        target[cursor[src[e]]] = dst[e]
        cursor[src[e]] += 1
    order = np.empty(vertices, np.int64)
    found = 0
    for v in range(vertices):
        if missing[v] == 0:
            order[found] = v
            found += 1
    done = 0
    while done < found:
        v = order[done]
        done += 1
        for i in range(pointer[v], pointer[v + 1]):
            missing[target[i]] -= 1
            if missing[target[i]] == 0:
                order[found] = target[i]
                found += 1
    return order[:found]


@kernel
def _happen(
    order: Int64, pointer: Int64, in_edge: Int64, src: Int64, earliest: Float64, duration: Float64
) -> Float64:
    """When every vertex happens."""
    at = earliest.copy()
    for v in order:
        for i in range(pointer[v], pointer[v + 1]):
            e = in_edge[i]
            at[v] = max(at[v], at[src[e]] + duration[e])
    return at


@kernel
def _last_moments(
    order: Int64, pointer: Int64, in_edge: Int64, src: Int64, earliest: Float64, duration: Float64,
    group: Int64, factors: Float64, groups: int,
) -> Float64:  # fmt: skip
    """``(groups, factors)``: when the last vertex happens if one group's edges were so many times faster."""
    last = np.zeros((groups, len(factors)))
    at = np.empty(len(earliest))
    for g in range(groups):
        for f in range(len(factors)):
            at[:] = earliest
            for v in order:
                for i in range(pointer[v], pointer[v + 1]):
                    e = in_edge[i]
                    takes = duration[e] / factors[f] if group[e] == g else duration[e]
                    at[v] = max(at[v], at[src[e]] + takes)
                last[g, f] = max(last[g, f], at[v])
    return last


def prepare(edges: WindowEdges, begin_ns: int, end_ns: int) -> Retimable:
    """Number the vertices of a window's graph, put them in order and say how long each edge takes by itself."""
    graph = number_vertices(edges)
    vertices = len(graph.time_ns)
    order = _topological_order(vertices, graph.src, graph.dst)
    has_no_cause = np.diff(graph.in_pointer) == 0
    earliest = np.where(has_no_cause, graph.time_ns - begin_ns, 0).astype(np.float64)
    waits = edges.type == int(ActivityType.WAITING)
    keeps_time = ~waits | (uncaused_waits(edges, graph) & (edges.dst_ns < end_ns))
    duration = np.where(keeps_time, edges.dst_ns - edges.src_ns, 0).astype(np.float64)
    return Retimable(begin_ns, end_ns, graph, order, earliest, duration)


def moments(window: Retimable, duration_ns: Float64) -> Float64:
    """When every vertex happens, in ns since the window's start, if its edges take ``duration_ns``."""
    g = window.graph
    return _happen(window.order, g.in_pointer, g.in_edge, g.src, window.earliest_ns, duration_ns)


def last_moments(window: Retimable, group: Int64, groups: int, factors: Float64) -> Float64:
    """When the window's work is done if one group of edges were faster: ``(groups, factors)``, in ns.

    ``group`` is one number an edge, negative for none; every edge is in one group at most. Factors are at least 1
    and may be infinite.
    """
    g = window.graph
    return _last_moments(
        window.order, g.in_pointer, g.in_edge, g.src, window.earliest_ns, window.duration_ns, group, factors,
        groups,
    )  # fmt: skip


def binding_edges(window: Retimable, duration_ns: Float64, at_ns: Float64) -> Int64:
    """The critical path after re-timing, as edges from its beginning to the last vertex.

    Walked back from the vertex that happens last (ties: the one that happened last as recorded, then the lower
    worker) over an edge that held it up. Ties go to an edge that takes time before one that takes none, then to
    the first in the window's order, so local edges go before messages. Empty only if a worker is added last.
    """
    g = window.graph
    held = at_ns[g.src] + duration_ns == at_ns[g.dst]
    steps: list[int] = []
    v = int(np.lexsort((g.time_ns, at_ns))[-1])
    v = int(np.flatnonzero((at_ns == at_ns[v]) & (g.time_ns == g.time_ns[v]))[0])
    while g.in_pointer[v] < g.in_pointer[v + 1]:
        into = g.in_edge[g.in_pointer[v] : g.in_pointer[v + 1]]
        holding = into[held[into]]
        if not len(holding):
            break
        edge = int(holding[np.argmax(duration_ns[holding] > 0)])
        steps.append(edge)
        v = int(g.src[edge])
    return np.array(steps[::-1], np.int64)


def scaled(window: Retimable, faster: NDArray[np.bool_], factor: float) -> Float64:
    """Durations with some edges ``factor`` times faster."""
    result: Float64 = np.where(faster, window.duration_ns / factor, window.duration_ns)
    return result
