"""What if something were faster? Windows re-timed, the time saved in each, and what is worth optimising.

Faster means: an operator's activities on all workers, a worker's activities, or all activities of one type (with
the two message types: messages) take their duration divided by the factor. Scheduling on behalf of an operator
is not the operator's work and stays. `retiming` tells the rules and what they assume. Neither Unknown nor Waiting
can be made faster: the one is not known, the other is nobody's work.

**Participation is the upper bound.** Each of a window's critical paths is still a path after re-timing, shorter by
(1 - 1/k) of what the target has on it. So the time saved is at most that of the path with the least of the target,
and hence at most that of their mean: saved / length ≤ (1 - 1/k) · CP. How close it comes depends on what runs
beside it up to the window's end, so the ranking re-times every candidate instead of guessing, and shows both.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.edge_graph import is_message
from analytics.critical_path.retiming import (
    Retimable,
    binding_edges,
    last_moments,
    moments,
    prepare,
    scaled,
)
from analytics.model.activity import ActivityType
from analytics.model.answers import (
    PathPart,
    PathStep,
    Target,
    TargetKind,
    WhatIfAnswer,
    WhatIfPaths,
    WhatIfRanking,
    WhatIfRow,
    WhatIfWindow,
)
from analytics.model.results import Float64, WindowEdges, WindowStatus, WindowSummary
from analytics.model.trace import NONE, Int64

FACTORS = (1.5, 2.0, math.inf)
MOST_STEPS = 500
_MOST_PARTS = 20

Window = tuple[WindowSummary, WindowEdges]


def what_if(
    windows: Iterable[Window], target: Target, factor: float, *, most_steps: int = MOST_STEPS
) -> WhatIfAnswer:
    """Every window if ``target`` were ``factor`` times faster, with its new critical path.

    Parameters
    ----------
    windows
        Summaries and edges as of `window_edges`.
    target, factor
        What is faster, and how many times: at least 1, infinite for no time at all.
    most_steps
        How many steps of each window's new path to list at most; the last ones are kept.

    Raises
    ------
    ValueError
        If the factor is below 1, or the target can not be made faster.
    """
    _check(target, [factor])
    answers = [_retimed(summary, edges, target, factor, most_steps) for summary, edges in windows]
    fine = [window for window in answers if window.status is WindowStatus.OK]
    return WhatIfAnswer(
        target=target,
        factor=float(factor),
        saved_ns=sum(window.saved_ns for window in fine),
        length_ns=sum(window.end_ns - window.start_ns for window in fine),
        windows=tuple(answers),
    )


def paths(
    summary: WindowSummary,
    edges: WindowEdges,
    target: Target,
    factor: float,
    *,
    most_steps: int = MOST_STEPS,
) -> WhatIfPaths:
    """One window's representative critical path beside the one it would have.

    Parameters are those of `what_if`, for a single window. Without status OK neither path has steps.

    Raises
    ------
    ValueError
        As in `what_if`.
    """
    _check(target, [factor])
    now = _path_now(edges) if summary.status is WindowStatus.OK else ()
    left_out = max(len(now) - most_steps, 0)
    then = _retimed(summary, edges, target, factor, most_steps)
    return WhatIfPaths(target, float(factor), then, now[left_out:], left_out)


def rank(windows: Iterable[Window], factors: Sequence[float] = FACTORS) -> WhatIfRanking:
    """What is worth optimising: all operators, workers and activity types at each factor, best first.

    Ordered by what is saved at the largest finite factor, then at the others from the largest on, then by critical
    participation. Savings of several windows add up, participation is their mean weighted with their lengths.

    Raises
    ------
    ValueError
        If a factor is below 1 or there is none.
    """
    _check(None, factors)
    gains: dict[Target, tuple[float, Int64]] = {}
    count, length_ns, left_out = 0, 0, 0
    for summary, edges in windows:
        if summary.status is not WindowStatus.OK:
            left_out += 1
            continue
        count += 1
        length_ns += summary.end_ns - summary.start_ns
        for target, cp, saved in _gains(summary, edges, np.array(factors, np.float64)):
            cp_ns = cp * (summary.end_ns - summary.start_ns)
            known = gains.get(target, (0.0, np.zeros(len(factors), np.int64)))
            gains[target] = known[0] + cp_ns, known[1] + saved
    rows = [
        WhatIfRow(target, cp_ns / length_ns, tuple(saved.tolist()))
        for target, (cp_ns, saved) in gains.items()
    ]
    priority = sorted(range(len(factors)), key=lambda i: (math.isinf(factors[i]), -factors[i]))
    rows.sort(
        key=lambda row: (
            *(-row.saved_ns[i] for i in priority), -row.cp, list(TargetKind).index(row.target.kind), row.target.id
        )
    )  # fmt: skip
    return WhatIfRanking(tuple(float(f) for f in factors), count, length_ns, left_out, tuple(rows))


def _check(target: Target | None, factors: Sequence[float]) -> None:
    if not factors or not all(factor >= 1 for factor in factors):
        raise ValueError(f"a factor must be at least 1, not {min(factors, default=None)}")
    if target is not None and target.kind is TargetKind.ACTIVITY:
        kind = ActivityType(target.id)
        if kind in (ActivityType.UNKNOWN, ActivityType.WAITING):
            raise ValueError(f"{kind.label} cannot be made faster: nobody's recorded work")


def _groups(edges: WindowEdges, kind: TargetKind) -> tuple[NDArray[np.int32], Int64]:
    """The targets of one kind in a window, and which of them each edge belongs to (-1: none)."""
    idle = (edges.type == int(ActivityType.UNKNOWN)) | (edges.type == int(ActivityType.WAITING))
    if kind is TargetKind.ACTIVITY:
        member, ids = ~idle, edges.type.astype(np.int32)
    elif kind is TargetKind.WORKER:
        member, ids = ~idle & ~is_message(edges.type), edges.src
    else:
        own = ~idle & ~is_message(edges.type) & (edges.type != int(ActivityType.SCHEDULING))
        member, ids = own & (edges.operator > NONE), edges.operator
    found, number = np.unique(ids[member], return_inverse=True)
    group = np.full(len(ids), -1, np.int64)
    group[member] = number
    return found, group


def _gains(
    summary: WindowSummary, edges: WindowEdges, factors: Float64
) -> Iterator[tuple[Target, float, Int64]]:
    """Each target of one window, its participation and what it saves at each factor (whole ns)."""
    window = prepare(edges, summary.start_ns, summary.end_ns)
    for kind in TargetKind:
        ids, group = _groups(edges, kind)
        last = last_moments(window, group, len(ids), factors)
        saved = np.rint(summary.end_ns - summary.start_ns - last).astype(np.int64)
        cp = np.bincount(group + 1, edges.cp, len(ids) + 1)[1:]
        for row, name in enumerate(ids.tolist()):
            yield Target(kind, name), float(cp[row]), saved[row]


def _retimed(
    summary: WindowSummary, edges: WindowEdges, target: Target, factor: float, most_steps: int
) -> WhatIfWindow:
    saved, left_out = 0, 0
    limits: tuple[PathPart, ...] = ()
    path: tuple[PathStep, ...] = ()
    if summary.status is WindowStatus.OK:
        window = prepare(edges, summary.start_ns, summary.end_ns)
        ids, group = _groups(edges, target.kind)
        at = np.searchsorted(ids, target.id)
        known = at < len(ids) and ids[at] == target.id
        duration = scaled(window, group == (at if known else len(ids)), factor)
        at_ns = moments(window, duration)
        saved = int(np.rint(summary.end_ns - summary.start_ns - at_ns.max()))
        taken = binding_edges(window, duration, at_ns)
        limits, path = _parts(edges, taken, duration), _steps(window, edges, taken, at_ns)
        left_out = max(len(path) - most_steps, 0)
    return WhatIfWindow(
        summary.index, summary.start_ns, summary.end_ns, summary.status, summary.reason, saved, limits,
        path[left_out:], left_out,
    )  # fmt: skip


def _parts(edges: WindowEdges, taken: Int64, duration_ns: Float64) -> tuple[PathPart, ...]:
    sums: dict[tuple[int, int, int], float] = {}
    for edge in taken[duration_ns[taken] > 0].tolist():
        key = int(edges.type[edge]), int(edges.operator[edge]), int(edges.src[edge])
        sums[key] = sums.get(key, 0.0) + float(duration_ns[edge])
    parts = [PathPart(*key, round(total)) for key, total in sums.items()]
    parts.sort(key=lambda part: (-part.duration_ns, part.type, part.operator, part.worker))
    return tuple(parts[:_MOST_PARTS])


def _steps(window: Retimable, edges: WindowEdges, taken: Int64, at_ns: Float64) -> tuple[PathStep, ...]:
    """The path's edges, with neighbours of one worker, type and operator joined."""
    begin, g = window.begin_ns, window.graph
    at = [begin + round(moment) for moment in at_ns.tolist()]
    return _joined(_step(edges, edge, at[g.src[edge]], at[g.dst[edge]]) for edge in taken.tolist())


def _path_now(edges: WindowEdges) -> tuple[PathStep, ...]:
    """The representative path's edges, each beginning where the one before ends; joined as `_steps` joins them."""
    on_path = np.flatnonzero(edges.on_path).tolist()
    leads_on = {(int(edges.src[edge]), int(edges.src_ns[edge])): edge for edge in on_path}
    reached = {(int(edges.dst[edge]), int(edges.dst_ns[edge])) for edge in on_path}
    edge = next((leads_on[vertex] for vertex in leads_on if vertex not in reached), None)
    steps = []
    while edge is not None:
        steps.append(_step(edges, edge, int(edges.src_ns[edge]), int(edges.dst_ns[edge])))
        edge = leads_on.get((int(edges.dst[edge]), int(edges.dst_ns[edge])))
    return _joined(steps)


def _step(edges: WindowEdges, edge: int, src_ns: int, dst_ns: int) -> PathStep:
    return PathStep(
        int(edges.src[edge]), src_ns, int(edges.dst[edge]), dst_ns, int(edges.src_ns[edge]),
        int(edges.dst_ns[edge]), int(edges.type[edge]), int(edges.operator[edge]),
    )  # fmt: skip


def _joined(found: Iterable[PathStep]) -> tuple[PathStep, ...]:
    steps: list[PathStep] = []
    for step in found:
        last = steps[-1] if steps else None
        if last and _is_one_stretch(last, step):
            steps[-1] = PathStep(
                last.src, last.src_ns, step.dst, step.dst_ns, last.was_src_ns, step.was_dst_ns, step.type,
                step.operator,
            )  # fmt: skip
        else:
            steps.append(step)
    return tuple(steps)


def _is_one_stretch(a: PathStep, b: PathStep) -> bool:
    return a.src == a.dst == b.src == b.dst and (a.type, a.operator) == (b.type, b.operator)
