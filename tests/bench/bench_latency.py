"""Ingest → summary visible, at 30,000 events/s in 1 s windows, through the real workers.

A window's latency runs from the hand-over of the last batch with records of it to the first look that finds its
row (looked for every 20 ms). It includes the allowed lateness, since no window closes before that.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np

from tests.bench.setup import celery, wait_until_spark_is_warm, weir

EVENTS_PER_S = 30_000
BATCH_S = 0.1
WORKERS = 32
SKIPPED = 5
"""Windows at the start that are not counted: the stream begins in the middle of one, caches are cold."""


def measure(home: Path, seconds: int = 60) -> dict[str, float]:
    """p50 and p95 in seconds, with the default lateness of 2 s and with none."""
    found: dict[str, float] = {"events_per_s": EVENTS_PER_S}
    beat = ("beat", "--schedule", str(home / "beat"), "--pidfile=")
    with (
        celery(home, "spark", "worker", "-Q", "spark", "-P", "solo"),
        celery(home, "beat", *beat),
    ):
        wait_until_spark_is_warm(home)
        for lateness_s in (2, 0):
            latencies = _one_stream(f"late-{lateness_s}", lateness_s, seconds)
            found[f"windows_lateness_{lateness_s}s"] = len(latencies)
            for share in (50, 95):
                found[f"p{share}_s_lateness_{lateness_s}s"] = float(np.percentile(latencies, share))
    return found


def _one_stream(name: str, lateness_s: int, seconds: int) -> list[float]:
    """Feed a job in real time and return the latencies of its windows."""
    from webapp.jobs.models import Job
    from webapp.jobs.services import ensure_job

    job = ensure_job(name)
    Job.objects.filter(pk=job.pk).update(lateness_ns=lateness_s * 10**9)
    committed: dict[int, float] = {}
    seen: dict[int, float] = {}
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(job.pk, seen, over))
    watcher.start()
    _feed(job, seconds, committed)
    time.sleep(lateness_s + 5)
    over.set()
    watcher.join()
    # The last windows close by idleness, which is another matter.
    windows = sorted(committed)[SKIPPED : -lateness_s - 2]
    missing = [window for window in windows if window not in seen]
    if missing:
        raise AssertionError(f"{len(missing)} of {len(windows)} windows never became visible")
    return [seen[window] - committed[window] for window in windows]


def _feed(job: object, seconds: int, committed: dict[int, float]) -> None:
    """Store what ended in each tenth of a second when that tenth is over."""
    from tests.support import traces
    from webapp.jobs.models import Job
    from webapp.telemetry.services import digest_of, store_batch

    assert isinstance(job, Job)
    start_ns = time.time_ns()
    per_second = int(EVENTS_PER_S / 2 * 6 / 7)
    records = traces.trace(seed=5, workers=WORKERS, seconds=seconds, per_second=per_second, start_ns=start_ns)
    width_ns = int(BATCH_S * 1e9)
    cuts = np.searchsorted(records.end_ns, start_ns + np.arange(1, int(seconds / BATCH_S) + 1) * width_ns)
    begin = 0
    for number, stop in enumerate(cuts.tolist()):
        time.sleep(max(0.0, (start_ns + (number + 1) * width_ns - time.time_ns()) / 1e9))
        part = traces.batches(records.take(np.arange(begin, stop)), WORKERS, size=10**9)[0]
        now = time.time()
        store_batch(job, part, digest_of(job.name, str(number)))
        for window in range(
            int(part.records.start_ns.min() // 10**9), int(part.records.end_ns.max() // 10**9) + 1
        ):
            committed[window] = now
        begin = stop


def _watch(job_id: int, seen: dict[int, float], over: threading.Event) -> None:
    from django.db import connection

    from webapp.analysis.models import Window

    while not over.wait(0.02):
        rows = Window.objects.filter(job_id=job_id).values_list("start_ns", flat=True)
        now = time.time()
        for start_ns in rows:
            seen.setdefault(start_ns // 10**9, now)
    connection.close()


if __name__ == "__main__":
    import json
    import sys

    with weir() as home:
        print(json.dumps(measure(home, *map(int, sys.argv[1:])), indent=1))
