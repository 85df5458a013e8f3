"""Every worker's whole timeline: the local edges of the program activity graph, with the gaps filled in.

A timeline is a chain of vertices (moments), each with one label for the stretch that follows it: the activity
that runs, Unknown, Waiting, or DEAD when the worker is not alive. Edges are therefore implicit: vertex v goes
to vertex v + 1. All workers lie one after another in the same arrays.

**What runs.** At every moment it is the activity that ends first; of those that end together the one that
started last; then the lower (operator, type). For strictly nested activities that is the innermost, so
outer, inner, outer become three edges. Of two that overlap otherwise, which is a data error and is counted,
the later one begins where the earlier ends. The rule looks at one moment only, so no record far away and no
order of records can change it.

**Order within a moment.** End < Received < Sent < Start; an activity of no length is a Start whose End follows
at once. All of them are one vertex: the graph merges equal (worker, time) and drops what has no length.

**Gaps** (SnailTrail section 4.1 and its code's rule, on the uncut timeline): Waiting if the gap ends at a
received message and begins after a local activity or a Sent; Unknown otherwise, so also from a Received to a
Received and next to the borders of a life. A gap longer than the horizon is Unknown.

**Life.** A worker is alive from and until the reported times, extended to cover its records: but with a
horizon not across a silence outside the reported life that is longer. This and the rule for gaps are
what makes a window depend only on records within the horizon.

A *station* is a vertex where a message is sent or received. Only there can paths join or fork, so counting paths
needs stations only (`counts`), however many activities lie between them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.grouping import Grouped
from analytics.critical_path.jit import kernel
from analytics.critical_path.labels import DEAD, Labels
from analytics.model.activity import ActivityType
from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import Int32, Int64

FOREVER = np.iinfo(np.int64).max
"""No horizon; also a time later than any other."""
_NEVER = np.iinfo(np.int64).min
_WAITING = int(ActivityType.WAITING)
_OVERLAPPING, _OUTSIDE, _UNMATCHED_WAIT, _KINDS = range(4)
_TALLY_WIDTH = 4  # count, then worker and up to two times of the first


class Timelines(NamedTuple):
    """The vertices of all workers. ``offset[w]:offset[w+1]`` are worker w's, ``station_offset`` likewise.

    ``time`` and ``label`` have one more entry than there are vertices; ``blocked[v]`` is how many stretches before
    vertex v carry no path. ``station_vertex`` ascends; ``src_station`` and ``dst_station`` are one a message.
    ``revived[w]``: worker w has records after a reported end and a silence longer than the horizon.
    """

    offset: Int64
    time: Int64
    label: Int32
    blocked: Int64
    station_offset: Int64
    station_vertex: Int64
    src_station: Int64
    dst_station: Int64
    revived: NDArray[np.bool_]


@kernel
def _on_top(g: Grouped, a: int, b: int) -> bool:
    """Whether activity ``a`` runs rather than ``b`` when both could."""
    if g.end[a] != g.end[b]:
        return bool(g.end[a] < g.end[b])
    if g.start[a] != g.start[b]:
        return bool(g.start[a] > g.start[b])
    return bool(g.label[a] < g.label[b])


@kernel
def _push(g: Grouped, heap: Int64, depth: int, activity: int) -> None:
    at = depth
    while at > 0 and _on_top(g, activity, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        at = (at - 1) >> 1
    heap[at] = activity


@kernel
def _pop(g: Grouped, heap: Int64, depth: int) -> None:
    last = heap[depth - 1]
    at = 0
    while 2 * at + 1 < depth - 1:
        child = 2 * at + 1
        if child + 1 < depth - 1 and _on_top(g, heap[child + 1], heap[child]):
            child += 1
        if not _on_top(g, heap[child], last):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last


@kernel
def _count(tally: Int64, kind: int, worker: int, first_ns: int, second_ns: int) -> None:
    if tally[kind, 0] == 0:
        tally[kind, 1], tally[kind, 2], tally[kind, 3] = worker, first_ns, second_ns
    tally[kind, 0] += 1


@kernel
def _gap_across_life(
    t: Timelines, v: int, a: int, b: int, born: int, died: int, horizon: int, gap: int, unknown: int
) -> int:
    """Fill the stretch from event ``a`` (_NEVER: no event before) to ``b`` (FOREVER: none after).

    Vertices are added where the reported life begins or ends only if being alive changes there. ``gap`` is the
    label if the worker lives all through. Returns the next vertex number.
    """
    begins = min(max(born, a), b) if born <= died else a
    ends = min(max(died, a), b) if born <= died else a
    first = v
    alive_before = False
    x = a
    for piece, y in enumerate((begins, ends, b)):  # before, within and after the reported life
        if y == x:
            continue
        alive = piece == 1 or (x != _NEVER and y != FOREVER and y - x <= horizon)
        if x == a and a != _NEVER:
            t.label[v - 1] = unknown if alive else DEAD
        elif x != _NEVER and alive != alive_before:
            t.time[v] = x
            t.label[v] = unknown if alive else DEAD
            v += 1
        alive_before = alive
        x = y
    if v == first and a != _NEVER and b != FOREVER and alive_before:
        t.label[v - 1] = gap
    return v


@kernel
def _sweep(
    w: int, g: Grouped, labels: Labels, born: int, died: int, horizon: int, t: Timelines, v: int, s: int,
    heap: Int64, tally: Int64,
) -> tuple[int, int]:  # fmt: skip
    """Lay out worker ``w`` from vertex ``v`` and station ``s`` on; returns the next of both."""
    i, i_end = g.activity_offset[w], g.activity_offset[w + 1]
    j, j_end = g.event_offset[w], g.event_offset[w + 1]
    depth = 0
    running = DEAD  # label of the activity after the last vertex, DEAD in a gap
    last, v_begin = _NEVER, v
    may_wait = False  # a gap after the last vertex may be a wait
    while i < i_end or j < j_end or depth > 0:
        now = g.end[heap[0]] if depth else FOREVER
        if i < i_end and g.start[i] < now:
            now = g.start[i]
        if j < j_end and g.when[j] < now:
            now = g.when[j]
        is_vertex = False
        while depth and g.end[heap[0]] == now:
            _pop(g, heap, depth)
            depth -= 1
            is_vertex = True
        j_begin, received, sent = j, False, False
        while j < j_end and g.when[j] == now:
            if g.ref[j] & 1:
                received = True
                t.dst_station[g.ref[j] >> 1] = s
            else:
                sent = True
                t.src_station[g.ref[j] >> 1] = s
            j += 1
        under = g.end[heap[0]] if depth else FOREVER
        instant = False
        while i < i_end and g.start[i] == now:
            if g.end[i] == now:
                instant = True
            else:
                if under < g.end[i]:
                    _count(tally, _OVERLAPPING, w, now, under)
                _push(g, heap, depth, i)
                depth += 1
            i += 1
        if not (is_vertex or instant or j > j_begin or (depth and g.start[heap[0]] == now)):
            continue
        if running != DEAD:
            t.label[v - 1] = running
            if labels.type[running] == _WAITING and not received:
                _count(tally, _UNMATCHED_WAIT, w, now, 0)
        else:
            wait = may_wait and received and now - last <= horizon
            gap = labels.waiting if wait else labels.unknown
            if born <= last and now <= died:
                t.label[v - 1] = gap
            else:
                v = _gap_across_life(t, v, last, now, born, died, horizon, gap, labels.unknown)
                t.revived[w] |= born <= died < now and (v == v_begin or t.label[v - 1] == DEAD)
        if born <= died and (now < born or now > died):
            _count(tally, _OUTSIDE, w, now, 0)
        if j > j_begin:
            t.station_vertex[s] = v
            s += 1
        t.time[v] = now
        t.label[v] = DEAD
        v += 1
        running = g.label[heap[0]] if depth else DEAD
        last = now
        may_wait = sent or instant or not received
    if born <= died and last < died:
        v = _gap_across_life(t, v, last, FOREVER, born, died, horizon, DEAD, labels.unknown)
    return v, s


@kernel
def _lay_out(
    n: int, g: Grouped, labels: Labels, alive_from: Int64, alive_until: Int64, horizon: int, t: Timelines,
    tally: Int64,
) -> tuple[int, int]:  # fmt: skip
    most = 0
    for w in range(n):
        most = max(most, g.activity_offset[w + 1] - g.activity_offset[w])
    heap = np.empty(most, np.int64)
    v, s = 0, 0
    for w in range(n):
        v, s = _sweep(w, g, labels, alive_from[w], alive_until[w], horizon, t, v, s, heap, tally)
        t.offset[w + 1], t.station_offset[w + 1] = v, s
    t.time[v] = FOREVER
    t.label[v] = DEAD
    closed = 0
    for u in range(v):
        t.blocked[u] = closed
        closed += labels.blocked[t.label[u]]
    t.blocked[v] = closed
    return v, s


def lay_out(
    grouped: Grouped, labels: Labels, alive_from_ns: Int64, alive_until_ns: Int64, horizon_ns: int
) -> tuple[Timelines, list[Diagnostic]]:
    """Timelines of all workers: the paper's local edges (SnailTrail section 3 and 4.1), not yet cut to windows."""
    n = len(alive_from_ns)
    events, messages = len(grouped.when), len(grouped.msg_src)
    capacity = 2 * len(grouped.start) + events + 2 * n + 1
    timelines = Timelines(
        np.zeros(n + 1, np.int64), np.empty(capacity, np.int64), np.empty(capacity, np.int32),
        np.empty(capacity, np.int64), np.zeros(n + 1, np.int64), np.empty(events, np.int64),
        np.empty(messages, np.int64), np.empty(messages, np.int64), np.zeros(n, np.bool_),
    )  # fmt: skip
    tally = np.zeros((_KINDS, _TALLY_WIDTH), np.int64)
    v, s = _lay_out(n, grouped, labels, alive_from_ns, alive_until_ns, horizon_ns, timelines, tally)
    trimmed = timelines._replace(
        time=timelines.time[: v + 1], label=timelines.label[: v + 1], blocked=timelines.blocked[: v + 1],
        station_vertex=timelines.station_vertex[:s],
    )  # fmt: skip
    return trimmed, _diagnose(tally)


def _diagnose(tally: Int64) -> list[Diagnostic]:
    """What the sweep counted, in words."""
    told = (
        (
            "overlapping_activities",
            "worker {}: the activity that starts at {} ns overlaps one that ends at {} ns",
        ),
        ("outside_life", "worker {} has a record at {} ns, outside its reported life, which was extended"),
        ("wait_without_receive", "worker {}: the wait that ends at {} ns ends without a received message"),
    )
    return [
        Diagnostic(code, int(row[0]), text.format(*row[1:].tolist()))
        for (code, text), row in zip(told, tally, strict=True)
        if row[0]
    ]
