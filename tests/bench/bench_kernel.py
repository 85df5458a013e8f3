"""How fast the critical-participation kernel is on one core, beside the same thing written with networkx.

An activity counts as two events (start and end), a message too (sent and received). Run it with
``python -m tests.bench.bench_kernel``; it prints JSON.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np

from analytics.critical_path import analyse, covering_windows, default_lifetimes, trace_graph
from analytics.model.results import Windows, WindowSummary
from analytics.model.trace import Records

SECOND_NS = 1_000_000_000
UNKNOWN, WAITING = 11, 12


def make_trace(activities: int, workers: int, per_second: int, seed: int = 1) -> Records:
    """A pipelined stream: workers process, send to others, and wait for what they need.

    Every worker runs activities back to back; about every seventh is followed by a message to another
    worker, which a quarter of the receivers were waiting for in a gap. Records are in the order a collector
    would see them: by the time they end.
    """
    rng = np.random.default_rng(seed)
    each = activities // workers
    mean_ns = SECOND_NS * workers // per_second
    length = rng.integers(mean_ns // 4, mean_ns * 3 // 2, (workers, each))
    pause = np.where(rng.random((workers, each)) < 0.25, rng.integers(1, mean_ns // 3, (workers, each)), 0)
    end = np.cumsum(length + pause, axis=1) + rng.integers(0, mean_ns, (workers, 1))
    start = end - length
    worker = np.repeat(np.arange(workers), each).reshape(workers, each)
    kind = rng.choice(np.array([3, 4, 4, 4, 4, 5, 6, 7], np.uint8), (workers, each))
    operator = rng.integers(0, 40, (workers, each))
    sends = rng.random((workers, each)) < 0.15
    src, sent = worker[sends], end[sends]
    dst = (src + rng.integers(1, workers, len(src))) % workers
    received = sent + rng.integers(1_000, mean_ns // 2, len(src))
    for w in range(workers):  # a message that arrives in a gap or activity is received where that ends
        mine = np.flatnonzero(dst == w)
        later = np.searchsorted(start[w], received[mine])
        received[mine] = start[w][np.minimum(later, each - 1)]
    ok = (received >= sent) & (received <= int(end[:, -1].min()))
    src, dst, sent, received = src[ok], dst[ok], sent[ok], received[ok]
    n, m = activities // workers * workers, len(src)
    records = Records(
        np.concatenate([kind.ravel(), rng.choice(np.array([9, 10], np.uint8), m)]),
        np.concatenate([worker.ravel(), src]).astype(np.int32),
        np.concatenate([np.full(n, -1), dst]).astype(np.int32),
        np.concatenate([operator.ravel(), np.full(m, -1)]).astype(np.int32),
        np.concatenate([start.ravel(), sent]),
        np.concatenate([end.ravel(), received]),
    )
    return records.take(np.argsort(records.end_ns, kind="stable"))


def with_networkx(records: Records, workers: int, windows: Windows) -> list[dict[int, float]]:
    """CP by activity type of each window, by networkx graphs: for traces without nesting or zero lengths."""
    rows = list(zip(*(getattr(records, name).tolist() for name in
                      ("type", "worker", "peer", "start_ns", "end_ns")), strict=True))  # fmt: skip
    first, last = min(r[3] for r in rows), max(r[4] for r in rows)
    edges = [((r[1], r[3]), (r[2], r[4]), r[0]) for r in rows if r[2] >= 0]
    points: dict[int, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    running: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for kind, worker, peer, start, end in rows:
        if peer >= 0:
            points[worker][start].add("sent")
            points[peer][end].add("received")
        else:
            points[worker][start].add("start")
            points[worker][end].add("end")
            running[worker].append((start, end, kind))
    for worker in range(workers):
        edges += _timeline(worker, points[worker], sorted(running[worker]), first, last)
    results = []
    for k in range(windows.first, windows.first + windows.count):
        ts, te = max(windows.start_ns(k), first), min(windows.start_ns(k + 1), last)
        results.append(_participation(edges, ts, te))
        edges = [e for e in edges if e[1][1] > te]
    return results


def _timeline(worker, points, running, first, last):
    times = sorted({first, last, *points})
    edges, i = [], 0
    for a, b in pairwise(times):
        while i < len(running) and running[i][1] <= a:
            i += 1
        if i < len(running) and running[i][0] <= a:
            kind = running[i][2]
        else:
            after_local = "end" in points[a] and "received" not in points[a]
            kind = WAITING if "received" in points[b] and ("sent" in points[a] or after_local) else UNKNOWN
        edges.append(((worker, a), (worker, b), kind))
    return edges


def _participation(edges, ts: int, te: int) -> dict[int, float]:
    graph = nx.MultiDiGraph()
    for (u, a), (v, b), kind in edges:
        if a < te and b > ts and kind != WAITING:
            graph.add_edge((u, max(a, ts)), (v, min(b, te)), kind=kind)
    forward = {v: int(v[1] == ts) for v in graph}
    backward = {v: int(v[1] == te) for v in graph}
    order = list(nx.topological_sort(graph))
    for v in order:
        for x in graph.successors(v):
            forward[x] += forward[v] * graph.number_of_edges(v, x)
    for v in reversed(order):
        for x in graph.successors(v):
            backward[v] += backward[x] * graph.number_of_edges(v, x)
    total = sum(f for v, f in forward.items() if v[1] == te)
    sums: dict[int, float] = defaultdict(float)
    for u, v, kind in graph.edges(data="kind"):
        sums[kind] += (forward[u] * backward[v] / total) * (v[1] - u[1]) / (te - ts)
    return sums


def _timed(
    records: Records, workers: int, windows: Windows, repeats: int
) -> tuple[float, list[WindowSummary]]:
    born, died = default_lifetimes(records, workers)
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        summaries, _ = analyse(records, born, died, windows)
        best = min(best, time.perf_counter() - begin)
    return best, summaries


def profile(records: Records, workers: int, windows: Windows, repeats: int = 5) -> dict[str, float]:
    """Where the time goes, in ns of processor time a record: sorting records by worker, laying out the timelines of
    all workers, cutting windows with counting paths and adding up; and copying the trace in memory, beside them.
    """
    born, died = default_lifetimes(records, workers)
    best: dict[str, float] = {}

    def timed(stage: str, work: Callable[..., Any], *given: Any) -> Any:
        begin = time.process_time()
        found = work(*given)
        took_ns = (time.process_time() - begin) * 1e9 / len(records)
        best[stage] = min(best.get(stage, float("inf")), took_ns)
        return found

    for _ in range(repeats):
        grouped, labels, *_ = timed("group", trace_graph.group_by_worker, records, workers)
        timed("timelines", trace_graph.lay_out, grouped, labels, born, died, trace_graph.FOREVER)
        graph = trace_graph.build(records, born, died, windows, None, None)
        timed("windows", graph.sweep, trace_graph.number_channels(graph.grouped, workers))
        timed("copy", lambda: [getattr(records, item.name).copy() for item in fields(Records)])
    return {stage: round(took_ns, 1) for stage, took_ns in best.items()}


def measure() -> dict[str, Any]:
    """Events per second of graph + CP on one core, and of networkx on the first seconds of the same trace."""
    workers = 48
    records = make_trace(1_000_000, workers, 15_000)
    windows = covering_windows(records, SECOND_NS)
    begin = time.perf_counter()
    _timed(records.take(np.arange(1000)), workers, Windows(SECOND_NS, 0, 2), 1)
    warm_up = time.perf_counter() - begin
    seconds, summaries = _timed(records, workers, windows, 5)
    shuffled = records.take(np.random.default_rng(2).permutation(len(records)))
    shuffled_seconds, _ = _timed(shuffled, workers, windows, 3)

    part = records.take(records.end_ns < 3 * SECOND_NS)
    part_windows = covering_windows(part, SECOND_NS)
    part_seconds, ours = _timed(part, workers, part_windows, 3)
    begin = time.perf_counter()
    theirs = with_networkx(part, workers, part_windows)
    networkx_seconds = time.perf_counter() - begin
    difference = max(
        abs(float(s.activity_cp[kind]) - sums.get(kind, 0.0))
        for s, sums in zip(ours, theirs, strict=True)
        for kind in range(13)
    )
    assert difference < 1e-9, difference

    big = make_trace(3_260_000, workers, 12_700, seed=3)
    big_seconds, (whole,) = _timed(big, workers, Windows(1 << 62, 0, 1), 2)
    return {
        "workers": workers,
        "records": len(records),
        "messages": int((records.peer >= 0).sum()),
        "windows": windows.count,
        "profile_ns_per_record": profile(records, workers, windows),
        "windows_ok": sum(s.status == "ok" for s in summaries),
        "warm_up_seconds": round(warm_up, 2),
        "events_per_second": round(2 * len(records) / seconds),
        "events_per_second_shuffled_input": round(2 * len(records) / shuffled_seconds),
        "networkx_events": 2 * len(part),
        "networkx_events_per_second": round(2 * len(part) / networkx_seconds),
        "kernel_events_per_second_same_slice": round(2 * len(part) / part_seconds),
        "ratio_to_networkx": round(networkx_seconds / part_seconds, 1),
        "largest_difference_to_networkx": difference,
        "big_window_events": 2 * len(big),
        "big_window_trace_seconds": round((whole.end_ns - whole.start_ns) / SECOND_NS, 1),
        "big_window_seconds": round(big_seconds, 3),
        "big_window_status": whole.status.value,
        "big_window_log10_paths": round(whole.log10_paths, 1),
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=2))
