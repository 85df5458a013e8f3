"""A window as dense as they come: 100,000 activities of 200 workers on 25 hosts in one second."""

from __future__ import annotations

from analytics.model.trace import TraceBatch, Worker
from tests.support import seed, traces
from webapp.jobs.models import Job
from webapp.telemetry.services import digest_of, store_batch

WORKERS = 200
ACTIVITIES = 100_000
CORES = 8


def stream(job: Job, first_second: int) -> None:
    """Store such a second as the job's only and last, and analyse it."""
    start_ns = first_second * seed.SECOND_NS
    records = traces.trace(
        seed=7, workers=WORKERS, seconds=0.999, per_second=ACTIVITIES * 1001 // 1000, start_ns=start_ns
    )
    records = records.take((records.end_ns <= start_ns + seed.SECOND_NS).nonzero()[0])
    workers = tuple(
        Worker(f"executor {1 + i // CORES} core {i % CORES}", f"host-{1 + i // CORES}")
        for i in range(WORKERS)
    )
    batch = TraceBatch(records, workers=workers, operators=traces.OPERATORS)
    store_batch(job, batch, digest_of(job.name, str(first_second)))
    Job.objects.filter(pk=job.pk).update(finished=True)  # nothing more comes: the window is closed
    seed.analyse()
