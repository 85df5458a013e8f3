"""A window's edges as a graph one can walk: vertices numbered, and the edges into each at hand.

A vertex is a moment of one worker. Edges meet only where both agree: joining on time alone would let a walk jump
between workers that happen to have an event in the same nanosecond.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from analytics.model.trace import Int32, Int64, UInt8


class EdgeGraph(NamedTuple):
    """Vertices ascend by (worker, time); ``src`` and ``dst`` are the vertices of every edge.

    ``in_edge[in_pointer[v]:in_pointer[v+1]]`` are the edges into vertex v, in the order of the window's edges.
    """

    worker: Int32
    time_ns: Int64
    src: Int64
    dst: Int64
    in_pointer: Int64
    in_edge: Int64


def number_vertices(edges: WindowEdges) -> EdgeGraph:
    """The graph of a window's edges, in O(edges · log edges)."""
    count = len(edges.src)
    worker = np.concatenate([edges.src, edges.dst])
    time_ns = np.concatenate([edges.src_ns, edges.dst_ns])
    order = np.lexsort((time_ns, worker))
    worker, time_ns = worker[order], time_ns[order]
    is_new = np.ones(2 * count, np.bool_)
    is_new[1:] = (worker[1:] != worker[:-1]) | (time_ns[1:] != time_ns[:-1])
    vertex = np.empty(2 * count, np.int64)
    vertex[order] = np.cumsum(is_new) - 1
    src, dst = vertex[:count], vertex[count:]
    vertices = int(is_new.sum())
    pointer = np.zeros(vertices + 1, np.int64)
    np.cumsum(np.bincount(dst, minlength=vertices), out=pointer[1:])
    by_dst = np.argsort(dst, kind="stable")
    return EdgeGraph(worker[is_new], time_ns[is_new], src, dst, pointer, by_dst)


def is_message(types: UInt8) -> NDArray[np.bool_]:
    """Which edges are messages, by their types."""
    messages: NDArray[np.bool_] = np.isin(types, (ActivityType.CONTROL_MESSAGE, ActivityType.DATA_MESSAGE))
    return messages


def uncaused_waits(edges: WindowEdges, graph: EdgeGraph) -> NDArray[np.bool_]:
    """Waiting edges whose end vertex ends nothing else: no recorded message says what they waited for."""
    waiting = edges.type == int(ActivityType.WAITING)
    causes = np.bincount(graph.dst[~waiting], minlength=len(graph.time_ns))
    uncaused: NDArray[np.bool_] = waiting & (causes[graph.dst] == 0)
    return uncaused
