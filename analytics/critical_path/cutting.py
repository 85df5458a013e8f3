"""One window of the timelines: the projection of SnailTrail's definition 5, without copying any edge.

Of worker w, the vertices strictly inside the window are a range of the timeline. Its graph has one node at the
window's start, one for each station inside, and one at its end; what lies at or before the start is the first
node, what lies at or after the end the last. A stretch cut by a border keeps its label, a message in flight
across the start leaves from the sender's first node, one in flight across the end arrives at the last.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.grouping import Grouped
from analytics.critical_path.jit import kernel
from analytics.critical_path.timeline import Timelines
from analytics.model.trace import Int64


class Cut(NamedTuple):
    """Per worker: vertices ``first:stop`` and stations ``station_first:station_stop`` strictly inside the window.

    ``offset`` has one more entry: worker w's nodes are ``offset[w]:offset[w+1]``.
    """

    first: Int64
    stop: Int64
    station_first: Int64
    station_stop: Int64
    offset: Int64


@kernel
def _seek(values: Int64, low: int, high: int, key: int) -> int:
    """The first position in ``values[low:high]`` that is not below ``key``; quick when it is near ``low``."""
    step = 1
    while low + step < high and values[low + step] < key:
        low += step
        step *= 2
    high = min(high, low + step)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def start_cut(n: int, t: Timelines) -> Cut:
    """A cut before the first window."""
    first, station = t.offset[:n], t.station_offset[:n]
    return Cut(first.copy(), first.copy(), station.copy(), station.copy(), np.zeros(n + 1, np.int64))


@kernel
def advance(n: int, t: Timelines, begin: int, end: int, cut: Cut) -> None:
    """Move the cut to the window from ``begin`` to ``end``, which must not lie before the present one."""
    nodes = 0
    for w in range(n):
        v_end, s_end = t.offset[w + 1], t.station_offset[w + 1]
        cut.first[w] = _seek(t.time, cut.stop[w], v_end, begin + 1)
        cut.stop[w] = _seek(t.time, cut.first[w], v_end, end)
        cut.station_first[w] = _seek(t.station_vertex, cut.station_stop[w], s_end, cut.first[w])
        cut.station_stop[w] = _seek(t.station_vertex, cut.station_first[w], s_end, cut.stop[w])
        cut.offset[w] = nodes
        nodes += cut.station_stop[w] - cut.station_first[w] + 2
    cut.offset[n] = nodes


@kernel
def vertex_of(t: Timelines, cut: Cut, w: int, j: int) -> int:
    """The vertex at which the stretch after worker w's j-th node begins; below ``t.offset[w]`` if it has none."""
    if j == 0:
        return int(cut.first[w] - 1)
    station = cut.station_first[w] + j - 1
    return int(t.station_vertex[station]) if station < cut.station_stop[w] else int(cut.stop[w])


@kernel
def node_of(cut: Cut, w: int, station: int) -> int:
    """The node that a station of worker w falls on."""
    if station < cut.station_first[w]:
        return int(cut.offset[w])
    return int(cut.offset[w] + 1 + min(station, cut.station_stop[w]) - cut.station_first[w])


@kernel
def open_stretches(n: int, t: Timelines, cut: Cut, is_open: NDArray[np.bool_]) -> None:
    """For every node, whether the worker neither waits nor is away until the next node."""
    for w in range(n):
        a = vertex_of(t, cut, w, 0)
        base = cut.offset[w]
        for j in range(cut.offset[w + 1] - base - 1):
            b = vertex_of(t, cut, w, j + 1)
            is_open[base + j] = a >= t.offset[w] and t.blocked[a] == t.blocked[b]
            a = b
        is_open[cut.offset[w + 1] - 1] = False


@kernel
def is_inside(g: Grouped, m: int, begin: int, end: int) -> bool:
    """Whether message ``m`` has a projection: it overlaps the window, or took no time within or on its border."""
    sent, received = g.msg_sent[m], g.msg_received[m]
    if sent == received:
        return bool(begin <= sent <= end and g.msg_src[m] != g.msg_dst[m])
    return bool(min(sent, received) < end and max(sent, received) > begin)


@kernel
def first_revival(
    n: int, t: Timelines, cut: Cut, begin: int, end: int, born: Int64, died: Int64
) -> tuple[int, int]:
    """The first worker that comes back inside the window after its reported life, and when; (-1, 0) if none."""
    for w in range(n):
        if not t.revived[w]:
            continue
        for v in range(max(cut.first[w], 0), cut.stop[w]):
            came_back = v == t.offset[w] or t.label[v - 1] == 0
            if came_back and born[w] <= died[w] < t.time[v]:
                return w, t.time[v]
    return -1, 0
