"""How many transient critical paths there are, and how many pass each place (SnailTrail, algorithm 2).

The number of paths multiplies with every barrier in a window and leaves the range of doubles quickly. A count is
therefore kept as ``mantissa * 2**(256 * exponent)`` with a mantissa in [1, 2**256), or 0 for none: adding costs
a comparison, no logarithm is taken until the end, and the relative error stays that of adding doubles.

F(v), the paths from the window's start to node v, adds up over the in-edges that may carry a path; B(v), those from
v to the window's end, over the out-edges. An edge (u, v) is then in F(u)·B(v) of the N paths.

F needs the nodes in topological order. Each worker's nodes are a chain in order already, so only messages can hold
one back: every chain runs until a node some message has not reached yet, and the last message to reach it sets the
chain going again. That is linear, needs no sort by time (messages within one instant would make one wrong) and
stops early exactly if there is a cycle. B takes the same order backwards.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.jit import kernel
from analytics.critical_path.ordering import counting_order
from analytics.model.results import Float64
from analytics.model.trace import Int32, Int64

_STEP = 256
_BIG = 2.0**_STEP
_SMALL = 2.0**-_STEP
_LOG10_STEP = _STEP * math.log10(2.0)

Scaled = tuple[float, int]


class WindowGraph(NamedTuple):
    """Nodes of one window: worker w's are ``offset[w]:offset[w+1]``, the first at its start, the last at its end.

    ``open[v]``: whether the stretch from node v to v + 1 carries paths. Messages are parallel arrays;
    ``by_src`` sorts them by (src, dst), ``by_dst`` by (dst, src); ``src_pointer[v]:src_pointer[v+1]`` are
    those of node v in ``by_src``, ``dst_pointer`` likewise.
    """

    offset: Int64
    open: NDArray[np.bool_]
    src: Int32
    dst: Int32
    dst_worker: Int32
    by_src: Int32
    by_dst: Int32
    src_pointer: Int32
    dst_pointer: Int32


class PathCounts(NamedTuple):
    """F, B and N as scaled numbers, and the nodes in topological order: fewer than all if there is a cycle."""

    forward: Float64
    forward_exponent: Int32
    backward: Float64
    backward_exponent: Int32
    order: Int32
    total: float
    total_exponent: int
    total_backward: float
    total_backward_exponent: int


@kernel
def add(a: float, a_exponent: int, b: float, b_exponent: int) -> Scaled:
    """Sum of two scaled numbers; one smaller by 2**-256 or more does not show in 53 bits."""
    if b == 0.0:
        return a, a_exponent
    if a == 0.0:
        return b, b_exponent
    if a_exponent == b_exponent:
        total = a + b
        if total >= _BIG:
            return total * _SMALL, a_exponent + 1
        return total, a_exponent
    if a_exponent == b_exponent + 1:
        return a + b * _SMALL, a_exponent
    if b_exponent == a_exponent + 1:
        return b + a * _SMALL, b_exponent
    if a_exponent > b_exponent:
        return a, a_exponent
    return b, b_exponent


@kernel
def share(counts: PathCounts, u: int, v: int) -> float:
    """F(u)·B(v) / N: the share of all paths that use an edge (u, v). Below 2**-512 it is given as 0."""
    steps = counts.forward_exponent[u] + counts.backward_exponent[v] - counts.total_exponent
    value = counts.forward[u] * counts.backward[v] / counts.total
    while steps > 0:
        value *= _BIG
        steps -= 1
    if steps < -3:
        return 0.0
    while steps < 0:
        value *= _SMALL
        steps += 1
    return float(value)


@kernel
def log10_of(value: float, exponent: int) -> float:
    """Decimal logarithm of a scaled number that is not 0."""
    return math.log10(value) + exponent * _LOG10_STEP


@kernel
def relative_difference(a: float, a_exponent: int, b: float, b_exponent: int) -> float:
    """|a/b - 1| for two scaled numbers; 0 if both are 0, infinite if only one is."""
    if a == 0.0 or b == 0.0:
        return 0.0 if a == b else math.inf
    if abs(a_exponent - b_exponent) > 1:
        return math.inf
    return abs(a / b * _BIG ** (a_exponent - b_exponent) - 1.0)


@kernel
def sort_messages(nodes: int, src: Int32, dst: Int32) -> tuple[Int32, Int32, Int32, Int32]:
    """``by_src``, ``by_dst``, ``src_pointer`` and ``dst_pointer`` of a window graph."""
    src_pointer = np.empty(nodes + 1, np.int32)
    dst_pointer = np.empty(nodes + 1, np.int32)
    some = counting_order(dst, nodes, np.arange(len(src)).astype(np.int32), dst_pointer)
    by_src = counting_order(src, nodes, some, src_pointer)
    by_dst = counting_order(dst, nodes, by_src, dst_pointer)
    return by_src, by_dst, src_pointer, dst_pointer


@kernel
def _forward_at(graph: WindowGraph, forward: Float64, exponent: Int32, v: int, is_first: bool) -> Scaled:
    """F(v), when all it adds up is known. Addends come in a fixed order, so that equal input gives equal bits."""
    value, step = 0.0, 0
    if is_first:
        value = 1.0
    elif graph.open[v - 1]:
        value, step = forward[v - 1], exponent[v - 1]
    for k in range(graph.dst_pointer[v], graph.dst_pointer[v + 1]):
        u = graph.src[graph.by_dst[k]]
        value, step = add(value, step, forward[u], exponent[u])
    return value, step


@kernel
def _count_forward(n: int, graph: WindowGraph, forward: Float64, exponent: Int32, order: Int32) -> int:
    """Fill ``forward`` in topological order, kept in ``order``; returns how many nodes could be reached."""
    awaited = graph.dst_pointer[1:] - graph.dst_pointer[:-1]
    position = graph.offset[:n].copy()
    stack = np.arange(n)[::-1].copy()
    is_stacked = np.ones(n, np.bool_)
    depth, done = n, 0
    while depth > 0:
        w = stack[depth - 1]
        v, stop = position[w], graph.offset[w + 1]
        depth -= 1
        while v < stop and awaited[v] == 0:
            forward[v], exponent[v] = _forward_at(graph, forward, exponent, v, v == graph.offset[w])
            order[done] = v
            done += 1
            position[w] = v + 1
            for k in range(graph.src_pointer[v], graph.src_pointer[v + 1]):
                m = graph.by_src[k]
                peer = graph.dst_worker[m]
                awaited[graph.dst[m]] -= 1
                if awaited[graph.dst[m]] == 0 and position[peer] == graph.dst[m] and not is_stacked[peer]:
                    stack[depth] = peer
                    is_stacked[peer] = True
                    depth += 1
            v += 1
        is_stacked[w] = False
    return done


@kernel
def _count_backward(n: int, graph: WindowGraph, order: Int32, backward: Float64, exponent: Int32) -> None:
    is_last = np.zeros(len(backward), np.bool_)
    for w in range(n):
        is_last[graph.offset[w + 1] - 1] = True
    for v in order[::-1]:
        value, step = 0.0, 0
        if is_last[v]:
            value = 1.0
        elif graph.open[v]:
            value, step = backward[v + 1], exponent[v + 1]
        for k in range(graph.src_pointer[v], graph.src_pointer[v + 1]):
            x = graph.dst[graph.by_src[k]]
            value, step = add(value, step, backward[x], exponent[x])
        backward[v], exponent[v] = value, step


@kernel
def count_paths(n: int, graph: WindowGraph) -> PathCounts:
    """F, B and N of a window's graph; with a cycle only ``order`` means anything."""
    nodes = graph.offset[n]
    forward, backward = np.empty(nodes), np.empty(nodes)
    forward_exponent, backward_exponent = np.zeros(nodes, np.int32), np.zeros(nodes, np.int32)
    order = np.empty(nodes, np.int32)
    done = _count_forward(n, graph, forward, forward_exponent, order)
    total, step, total_back, step_back = 0.0, 0, 0.0, 0
    if done == nodes:
        _count_backward(n, graph, order, backward, backward_exponent)
        for w in range(n):
            first, last = graph.offset[w], graph.offset[w + 1] - 1
            total, step = add(total, step, forward[last], forward_exponent[last])
            total_back, step_back = add(total_back, step_back, backward[first], backward_exponent[first])
    return PathCounts(
        forward,
        forward_exponent,
        backward,
        backward_exponent,
        order[:done],
        total,
        step,
        total_back,
        step_back,
    )


@kernel
def find_cycle(n: int, graph: WindowGraph, order: Int32, cycle: Int64) -> tuple[int, int]:
    """Write the workers of a cycle, in its direction, into ``cycle`` (as many as fit, then -1).

    Returns the node of the first and how many there are.

    A node that was not reached waits for one that was not reached: going back along those ends in a circle.
    """
    nodes = graph.offset[n]
    reached = np.zeros(nodes, np.bool_)
    reached[order] = True
    is_first = np.zeros(nodes, np.bool_)
    is_first[graph.offset[:n]] = True
    v = np.int64(np.argmin(reached))
    seen = np.zeros(nodes, np.bool_)
    trail = np.empty(nodes + 1, np.int64)
    length = 0
    while not seen[v]:
        seen[v] = True
        trail[length] = v
        length += 1
        before = v - 1
        if is_first[v] or reached[before]:
            for k in range(graph.dst_pointer[v], graph.dst_pointer[v + 1]):
                before = np.int64(graph.src[graph.by_dst[k]])
                if not reached[before]:
                    break
        v = before
    cycle[:] = -1
    node = trail[length - 1]
    size = 0
    while size == 0 or trail[length - size] != v:
        size += 1
        if size <= len(cycle):
            cycle[size - 1] = np.searchsorted(graph.offset, trail[length - size], side="right") - 1
    return int(node), size
