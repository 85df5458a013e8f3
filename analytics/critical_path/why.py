"""Why was it waiting? The chain of what a wait waited for, hop by hop.

Hop 1 of a wait are the edges that end at the moment the wait ends, on the same worker: normally the message that
ended it. Hop n + 1 are the edges that end where one of hop n begins, again on the same worker. Waiting is never
part of a chain, as it explains nothing. An edge counts once a wait and hop, however many chains lead to it.
(Li, ST2's ``algo`` command, which joins on time alone; here on worker and time.)

**Three numbers a group.** The count of (wait, edge) pairs is the plain answer, the sum of the edges' durations the
duration-weighted one. The third counts only what of these durations lies within the wait itself: along a chain
without forks it adds up to the length of the wait, so it says where the waiting time went.

**Waits cut by the window.** A wait that began before the window is explained as usual, with the part inside: what
ended it is in the window. A wait that reaches the window's end is not explained but counted as cut, since what
ended it lies outside, and a message on its way at the border need not be the one. The exception is the trace's
own end, which cuts nothing. Chains stop at the window's start. `why_at` avoids both: it widens the window until the
wait and its chain fit.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.edge_graph import EdgeGraph, number_vertices, uncaused_waits
from analytics.critical_path.path import window_edges
from analytics.critical_path.windows import trace_bounds
from analytics.model.activity import ActivityType
from analytics.model.answers import EdgeExample, WhyAnswer, WhyGroup
from analytics.model.results import WindowEdges, Windows, WindowStatus, WindowSummary
from analytics.model.trace import Int64, Records

HOPS = 5
MOST_HOPS = 64
MOST_GROUPS = 1_000
MOST_PAIRS = 2_000_000
"""How many (wait, edge) pairs one hop may have: beyond that the walk stops, and says so."""


class _Hop(NamedTuple):
    """The pairs of one hop: position of the wait in the list of waits, and edge."""

    wait: Int64
    edge: Int64


def why(
    summary: WindowSummary,
    edges: WindowEdges,
    *,
    hops: int = HOPS,
    worker: int | None = None,
    at_ns: int | None = None,
    trace_end_ns: int | None = None,
) -> WhyAnswer:
    """What the waits of a window waited for, up to ``hops`` steps back.

    Parameters
    ----------
    summary, edges
        The window as of `window_edges`, of any status.
    worker, at_ns
        Only waits of this worker, only those that go on at this time; None: all.
    trace_end_ns
        The job's last time, where no wait is cut.

    Returns
    -------
    Groups by hop, then longest first; at most `MOST_GROUPS` of them, fairly shared among the hops.

    Raises
    ------
    ValueError
        If ``hops`` is not 1 to `MOST_HOPS`.
    """
    if not 1 <= hops <= MOST_HOPS:
        raise ValueError(f"a chain has 1 to {MOST_HOPS} hops, not {hops}")
    graph = number_vertices(edges)
    chosen = _chosen_waits(edges, worker, at_ns)
    uncaused = uncaused_waits(edges, graph)
    cut = edges.dst_ns == summary.end_ns
    if trace_end_ns is not None and summary.end_ns >= trace_end_ns:
        cut[:] = False
    waits = np.flatnonzero(chosen & ~cut & ~uncaused)
    length = edges.dst_ns - edges.src_ns
    walked, stopped = _walk(edges, graph, waits, hops)
    groups = _grouped(edges, waits, walked)
    listed = _largest(groups, hops)
    return WhyAnswer(
        start_ns=summary.start_ns,
        end_ns=summary.end_ns,
        status=summary.status,
        reason=summary.reason,
        hops=hops,
        wait_count=len(waits),
        wait_ns=int(length[waits].sum()),
        begun_before_count=int((edges.src_ns[waits] == summary.start_ns).sum()),
        cut_count=int((chosen & cut).sum()),
        cut_ns=int(length[chosen & cut].sum()),
        uncaused_count=int((chosen & uncaused & ~cut).sum()),
        uncaused_ns=int(length[chosen & uncaused & ~cut].sum()),
        groups=tuple(listed),
        groups_left_out=len(groups) - len(listed),
        reached_start_count=sum(int((edges.src_ns[p.edge] == summary.start_ns).sum()) for p in walked),
        stopped_at_hop=stopped,
    )


def why_at(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    worker: int,
    at_ns: int,
    width_ns: int,
    *,
    hops: int = HOPS,
    bounds_ns: tuple[int, int] | None = None,
    horizon_ns: int | None = None,
) -> WhyAnswer:
    """Why one worker waited at one time: the window around it is widened until it cuts neither wait nor chain.

    It begins ``width_ns`` wide on either side and doubles. ``bounds_ns`` is how far it may go, by default the whole
    of the records; what they hold beyond is not looked at. Other parameters as in `why` and `window_edges`. If
    the worker does not wait at that time no wait is counted.

    Raises
    ------
    ValueError
        As in `why` and `window_edges`.
    """
    bounds = bounds_ns or trace_bounds(records) or (0, 0)
    before, after = width_ns, width_ns
    while True:
        window = Windows(before + after, 0, 1, at_ns - before)
        summary, edges, _ = window_edges(
            records, alive_from_ns, alive_until_ns, window, bounds_ns=bounds, horizon_ns=horizon_ns
        )
        answer = why(summary, edges, hops=hops, worker=worker, at_ns=at_ns, trace_end_ns=bounds[1])
        grows_back = (
            answer.start_ns > bounds[0] and answer.begun_before_count + answer.reached_start_count > 0
        )
        grows_on = answer.end_ns < bounds[1] and answer.cut_count > 0
        if not grows_back and not grows_on:
            return answer
        before *= 2 if grows_back else 1
        after *= 2 if grows_on else 1


def combined(answers: Sequence[WhyAnswer]) -> WhyAnswer:
    """Several windows' answers as one: groups of the same hop, type, operator and worker add up.

    A wait that crosses windows counts in the one where it ends. The status is OK, as every window speaks for
    itself.

    Raises
    ------
    ValueError
        If there is no answer to combine.
    """
    if not answers:
        raise ValueError("there is no answer to combine")
    sums: dict[tuple[int, int, int, int], WhyGroup] = {}
    for group in (group for answer in answers for group in answer.groups):
        key = group.hop, group.type, group.operator, group.worker
        known = sums.get(key)
        sums[key] = group if known is None else _joined(known, group)
    groups = sorted(sums.values(), key=_order)
    listed = _largest(groups, max(answer.hops for answer in answers))
    totals = {
        name: sum(getattr(answer, name) for answer in answers)
        for name in (
            "wait_count", "wait_ns", "begun_before_count", "cut_count", "cut_ns", "uncaused_count",
            "uncaused_ns", "reached_start_count",
        )
    }  # fmt: skip
    return WhyAnswer(
        start_ns=min(answer.start_ns for answer in answers),
        end_ns=max(answer.end_ns for answer in answers),
        status=WindowStatus.OK,
        reason="",
        hops=max(answer.hops for answer in answers),
        groups=tuple(listed),
        groups_left_out=len(groups) - len(listed) + sum(answer.groups_left_out for answer in answers),
        stopped_at_hop=min((a.stopped_at_hop for a in answers if a.stopped_at_hop), default=0),
        **totals,
    )


def _joined(a: WhyGroup, b: WhyGroup) -> WhyGroup:
    longer = max(a, b, key=lambda group: group.example.dst_ns - group.example.src_ns)
    return replace(
        a,
        count=a.count + b.count,
        duration_ns=a.duration_ns + b.duration_ns,
        during_ns=a.during_ns + b.during_ns,
        example=longer.example,
    )


def _order(group: WhyGroup) -> tuple[int, ...]:
    return group.hop, -group.duration_ns, -group.count, group.type, group.operator, group.worker


def _chosen_waits(edges: WindowEdges, worker: int | None, at_ns: int | None) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = edges.type == int(ActivityType.WAITING)
    if worker is not None:
        chosen &= edges.src == worker
    if at_ns is not None:
        chosen &= (edges.src_ns <= at_ns) & (at_ns < edges.dst_ns)
    return chosen


def _walk(edges: WindowEdges, graph: EdgeGraph, waits: Int64, hops: int) -> tuple[list[_Hop], int]:
    """The pairs of every hop, and the first hop with too many of them (0: none)."""
    found: list[_Hop] = []
    wait, vertex = np.arange(len(waits)), graph.dst[waits]
    for hop in range(1, hops + 1):
        first, degree = graph.in_pointer[vertex], graph.in_pointer[vertex + 1] - graph.in_pointer[vertex]
        total = int(degree.sum())
        if total > MOST_PAIRS:
            return found, hop
        starts = np.repeat(first - (np.cumsum(degree) - degree), degree)
        edge = graph.in_edge[starts + np.arange(total)]
        keep = edges.type[edge] != int(ActivityType.WAITING)
        pairs = _Hop(np.repeat(wait, degree)[keep], edge[keep])
        if not len(pairs.edge):
            break
        found.append(pairs)
        key = np.unique(pairs.wait * len(graph.time_ns) + graph.src[pairs.edge])
        wait, vertex = np.divmod(key, len(graph.time_ns))
    return found, 0


def _label(edges: WindowEdges) -> tuple[list[tuple[int, int, int]], Int64]:
    """The (type, operator, worker) combinations of a window, ascending, and which of them each edge has."""
    columns = (edges.type, edges.operator, edges.src)
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), np.bool_)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[order][1:] != column[order][:-1]
    label = np.empty(len(order), np.int64)
    label[order] = np.cumsum(is_new) - 1
    return list(zip(*(column[order][is_new].tolist() for column in columns), strict=True)), label


def _grouped(edges: WindowEdges, waits: Int64, walked: list[_Hop]) -> list[WhyGroup]:
    """Pairs of every hop by (type, operator, worker), longest first."""
    names, labels = _label(edges)
    result: list[WhyGroup] = []
    for hop, pairs in enumerate(walked, 1):
        edge, wait = pairs.edge, waits[pairs.wait]
        duration = edges.dst_ns[edge] - edges.src_ns[edge]
        overlap = np.minimum(edges.dst_ns[edge], edges.dst_ns[wait]) - np.maximum(
            edges.src_ns[edge], edges.src_ns[wait]
        )
        totals = np.zeros((3, len(names)), np.int64)
        for row, values in enumerate((1, duration, np.maximum(overlap, 0))):
            np.add.at(totals[row], labels[edge], values)
        order = np.lexsort((edge, -duration, labels[edge]))
        present, first = np.unique(labels[edge][order], return_index=True)
        for label, longest in zip(present.tolist(), edge[order[first]].tolist(), strict=True):
            kind, operator, worker = names[label]
            count, took, during = totals[:, label].tolist()
            example = _example(edges, longest)
            result.append(WhyGroup(hop, kind, operator, worker, count, took, during, example))
    return sorted(result, key=_order)


def _example(edges: WindowEdges, i: int) -> EdgeExample:
    return EdgeExample(int(edges.src[i]), int(edges.src_ns[i]), int(edges.dst[i]), int(edges.dst_ns[i]))


def _largest(groups: list[WhyGroup], hops: int) -> list[WhyGroup]:
    """At most `MOST_GROUPS`: of every hop the longest."""
    if len(groups) <= MOST_GROUPS:
        return groups
    taken: dict[int, int] = {}
    listed = []
    for group in groups:
        taken[group.hop] = taken.get(group.hop, 0) + 1
        if taken[group.hop] <= max(MOST_GROUPS // hops, 1):
            listed.append(group)
    return listed
