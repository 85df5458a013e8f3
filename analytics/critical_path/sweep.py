"""Window after window in one kernel: cut, count, add up.

Bits do not depend on how windows are grouped or records ordered, because every sum has a fixed order: workers
by number, each along its timeline, then messages by (sender, send, receiver, receive). Durations are added as
whole nanoseconds.
"""

from typing import NamedTuple

import numpy as np

from analytics.critical_path.counts import (
    PathCounts,
    WindowGraph,
    count_paths,
    find_cycle,
    log10_of,
    relative_difference,
    share,
    sort_messages,
)
from analytics.critical_path.cutting import (
    Cut,
    advance,
    first_revival,
    is_inside,
    node_of,
    open_stretches,
    start_cut,
    vertex_of,
)
from analytics.critical_path.grouping import Grouped
from analytics.critical_path.jit import kernel
from analytics.critical_path.labels import DEAD, Labels
from analytics.critical_path.timeline import Timelines
from analytics.critical_path.totals import (
    Rows,
    Totals,
    clear_totals,
    collect_channels,
    collect_operators,
    empty_rows,
    new_totals,
    room_for,
    sorted_touched,
)
from analytics.model.activity import TYPE_COUNT
from analytics.model.results import Float64
from analytics.model.trace import Int32, Int64, UInt8

FINE, NO_PATH, SKEWED, CYCLIC, REVIVED, NO_LIFE = range(6)
"""What the sweep found in a window. ``Swept.facts`` holds it, and after it what the reason needs to say."""

FACTS = 12


class Inside(NamedTuple):
    """Messages of one window: their number in ``Grouped``, and their projected duration."""

    message: Int64
    duration: Int64
    skewed: int
    first_skewed: int


class Swept(NamedTuple):
    """Results of ``count`` windows. ``x_pointer[k]:x_pointer[k+1]`` are the rows of the k-th."""

    facts: Int64
    log10_paths: Float64
    disagreement: Float64
    cp_total: Float64
    activity_cp: Float64
    activity_conventional: Float64
    worker_pointer: Int64
    workers: Rows
    operator_pointer: Int64
    operators: Rows
    channel_pointer: Int64
    channels: Rows


@kernel
def _earlier_skew(g: Grouped, a: int, b: int) -> bool:
    """A fixed choice of the skewed message to name, whatever the order of records."""
    if g.msg_sent[a] != g.msg_sent[b]:
        return bool(g.msg_sent[a] < g.msg_sent[b])
    if g.msg_received[a] != g.msg_received[b]:
        return bool(g.msg_received[a] < g.msg_received[b])
    if g.msg_src[a] != g.msg_src[b]:
        return bool(g.msg_src[a] < g.msg_src[b])
    return bool(g.msg_dst[a] < g.msg_dst[b])


@kernel
def build_graph(
    n: int, g: Grouped, t: Timelines, cut: Cut, begin: int, end: int, active: Int64
) -> tuple[WindowGraph, Inside]:
    """The window's graph from its cut and the messages that may fall into it.

    A message received before it was sent is no edge: it is only counted, and makes the window CLOCK_SKEW.
    """
    src, dst = np.empty(len(active), np.int32), np.empty(len(active), np.int32)
    dst_worker = np.empty(len(active), np.int32)
    message, duration = np.empty(len(active), np.int64), np.empty(len(active), np.int64)
    count, skewed, first_skewed = 0, 0, -1
    for m in active:
        if not is_inside(g, m, begin, end):
            continue
        if g.msg_received[m] < g.msg_sent[m]:
            skewed += 1
            if first_skewed < 0 or _earlier_skew(g, m, first_skewed):
                first_skewed = m
            continue
        src[count] = node_of(cut, g.msg_src[m], t.src_station[m])
        dst[count] = node_of(cut, g.msg_dst[m], t.dst_station[m])
        dst_worker[count] = g.msg_dst[m]
        message[count] = m
        duration[count] = min(g.msg_received[m], end) - max(g.msg_sent[m], begin)
        count += 1
    nodes = cut.offset[n]
    is_open = np.empty(nodes, np.bool_)
    open_stretches(n, t, cut, is_open)
    by_src, by_dst, src_pointer, dst_pointer = sort_messages(nodes, src[:count], dst[:count])
    graph = WindowGraph(
        cut.offset,
        is_open,
        src[:count],
        dst[:count],
        dst_worker[:count],
        by_src,
        by_dst,
        src_pointer,
        dst_pointer,
    )
    return graph, Inside(message[:count], duration[:count], skewed, first_skewed)


@kernel
def _furthest(
    n: int,
    t: Timelines,
    labels: Labels,
    cut: Cut,
    begin: int,
    graph: WindowGraph,
    counts: PathCounts,
    facts: Int64,
) -> None:
    """Where the paths from the window's start end, if none reaches its end: worker and time of the latest."""
    facts[1], facts[2] = -1, begin
    for w in range(n):
        base = cut.offset[w]
        for j in range(cut.offset[w + 1] - base - 1):
            v = vertex_of(t, cut, w, j)
            if counts.forward[base + j] == 0.0 or v < t.offset[w] or (j == 0 and t.label[v] == DEAD):
                continue
            stop = vertex_of(t, cut, w, j + 1)
            while v < stop and not labels.blocked[t.label[v]]:
                v += 1
            reached = max(t.time[v], begin) if v < t.offset[w + 1] else begin
            if facts[1] < 0 or reached > facts[2]:
                facts[1], facts[2] = w, reached


@kernel
def judge(
    n: int, g: Grouped, t: Timelines, labels: Labels, cut: Cut, begin: int, end: int, graph: WindowGraph,
    inside: Inside, counts: PathCounts, born: Int64, died: Int64, facts: Int64,
) -> None:  # fmt: skip
    """Say in ``facts`` whether the window has a critical participation, and what stands against it."""
    facts[:] = 0
    if inside.skewed:
        m = inside.first_skewed
        facts[0], facts[1], facts[2], facts[3] = SKEWED, inside.skewed, g.msg_src[m], g.msg_dst[m]
        facts[4], facts[5] = g.msg_sent[m], g.msg_received[m]
        return
    if len(counts.order) < cut.offset[n]:
        node, facts[2] = find_cycle(n, graph, counts.order, facts[3:])
        w = facts[3]
        facts[0], facts[1] = CYCLIC, begin
        if node == cut.offset[w + 1] - 1:
            facts[1] = end
        elif node > cut.offset[w]:
            facts[1] = t.time[vertex_of(t, cut, w, node - cut.offset[w])]
        return
    worker, when = first_revival(n, t, cut, begin, end, born, died)
    if worker >= 0:
        facts[0], facts[1], facts[2] = REVIVED, worker, when
        return
    if counts.total == 0.0:
        facts[0] = NO_PATH
        _furthest(n, t, labels, cut, begin, graph, counts, facts)


@kernel
def _add_worker(
    w: int, t: Timelines, labels: Labels, cut: Cut, begin: int, end: int, is_fine: bool, graph: WindowGraph,
    counts: PathCounts, totals: Totals,
) -> tuple[bool, float, int]:  # fmt: skip
    """Add up one worker's stretches. Returns whether it lives in the window, its CP·ns and its ns of work."""
    alive, cp, busy = False, 0.0, 0
    base = cut.offset[w]
    a = vertex_of(t, cut, w, 0)
    for j in range(cut.offset[w + 1] - base - 1):
        b = vertex_of(t, cut, w, j + 1)
        v = max(a, t.offset[w])
        part = 0.0
        if is_fine and graph.open[base + j]:
            part = share(counts, base + j, base + j + 1)
            cp += part * (min(t.time[b], end) - max(t.time[a], begin))
        before = max(t.time[v], begin)
        for u in range(v, b):
            label = t.label[u]
            after = min(t.time[u + 1], end)
            if label != DEAD:
                alive = True
                duration = after - before
                if totals.label_last[label] != w:
                    if totals.label_last[label] < 0:
                        totals.touched[totals.touched_count[0]] = label
                        totals.touched_count[0] += 1
                    totals.label_last[label] = w
                    totals.label_workers[label] += 1
                totals.label_ns[label] += duration
                totals.label_cp[label] += part * duration
                if not totals.is_idle[label]:
                    busy += duration
            before = after
        a = b
    return alive, cp, busy


@kernel
def _add_messages(
    is_fine: bool, channel_of: Int32, graph: WindowGraph, inside: Inside, counts: PathCounts, totals: Totals
) -> None:
    for k in graph.by_src:
        channel = channel_of[inside.message[k]]
        if not totals.channel_seen[channel]:
            totals.channel_seen[channel] = True
            totals.channel_touched[totals.touched_count[1]] = channel
            totals.touched_count[1] += 1
        totals.channel_ns[channel] += inside.duration[k]
        if is_fine and inside.duration[k] > 0:
            totals.channel_cp[channel] += share(counts, graph.src[k], graph.dst[k]) * inside.duration[k]


@kernel
def next_active(k: int, active: Int64, pointer: Int64, bucket: Int64, last_window: Int64) -> Int64:
    """Messages of window k: those of the window before that go on, and those that begin here."""
    fresh = bucket[pointer[k] : pointer[k + 1]]
    result = np.empty(len(active) + len(fresh), np.int64)
    count = 0
    for m in active:
        if last_window[m] >= k:
            result[count] = m
            count += 1
    result[count : count + len(fresh)] = fresh
    return result[: count + len(fresh)]


@kernel
def sweep_windows(
    n: int, g: Grouped, t: Timelines, labels: Labels, channel_of: Int32, channel_type: UInt8, begins: Int64,
    ends: Int64, born: Int64, died: Int64, pointer: Int64, bucket: Int64, last_window: Int64,
) -> Swept:  # fmt: skip
    """Statuses, path counts and sums of all windows, which ascend and do not overlap but in their borders."""
    count = len(begins)
    facts = np.zeros((count, FACTS), np.int64)
    log10_paths, disagreement, cp_total = np.zeros(count), np.zeros(count), np.zeros(count)
    activity_cp, activity_ns = np.zeros((count, TYPE_COUNT)), np.zeros((count, TYPE_COUNT))
    worker_pointer, operator_pointer = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    channel_pointer = np.zeros(count + 1, np.int64)
    workers, operators, channels = empty_rows(), empty_rows(), empty_rows()
    totals = new_totals(labels, len(channel_type))
    active = bucket[:0]
    cut = start_cut(n, t)
    w_used, o_used, c_used = 0, 0, 0
    for k in range(count):
        begin, end = begins[k], ends[k]
        active = next_active(k, active, pointer, bucket, last_window)
        if begin < end:
            advance(n, t, begin, end, cut)
            graph, inside = build_graph(n, g, t, cut, begin, end, active)
            counts = count_paths(n, graph)
            judge(n, g, t, labels, cut, begin, end, graph, inside, counts, born, died, facts[k])
            is_fine = facts[k, 0] == FINE
            if is_fine:
                log10_paths[k] = log10_of(counts.total, counts.total_exponent)
                disagreement[k] = relative_difference(
                    counts.total, counts.total_exponent, counts.total_backward, counts.total_backward_exponent
                )
            workers = room_for(workers, w_used, n)
            for w in range(n):
                alive, cp, busy = _add_worker(w, t, labels, cut, begin, end, is_fine, graph, counts, totals)
                if alive:
                    workers.id[w_used] = w
                    workers.cp[w_used] = cp / (end - begin)
                    workers.conventional[w_used] = busy / (end - begin)
                    w_used += 1
            _add_messages(is_fine, channel_of, graph, inside, counts, totals)
            touched, met = sorted_touched(totals)
            operators = room_for(operators, o_used, len(touched))
            channels = room_for(channels, c_used, len(met))
            o_used = collect_operators(
                totals, touched, labels, end - begin, operators, o_used, activity_cp[k], activity_ns[k]
            )
            c_used = collect_channels(
                totals, met, channel_type, end - begin, channels, c_used, activity_cp[k], activity_ns[k]
            )
            clear_totals(totals, touched, met)
            for kind in range(TYPE_COUNT):
                cp_total[k] += activity_cp[k, kind]
            if len(touched) == 0 and len(met) == 0 and inside.skewed == 0:
                facts[k, 0] = NO_LIFE
        worker_pointer[k + 1], operator_pointer[k + 1], channel_pointer[k + 1] = w_used, o_used, c_used
    return Swept(
        facts, log10_paths, disagreement, cp_total, activity_cp, activity_ns, worker_pointer, workers,
        operator_pointer, operators, channel_pointer, channels,
    )  # fmt: skip
