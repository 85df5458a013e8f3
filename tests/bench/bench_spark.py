"""Stored segments → persisted summaries through Spark, on two cores."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.setup import weir

ACTIVITIES = 20_000_000
PER_SECOND = 15_000
WORKERS = 32


def measure(home: Path, activities: int = ACTIVITIES) -> dict[str, float]:
    """Seconds and events/s (a record is two events) from the claim to the commit, with a warm session."""
    from django.db import connection

    from analytics.spark.jobs import critical_participation
    from analytics.spark.session import create_session, warm_up
    from analytics.spark.sources import PostgresSegments
    from tests.support import traces
    from webapp.analysis import services
    from webapp.analysis.models import Window
    from webapp.jobs.models import Job
    from webapp.jobs.services import ensure_job
    from webapp.telemetry import segment_store
    from webapp.telemetry.services import digest_of, store_batch
    from workers.tasks.analyse import tasks_of

    job = ensure_job("bench")
    seconds = activities / PER_SECOND
    records = traces.trace(
        seed=1, workers=WORKERS, seconds=seconds, per_second=int(PER_SECOND * 6 / 7), start_ns=10**18
    )
    began = time.perf_counter()
    for number, batch in enumerate(traces.batches(records, WORKERS, size=50_000)):
        store_batch(job, batch, digest_of(str(number)))
    stored_s = time.perf_counter() - began
    count = len(records)
    del records
    Job.objects.filter(pk=job.pk).update(finished=True)
    session = create_session(home)
    warm_up(session)
    segments = PostgresSegments(segment_store.address())
    job.refresh_from_db()
    assert job.first_ns is not None
    assert job.last_ns is not None
    first = job.first_ns // job.window_ns
    bounds = (job.first_ns, job.last_ns)
    some = [critical_participation.Task(job.pk, job.window_ns, job.gap_horizon_ns, bounds, first, 40)]
    critical_participation.run(session, segments, some)
    # The settling ranges of slightly late messages are part of the work, so nothing waits for the horizon.
    began = time.perf_counter()
    claimed = services.claim_work(1, "bench")
    assert claimed is not None
    run, work = claimed
    results = critical_participation.run(session, segments, list(tasks_of(work)), run.pk)
    computed_s = time.perf_counter() - began
    services.finish_run(run, work, results)
    took_s = time.perf_counter() - began
    session.stop()
    windows = Window.objects.filter(job=job).count()
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(length(payload)) FROM telemetry_segment")
        (stored_bytes,) = cursor.fetchone()
    return {
        "records": count,
        "windows": windows,
        "store_events_per_s": 2 * count / stored_s,
        "bytes_per_record": float(stored_bytes) / count,
        "compute_s": computed_s,
        "write_s": took_s - computed_s,
        "events_per_s": 2 * count / took_s,
    }


if __name__ == "__main__":
    import json
    import sys

    with weir() as home:
        print(json.dumps(measure(home, *map(int, sys.argv[1:])), indent=1))
