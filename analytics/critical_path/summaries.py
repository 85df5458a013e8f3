"""From the kernel's numbers to `WindowSummary`, with every status told in words.

Statuses, the first that applies:

- EMPTY: no worker lives in the window and no record touches it, or it lies outside the job.
- CLOCK_SKEW: a message that overlaps it was received before it was sent. Durations across workers then
  cannot be added up, so nothing is repaired and nothing claimed.
- CYCLE: messages within one instant form a circle.
- INCOMPLETE: a worker that was reported gone has records again after a silence longer than the horizon. Its
  first vertex is an orphan (no in-edge after the window's start, SnailTrail's property 1) that no report of
  an added worker explains. All other vertices have an in-edge, as gaps are filled; a worker that was added
  or removed within the window is nothing odd.
- NO_CRITICAL_PATH: no path leads from start to end, N = 0.
"""

from analytics.critical_path.sweep import CYCLIC, FINE, NO_LIFE, NO_PATH, REVIVED, SKEWED, Swept
from analytics.critical_path.trace_graph import Channels, TraceGraph
from analytics.model.results import WindowStatus, WindowSummary

_AGREEMENT = 1e-9

_STATUSES = {
    FINE: WindowStatus.OK,
    NO_PATH: WindowStatus.NO_CRITICAL_PATH,
    SKEWED: WindowStatus.CLOCK_SKEW,
    CYCLIC: WindowStatus.CYCLE,
    REVIVED: WindowStatus.INCOMPLETE,
    NO_LIFE: WindowStatus.NO_CRITICAL_PATH,
}


def judgement(facts: list[int], begin_ns: int, end_ns: int, record_count: int) -> tuple[WindowStatus, str]:
    """Status and reason of a window; the reason is "" if all is well."""
    kind = facts[0]
    if record_count == 0 and (kind == NO_LIFE or begin_ns == end_ns):
        return WindowStatus.EMPTY, "No worker is alive and nothing was recorded in this window."
    if begin_ns == end_ns:
        return (
            WindowStatus.NO_CRITICAL_PATH,
            "Within this window the job lasts no time, so there is no path to measure.",
        )
    return _STATUSES[kind], _reason(kind, facts, begin_ns)


def _reason(kind: int, facts: list[int], begin_ns: int) -> str:
    if kind == NO_LIFE:
        return "Something was recorded, but no worker lives in this window for any time."
    if kind == SKEWED:
        messages, src, dst, sent, received = facts[1:6]
        others = f" ({messages} such messages overlap this window)" if messages > 1 else ""
        return (
            f"Worker {dst} received a message at {received} ns, {sent - received} ns before worker {src} sent"
            f" it: their clocks disagree, so durations cannot be compared{others}."
        )
    if kind == CYCLIC:
        circle = [worker for worker in facts[3:] if worker >= 0]
        if facts[2] > len(circle):
            names = " to ".join(f"worker {worker}" for worker in circle) + f" and on ({facts[2]} in all)"
        else:
            least = circle.index(min(circle))
            around = [*circle[least:], *circle[: least + 1]]
            names = " to ".join(f"worker {worker}" for worker in around)
        return f"Messages sent and received in one instant, {facts[1]} ns, go in a circle: {names}."
    if kind == REVIVED:
        return (
            f"Worker {facts[1]} has records again from {facts[2]} ns on, after its reported end and a long"
            " silence: what it did in between is missing."
        )
    if kind == NO_PATH and facts[1] < 0:
        return "No worker is alive at the start of this window, so no path begins there."
    if kind == NO_PATH:
        return (
            f"No path leads from the start of this window to its end: the longest stops on worker {facts[1]},"
            f" {facts[2] - begin_ns} ns after the start, where the worker waits or is gone and no message leaves."
        )
    return ""


def summarise(graph: TraceGraph, channels: Channels, swept: Swept) -> list[WindowSummary]:
    """One summary a window, in order.

    Raises
    ------
    ArithmeticError
        If paths counted from the start and from the end of a window differ: never, unless the kernel is wrong.
    """
    worst = float(swept.disagreement.max(initial=0.0))
    if worst > _AGREEMENT:
        raise ArithmeticError(f"paths counted forwards and backwards differ by {worst:g}")
    facts, labels = swept.facts.tolist(), graph.labels
    begins, ends = graph.begins_ns.tolist(), graph.ends_ns.tolist()
    counts, log10_paths, totals = (
        graph.record_counts.tolist(), swept.log10_paths.tolist(), swept.cp_total.tolist()
    )  # fmt: skip
    w_at, o_at, c_at = (
        pointer.tolist() for pointer in (swept.worker_pointer, swept.operator_pointer, swept.channel_pointer)
    )
    operator_ids, operator_types = (
        labels.operator[swept.operators.id[: o_at[-1]]],
        labels.type[swept.operators.id[: o_at[-1]]],
    )
    channel_ids = swept.channels.id[: c_at[-1]]
    src, dst, kinds = channels.src[channel_ids], channels.dst[channel_ids], channels.type[channel_ids]
    width = graph.windows.width_ns
    summaries = []
    for k in range(graph.windows.count):
        status, reason = judgement(facts[k], begins[k], ends[k], counts[k])
        w, o, c = (slice(p[k], p[k + 1]) for p in (w_at, o_at, c_at))
        summaries.append(
            WindowSummary(
                index=graph.windows.first + k,
                start_ns=begins[k],
                end_ns=ends[k] if begins[k] < ends[k] else begins[k] + width,
                status=status,
                reason=reason,
                log10_paths=log10_paths[k],
                cp_total=totals[k],
                record_count=counts[k],
                activity_cp=swept.activity_cp[k],
                activity_conventional=swept.activity_conventional[k],
                worker_ids=swept.workers.id[w],
                worker_cp=swept.workers.cp[w],
                worker_conventional=swept.workers.conventional[w],
                operator_ids=operator_ids[o],
                operator_types=operator_types[o],
                operator_cp=swept.operators.cp[o],
                operator_conventional=swept.operators.conventional[o],
                operator_workers=swept.operators.workers[o],
                channel_src=src[c],
                channel_dst=dst[c],
                channel_types=kinds[c],
                channel_cp=swept.channels.cp[c],
                channel_conventional=swept.channels.conventional[c],
            )
        )
    return summaries
