"""``make bench``: every figure of the README's performance table, as ratios in one run."""

from __future__ import annotations

import os
import platform
import sys

from analytics.model.burst_answers import Strategy
from tests.bench import (
    bench_bursts,
    bench_clusters,
    bench_digests,
    bench_hta,
    bench_ingest,
    bench_kernel,
    bench_latency,
    bench_scaling,
    bench_spark,
    bench_timeline,
)
from tests.bench.setup import weir


def main() -> None:
    """Measure and print a Markdown table."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    print(f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, Python {platform.python_version()}\n", flush=True)
    print("| what | measured | aim |\n|---|---|---|", flush=True)
    kernel = bench_kernel.measure()
    _row("graph + CP kernel, one core", f"{kernel['events_per_second'] / 1e6:.1f} M events/s", "≥ 8 M")
    stages = ", ".join(f"{stage} {took:.0f}" for stage, took in kernel["profile_ns_per_record"].items())
    _row("… where the time goes, ns a record, beside copying it", stages, "")
    _row("… beside networkx on the same input", f"{kernel['ratio_to_networkx']:.0f} ×", "")
    _row(
        "one window of 7.5 M events, 256 s of stream (SnailTrail, 32 cores: 24.8 s)",
        f"{kernel['big_window_seconds']:.2f} s",
        "≤ 2 s",
    )
    _holistic_trace_analysis()
    _bursts()
    with weir() as home:
        spark = bench_spark.measure(home)
        _row(
            f"stored segments → persisted summaries, {spark['records'] / 1e6:.0f} M records, Spark",
            f"{spark['events_per_s'] / 1e6:.1f} M events/s",
            "≥ 6 M",
        )
        _row("… beside SnailTrail's headline (1.2 M, 32 cores)", f"{spark['events_per_s'] / 1.2e6:.1f} ×", "")
        _row("storing batches of 50,000", f"{spark['store_events_per_s'] / 1e6:.1f} M events/s", "")
        _row("stored size", f"{spark['bytes_per_record']:.1f} bytes a record", "")
        _timeline(bench_timeline.measure(home))
        _latency(bench_latency.measure(home))
        _scaling(bench_scaling.measure(home))
        _clusters(bench_clusters.measure(home))
        _ingest(bench_ingest.measure(home))
        _digests(bench_digests.measure(home))  # the last: it leaves ten thousand people


def _latency(took: dict[str, float]) -> None:
    for lateness in ("2s", "0s"):
        p50, p95 = (took[f"p{share}_s_lateness_{lateness}"] for share in (50, 95))
        aim = "p95 ≤ 3 s" if lateness == "2s" else ""
        _row(
            f"ingest → summary visible at 30,000 events/s, allowed lateness {lateness}",
            f"p50 {p50:.2f} s, p95 {p95:.2f} s",
            aim,
        )


def _ingest(took: dict[str, dict[str, float]]) -> None:
    for name, found in took.items():
        what = f"{name} over HTTP, server, database and senders on this machine"
        _row(what, f"{found['per_s']:,.0f} /s", f"≥ {bench_ingest.AIMS[name]:,}")
        _row("… beside plain COPY of the same rows", f"{found['per_s'] / found['copy_per_s']:.2f} ×", "")
        _row("… p99 at half of it", f"{found['p99_ms']:.0f} ms", f"≤ {bench_ingest.AIM_P99_MS} ms")


def _clusters(took: dict[str, float]) -> None:
    size = f"{bench_clusters.APPLICATIONS} applications × {bench_clusters.NODES} nodes"
    _row(
        f"stored models and rates → headroom, losses and maps of {took['clusters']:,.0f} clusters ({size}), Spark",
        f"{took['next_s']:.0f} s, with indexes {took['first_s']:.0f} s",
        "",
    )


def _scaling(took: dict[str, float]) -> None:
    _row(
        f"stored rates → persisted recommendations, {took['jobs']:,.0f} jobs × {bench_scaling.OPERATORS} operators,"
        " Spark",
        f"{took['next_s']:.1f} s, all new {took['first_s']:.1f} s",
        "≤ 10 s",
    )
    _row(f"… {bench_scaling.FEW} jobs, no jobs", f"{took['few_s']:.2f} s, {took['idle_ms']:.0f} ms", "")


def _digests(took: dict[str, float]) -> None:
    what = f"digests of {took['people']:,.0f} people, each with a chart, to a real SMTP server by two workers"
    _row(what, f"{took['seconds']:.0f} s, no mail twice", "≤ 60 s")


def _timeline(took: dict[str, float]) -> None:
    what = "timeline of 100,000 activities, 200 workers: first paint"
    _row(what, f"{took['first_paint_ms']:.0f} ms", "≤ 1 s")
    _row("… from another tab of the job", f"{took['tab_ms']:.0f} ms", "≤ 1 s")
    _row("… zoom, from the wheel to the new detail", f"{took['zoom_ms']:.0f} ms", "≤ 300 ms")
    _row("… computing it when it is first opened", f"{took['compute_ms']:.0f} ms", "")


def _holistic_trace_analysis() -> None:
    what = "critical path of one PyTorch trace beside HolisticTraceAnalysis"
    try:
        hta = bench_hta.measure()
    except bench_hta.AbsentError as absent:
        _row(what, f"not measured: {absent}", "")
        return
    seconds = (
        f"{hta['seconds'] * 1e3:.0f} ms for {hta['records']:,.0f} records, theirs {hta['hta_seconds']:.1f} s"
    )
    _row(what, f"{hta['ratio']:.0f} × ({seconds})", "")


def _bursts() -> None:
    took = bench_bursts.measure()
    size = "12 applications × 10 nodes"
    _row(f"burst headroom, {size}, cold", f"{took['cold_ms']:.1f} ms", "≤ 5 ms")
    _row("… warm, p95", f"{took['warm_p95_ms']:.2f} ms", "≤ 1 ms")
    _row(
        "… from the cache of cuts",
        f"{took['cached_us']:.0f} µs, p95 {took['cached_p95_us']:.0f} µs,"
        f" {took['cache_misses_ratio']:.0%} of a random walk solved",
        "≤ 50 µs",
    )
    _row(
        "… 12-point index",
        f"{took['index_ms']:.0f} ms, a plan from it {took['index_lookup_us']:.0f} µs",
        "≤ 50 ms (BARRE's axis: 1.8 s)",
    )
    _row("… all 66 maps", f"{took['maps_ms'] / 1e3:.2f} s", "≤ 1 s")
    _row("… every answer about a point", f"{took['every_answer_ms']:.0f} ms", "")
    _row("… after the loss of each node", f"{took['losses_ms']:.0f} ms", "")
    _row(
        "burst headroom, 100 applications × 200 nodes",
        f"first {took['large_first_ms']:.0f} ms, drift p95 {took['large_drift_p95_ms']:.1f} ms",
        "≤ 1 s, ≤ 50 ms",
    )
    for ratio in bench_bursts.INTENSITIES:
        missed = (f"{one} {took[bench_bursts.missed_name(one, ratio)]:.1%}" for one in Strategy)
        _row(f"missed in simulated bursts of +{ratio:.0%} where +80% just fits", ", ".join(missed), "")


def _row(what: str, measured: str, aim: str) -> None:
    print(f"| {what} | {measured} | {aim} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
