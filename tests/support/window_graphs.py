"""Windows from a few rows, and slow re-timing and chains of waits from the definitions alone.

The oracle shares no code with the engine: a networkx graph, fractions, sets.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import networkx as nx

from analytics.critical_path import covering_windows, every_window_edges, trace_bounds, window_edges
from analytics.critical_path.windows import default_lifetimes
from analytics.model.results import WindowEdges, WindowSummary
from analytics.model.trace import Records
from tests.support.traces_small import CONTROL, DATA, UNKNOWN, WAITING, Row

MESSAGES = (CONTROL, DATA)
Edge = tuple[int, int, int, int, int, int]  # src, src_ns, dst, dst_ns, type, operator


def one_window(rows: list[Row], workers: int) -> tuple[WindowSummary, WindowEdges]:
    """The whole trace as one window; every worker lives from the first record to the last."""
    records = Records.of(rows)
    first, last = trace_bounds(records) or (0, 1)
    windows = covering_windows((first, last), last - first, first)
    summary, edges, _ = window_edges(records, *default_lifetimes(records, workers), windows)
    return summary, edges


def many_windows(rows: list[Row], workers: int, width: int) -> list[tuple[WindowSummary, WindowEdges]]:
    """Windows of this width from time 0 on."""
    records = Records.of(rows)
    found, _ = every_window_edges(
        records, *default_lifetimes(records, workers), covering_windows(records, width)
    )
    return list(found)


def listed(edges: WindowEdges) -> list[Edge]:
    """Edges as tuples."""
    columns = (edges.src, edges.src_ns, edges.dst, edges.dst_ns, edges.type, edges.operator)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def is_work(edge: Edge) -> bool:
    """Recorded, on one worker, not waiting."""
    return edge[4] not in (UNKNOWN, WAITING, *MESSAGES)


def retimed(
    edges: list[Edge], begin: int, end: int, faster: Callable[[Edge], bool], factor: float
) -> tuple[Fraction, dict[tuple[int, int], Fraction]]:
    """When the last vertex happens, and when each does, by the rules told in `analytics.critical_path.retiming`."""
    graph = nx.MultiDiGraph()
    for i, (src, src_ns, dst, dst_ns, _, _) in enumerate(edges):
        graph.add_edge((src, src_ns), (dst, dst_ns), key=i)
    at: dict[tuple[int, int], Fraction] = {}
    for vertex in nx.topological_sort(graph):
        into = [(u, edges[i]) for u, _, i in graph.in_edges(vertex, keys=True)]
        if not into:
            at[vertex] = Fraction(vertex[1] - begin)
            continue
        is_caused = any(edge[4] != WAITING for _, edge in into)
        arrivals = []
        for u, edge in into:
            takes = Fraction(edge[3] - edge[1])
            if edge[4] == WAITING and (is_caused or vertex[1] == end):
                takes = Fraction(0)
            if faster(edge):
                takes = takes / Fraction(factor) if factor != float("inf") else Fraction(0)
            arrivals.append(at[u] + takes)
        at[vertex] = max(arrivals)
    return max(at.values()), at


def chain(edges: list[Edge], wait: Edge, hops: int) -> list[set[int]]:
    """Positions of the edges of every hop of one wait."""
    found: list[set[int]] = []
    ends = {(wait[2], wait[3])}
    for _ in range(hops):
        hop = {i for i, e in enumerate(edges) if (e[2], e[3]) in ends and e[4] != WAITING}
        found.append(hop)
        ends = {(edges[i][0], edges[i][1]) for i in hop}
    return found
