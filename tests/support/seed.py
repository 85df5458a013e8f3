"""A job for pages: a batch job with one slow worker, stored and analysed through the real services."""

from __future__ import annotations

from collections.abc import Iterator

from analytics.model.activity import ActivityType as T
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.trace import NONE, Records, TraceBatch, Worker
from analytics.spark.jobs import critical_participation
from analytics.spark.jobs.critical_participation import ALGORITHM_VERSION
from analytics.spark.sources import PostgresSegments
from webapp.analysis import services, standings
from webapp.jobs.models import Engine, Job
from webapp.jobs.services import ensure_job
from webapp.telemetry import segment_store
from webapp.telemetry.services import digest_of, store_batch
from workers.tasks.analyse import tasks_of

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
OPERATORS = ("split", "count")
Row = tuple[int, int, int, int, int, int]


def batch(first_second: int, seconds: int, cores: int = 4, tasks: int = 3) -> TraceBatch:
    """A second is a micro-batch: the driver plans, every core splits and counts, core 1 five times as long.

    ``tasks`` is how many tasks of each operator a core runs in a batch.
    """
    span = range(first_second, first_second + seconds)
    rows = [row for second in span for row in _second(second * SECOND_NS, cores, tasks)]
    hosts = max(1, cores // 8)
    executors = [Worker(f"executor {1 + i % hosts} core {i}", f"host-{1 + i % hosts}") for i in range(cores)]
    workers = [Worker("driver", "host-0"), *executors]
    return TraceBatch(
        Records.of(rows),
        workers=tuple(workers),
        operators=OPERATORS,
        metrics=tuple(
            MetricSample("input_rows_per_s", (("source", "words"),), s * SECOND_NS, 880.0 + s % 40)
            for s in span
        ),
        annotations=tuple(
            Annotation("micro_batch", str(s), f"batch {s % 1000}", s * SECOND_NS, (s + 1) * SECOND_NS)
            for s in span
        ),
    )


def _second(start: int, cores: int, tasks: int) -> Iterator[Row]:
    plan_end = last = start + 60 * MS_NS
    yield (T.SCHEDULING, 0, NONE, NONE, start, plan_end)
    for core in range(1, cores + 1):
        sent = plan_end + core * 200_000
        yield (T.SCHEDULING, 0, NONE, NONE, sent - 200_000, sent)
        at = sent + 2 * MS_NS
        yield (T.CONTROL_MESSAGE, 0, core, NONE, sent, at)
        slow = 5 if core == 1 else 1
        for operator in (0, 1):
            for task in range(tasks):
                busy_ms = (65 + 20 * operator) * slow + (start // SECOND_NS + core) % 7 * 8
                for kind, length_ms in (
                    (T.DESERIALIZATION, 12),
                    (T.PROCESSING, busy_ms),
                    (T.SERIALIZATION, 9),
                ):
                    end = at + length_ms * MS_NS // tasks
                    yield (kind, core, NONE, operator, at, end)
                    at = end
                if operator == 0 and task == tasks - 1 and 1 < core < cores:
                    peer = core + 1
                    yield (T.DATA_MESSAGE, core, peer, operator, at, at + 8 * MS_NS)
        yield (T.CONTROL_MESSAGE, core, 0, NONE, at, at + 2 * MS_NS)
        last = max(last, at + 2 * MS_NS)
    yield (T.WAITING, 0, NONE, NONE, plan_end + cores * 200_000, last)
    yield (T.SCHEDULING, 0, NONE, NONE, last, start + SECOND_NS)


def stream(job: Job, first_second: int, seconds: int, **shape: int) -> None:
    """Store ``seconds`` seconds of the job's records from ``first_second`` (Unix time) on, and analyse them."""
    digest = digest_of(job.name, str(first_second), str(seconds))
    store_batch(job, batch(first_second, seconds, **shape), digest)
    analyse()


def make_job(name: str, engine: Engine = Engine.SPARK) -> Job:
    """A job without records."""
    return ensure_job(name, engine)


def analyse() -> None:
    """What the workers do, with their own functions in this process: claim, compute, write, keep what limits it."""
    while claimed := services.claim_work(ALGORITHM_VERSION, "tests"):
        run, work = claimed
        source = PostgresSegments(segment_store.address())
        results = []
        for task in tasks_of(work):
            low, high = task.from_ns - task.horizon_ns, task.to_ns + task.horizon_ns
            for chunk in critical_participation.cut(task, source.index(task.job_id, low, high)):
                results += [(task.job_id, found) for found in critical_participation.summaries(source, chunk)]
        services.finish_run(run, work, results)
    standings.refresh()
