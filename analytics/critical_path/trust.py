"""Is the trace trustworthy? The conditions of the SnailTrail paper's model and the invariants of ST2, as checks.

**The model** (SnailTrail, appendix A; what makes the participations of a window add up to 1):

- ``interaction_by_messages``: workers affect each other by messages only. No trace can show that.
- ``waits_end_in_a_receive``: what ends a wait is a recorded message (assumption 2).
- ``no_orphans``: after a window's start every moment follows from something (property 1). Gaps are filled, so an
  orphan is a worker that appears without having been reported as added at that time.
- ``not_all_waiting``: never do all workers wait with no message on its way (property 2).
- ``received_after_sent``: clocks agree; ``acyclic``: no circle of messages within one instant.
- ``path_exists`` and ``complete``: windows with a path from start to end, and without missing records.

**The invariants** (Li, ST2's ``invariants`` command, with a window where ST2 has an epoch):

- ``longest_operator``: from an operator's first activity in a window to its last.
- ``longest_message`` and ``longest_pause``, the time between two progress messages a worker sends, all windows.
- ``progress_to_all_peers``: in each window every live worker sends progress to every other. Only engines that
  broadcast their progress do that, such as Timely, so it is tested on request.

Control messages count as progress. A duration without a limit is only measured.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.edge_graph import is_message, number_vertices, uncaused_waits
from analytics.critical_path.path import every_window_edges
from analytics.critical_path.trust_tally import Tally
from analytics.critical_path.windows import trace_bounds
from analytics.model.activity import ActivityType
from analytics.model.answers import Check, CheckState, TrustAnswer, TrustLimits
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import WindowEdges, Windows, WindowStatus, WindowSummary
from analytics.model.trace import NONE, Int64, Records

_WAITING, _CONTROL = int(ActivityType.WAITING), int(ActivityType.CONTROL_MESSAGE)
_OF_STATUS = {
    "acyclic": WindowStatus.CYCLE,
    "path_exists": WindowStatus.NO_CRITICAL_PATH,
    "complete": WindowStatus.INCOMPLETE,
}


def check_trust(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    windows: Windows,
    *,
    limits: TrustLimits | None = None,
    diagnostics: Iterable[Diagnostic] = (),
    bounds_ns: tuple[int, int] | None = None,
    horizon_ns: int | None = None,
) -> TrustAnswer:
    """Every check on some windows and their records.

    ``diagnostics`` are those of decoding, to be shown with what graph building finds. Other parameters are those
    of `analyse`.

    Raises
    ------
    ValueError
        As in `analyse`.
    """
    limits = limits or TrustLimits()
    bounds = bounds_ns or trace_bounds(records) or (0, 0)
    found, odd = every_window_edges(
        records, alive_from_ns, alive_until_ns, windows, bounds_ns=bounds, horizon_ns=horizon_ns
    )
    summaries: list[WindowSummary] = []
    waits, orphans, standstill, operators = (Tally() for _ in range(4))
    born = np.where(alive_from_ns <= alive_until_ns, alive_from_ns, np.iinfo(np.int64).min)
    for summary, edges in found:
        summaries.append(summary)
        _check_graph(summary, edges, born, bounds[1], waits, orphans)
        _check_standstill(edges, standstill)
        _check_operators(edges, limits.operator_ns, operators)
    inside = _within(records, windows)
    messages, pauses, skew = _check_messages(inside, limits)
    checks = (
        Check("interaction_by_messages", CheckState.NOT_TESTABLE, 0, 0, 0, 0, ()),
        waits.check("waits_end_in_a_receive"),
        orphans.check("no_orphans"),
        standstill.check("not_all_waiting"),
        skew.check("received_after_sent"),
        *(_check_status(summaries, status).check(code) for code, status in _OF_STATUS.items()),
        operators.check_limit("longest_operator", limits.operator_ns),
        messages.check_limit("longest_message", limits.message_ns),
        pauses.check_limit("longest_pause", limits.pause_ns),
        _check_progress(inside, summaries, limits.progress),
    )
    fine = [window for window in summaries if window.status is WindowStatus.OK]
    length = sum(window.end_ns - window.start_ns for window in fine)
    unknown = sum(w.activity_cp[ActivityType.UNKNOWN] * (w.end_ns - w.start_ns) for w in fine)
    return TrustAnswer(
        start_ns=summaries[0].start_ns if summaries else 0,
        end_ns=summaries[-1].end_ns if summaries else 0,
        window_count=len(summaries),
        windows_ok=len(fine),
        unknown_share=float(unknown) / max(length, 1),
        checks=checks,
        diagnostics=merge([*diagnostics, *odd]),
    )


def combined(answers: Sequence[TrustAnswer], diagnostics: Iterable[Diagnostic] = ()) -> TrustAnswer:
    """Several stretches' answers as one: counts add up, the longest stays, and what fails in one fails.

    The unknown share is the mean, weighted with the numbers of windows with a path. ``diagnostics`` are shown with
    those of the answers.

    Raises
    ------
    ValueError
        If there is no answer to combine.
    """
    if not answers:
        raise ValueError("there is no answer to combine")
    fine = sum(answer.windows_ok for answer in answers)
    unknown = sum(answer.unknown_share * answer.windows_ok for answer in answers)
    return TrustAnswer(
        start_ns=min(answer.start_ns for answer in answers),
        end_ns=max(answer.end_ns for answer in answers),
        window_count=sum(answer.window_count for answer in answers),
        windows_ok=fine,
        unknown_share=unknown / max(fine, 1),
        checks=tuple(_joined(same) for same in zip(*(answer.checks for answer in answers), strict=True)),
        diagnostics=merge([*diagnostics, *(item for answer in answers for item in answer.diagnostics)]),
    )


def _joined(checks: Sequence[Check]) -> Check:
    failed = [check for check in checks if check.state is CheckState.FAILED]
    longest = max(checks, key=lambda check: check.worst_ns)
    told = failed or ([longest] if longest.state is CheckState.MEASURED else checks)
    return replace(
        told[0],
        count=sum(check.count for check in checks),
        tested=sum(check.tested for check in checks),
        worst_ns=longest.worst_ns,
        examples=tuple(e for check in told for e in check.examples)[: Tally.MOST_EXAMPLES],
    )


def _within(records: Records, windows: Windows) -> Records:
    """Records that touch the windows; more may have been read to know what goes on at their borders."""
    begin, end = windows.start_ns(windows.first), windows.start_ns(windows.first + windows.count)
    low, high = np.minimum(records.start_ns, records.end_ns), np.maximum(records.start_ns, records.end_ns)
    return records.take((high >= begin) & (low <= end))


def _check_graph(
    summary: WindowSummary, edges: WindowEdges, born: Int64, last_ns: int, waits: Tally, orphans: Tally
) -> None:
    graph = number_vertices(edges)
    ends_inside = (edges.type == _WAITING) & ((edges.dst_ns < summary.end_ns) | (summary.end_ns >= last_ns))
    waits.add(
        ends_inside & uncaused_waits(edges, graph), edges.src, edges.src_ns, edges.dst_ns, among=ends_inside
    )
    first = (np.diff(graph.in_pointer) == 0) & (graph.time_ns > summary.start_ns)
    added = born[graph.worker]
    unexplained = first & (graph.time_ns != added) & (added != np.iinfo(np.int64).min)
    orphans.add(unexplained, graph.worker, graph.time_ns, graph.time_ns)


def _check_standstill(edges: WindowEdges, tally: Tally) -> None:
    """Sweep over a window: stretches where all live workers wait and no message is on its way."""
    flying, waiting = is_message(edges.type), edges.type == _WAITING
    if not waiting.any():
        tally.tested += 1
        return
    order = np.argsort(np.concatenate([edges.src_ns, edges.dst_ns]), kind="stable")
    times = np.concatenate([edges.src_ns, edges.dst_ns])[order]

    def at_once(which: NDArray[np.bool_]) -> Int64:
        change = which.astype(np.int64)
        return np.cumsum(np.concatenate([change, -change])[order])

    still = (at_once(~flying & ~waiting) == 0) & (at_once(flying) == 0) & (at_once(waiting) > 0)
    still &= np.append(np.diff(times) > 0, False)
    # Stretches are joined where one ends as the next begins.
    at = np.flatnonzero(still)
    begins, ends = times[at], times[at + 1] if len(at) else times[:0]
    head = np.ones(len(at), np.bool_)
    head[1:] = begins[1:] != ends[:-1]
    starts = begins[head]
    stops = ends[np.append(np.flatnonzero(head)[1:] - 1, len(at) - 1)] if len(at) else ends
    tally.tested += 1
    tally.add(np.ones(len(starts), np.bool_), np.full(len(starts), NONE), starts, stops, among=head[:0])


def _check_operators(edges: WindowEdges, limit_ns: int | None, tally: Tally) -> None:
    mine = ~is_message(edges.type) & (edges.operator > NONE)
    names, group = np.unique(edges.operator[mine], return_inverse=True)
    first = np.full(len(names), np.iinfo(np.int64).max)
    last = np.full(len(names), np.iinfo(np.int64).min)
    np.minimum.at(first, group, edges.src_ns[mine])
    np.maximum.at(last, group, edges.dst_ns[mine])
    nobody = np.full(len(names), NONE)
    tally.add_durations(limit_ns, nobody, first, last, operator=names)


def _check_messages(records: Records, limits: TrustLimits) -> tuple[Tally, Tally, Tally]:
    """Durations of messages, pauses between progress messages, and messages received before they were sent."""
    sent = records.take(records.peer > NONE)
    messages, pauses, skew = Tally(), Tally(), Tally()
    back = sent.end_ns < sent.start_ns
    skew.add(back, sent.worker, sent.start_ns, sent.end_ns, peer=sent.peer)
    fine = sent.take(~back)
    messages.add_durations(limits.message_ns, fine.worker, fine.start_ns, fine.end_ns, peer=fine.peer)
    progress = fine.take(fine.type == _CONTROL)
    progress = progress.take(np.lexsort((progress.start_ns, progress.worker)))
    same = progress.worker[1:] == progress.worker[:-1]
    pauses.add_durations(
        limits.pause_ns, progress.worker[1:][same], progress.start_ns[:-1][same], progress.start_ns[1:][same]
    )
    return messages, pauses, skew


def _check_status(summaries: list[WindowSummary], status: WindowStatus) -> Tally:
    tally = Tally()
    failed = np.array([window.status is status for window in summaries], np.bool_)
    starts = np.array([window.start_ns for window in summaries], np.int64)
    ends = np.array([window.end_ns for window in summaries], np.int64)
    tally.add(failed, np.full(len(failed), NONE), starts, ends)
    return tally


def _check_progress(records: Records, summaries: list[WindowSummary], asked: bool) -> Check:
    code = "progress_to_all_peers"
    if not asked:
        return Check(code, CheckState.NOT_ASKED, 0, 0, 0, 0, ())
    sent = records.take((records.type == _CONTROL) & (records.peer > NONE) & (records.peer != records.worker))
    sent = sent.take(np.argsort(sent.start_ns, kind="stable"))
    tally = Tally()
    for summary in summaries:
        low, high = np.searchsorted(sent.start_ns, [summary.start_ns, summary.end_ns])
        live = summary.worker_ids
        src, dst = np.divmod(
            np.unique(sent.worker[low:high].astype(np.int64) << 32 | sent.peer[low:high]), 1 << 32
        )
        src, dst = src[np.isin(dst, live)], dst[np.isin(dst, live)]
        reached = np.bincount(src, minlength=int(live.max(initial=0)) + 1)[live]
        failed = reached < len(live) - 1
        missing = np.full(len(live), NONE)
        for i in np.flatnonzero(failed)[: Tally.MOST_EXAMPLES]:
            others = np.setdiff1d(live, np.append(dst[src == live[i]], live[i]))
            missing[i] = others[0]
        whole = np.full(len(live), summary.start_ns), np.full(len(live), summary.end_ns)
        tally.add(failed, live, *whole, peer=missing)
    return tally.check(code)
