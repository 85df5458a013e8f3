"""The Spark job gives what the in-process analysis gives, however it is cut, and a run writes all or nothing."""

from __future__ import annotations

from dataclasses import fields
from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone
from pyspark.sql import SparkSession

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from analytics.model.results import WindowSummary
from analytics.spark.jobs import critical_participation
from analytics.spark.session import create_session, warm_up
from analytics.spark.sources import PostgresSegments
from tests.support import traces
from webapp.analysis import services
from webapp.analysis.models import PendingRange, Run, Window
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.telemetry import segment_store
from webapp.telemetry.services import digest_of, store_batch
from workers.tasks.analyse import tasks_of

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

WORKERS = 12
START_NS = 1_700_000_000_000_000_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = create_session(tmp_path_factory.mktemp("spark"))
    warm_up(session)
    return session


@pytest.fixture
def job() -> Job:
    """A job with 20 s of records in 40 batches, idle by now."""
    job = ensure_job("ad-events")
    records = traces.trace(seed=7, workers=WORKERS, seconds=20, per_second=500, start_ns=START_NS)
    for number, batch in enumerate(traces.batches(records, WORKERS, size=300)):
        store_batch(job, batch, digest_of(str(number)))
    Job.objects.update(last_received_at=timezone.now() - timedelta(minutes=1))
    return job


def in_process(job: Job) -> list[WindowSummary]:
    records = traces.trace(seed=7, workers=WORKERS, seconds=20, per_second=500, start_ns=START_NS)
    bounds = int(records.start_ns.min()), int(max(records.end_ns.max(), records.start_ns.max()))
    windows = covering_windows(bounds, job.window_ns)
    found, _ = analyse(
        records,
        *default_lifetimes(records, WORKERS),
        windows,
        bounds_ns=bounds,
        horizon_ns=job.gap_horizon_ns,
    )
    return found


def assert_same(left: WindowSummary, right: WindowSummary) -> None:
    for item in fields(WindowSummary):
        a, b = getattr(left, item.name), getattr(right, item.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=item.name)
        else:
            assert a == b, item.name


@pytest.mark.parametrize("records_a_chunk", [400, 2_500, 400_000])
def test_spark_gives_what_the_process_gives_however_windows_are_grouped(
    spark: SparkSession, job: Job, records_a_chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = critical_participation.cut
    monkeypatch.setattr(critical_participation, "cut", lambda task, refs: cut(task, refs, records_a_chunk))
    claimed = services.claim_work(1, "test")
    assert claimed is not None
    segments = PostgresSegments(segment_store.address())
    results = critical_participation.run(spark, segments, list(tasks_of(claimed[1])), claimed[0].pk)
    expected = in_process(job)
    assert [summary.index for _, summary in results] == [summary.index for summary in expected]
    assert any(summary.cp_total > 0.99 for summary in expected)
    for (job_id, summary), wanted in zip(results, expected, strict=True):
        assert job_id == job.pk
        assert_same(summary, wanted)
    assert Run.objects.get().windows_done == claimed[0].windows_total


def rows(job: Job) -> list[tuple[object, ...]]:
    names = [field.attname for field in Window._meta.concrete_fields if field.name != "run_id"]
    return [tuple(map(str, row)) for row in Window.objects.order_by("start_ns").values_list(*names)]


def test_running_again_gives_the_same_rows_once(spark: SparkSession, job: Job) -> None:
    segments = PostgresSegments(segment_store.address())
    found = []
    for attempt in range(2):
        claimed = services.claim_work(1, "test")
        assert claimed is not None
        run, work = claimed
        results = critical_participation.run(spark, segments, list(tasks_of(work)), run.pk)
        services.finish_run(run, work, results)
        found.append(rows(job))
        assert not PendingRange.objects.filter(not_before__lte=timezone.now()).exists()
        if attempt == 0:
            assert job.first_ns is None, "the fixture's row is from before the batches"
            job.refresh_from_db()
            assert job.first_ns is not None
            assert job.last_ns is not None
            services.mark_pending(job, job.first_ns, job.last_ns)
    assert len(found[0]) == 21 or len(found[0]) >= 20
    assert found[0] == found[1]


def test_several_jobs_are_analysed_in_one_go(spark: SparkSession, job: Job) -> None:
    other = ensure_job("other")
    records = traces.trace(seed=8, workers=3, seconds=5, per_second=50, start_ns=START_NS)
    for batch in traces.batches(records, 3, size=1000):
        store_batch(other, batch, digest_of("x"))
    Job.objects.update(finished=True)
    claimed = services.claim_work(1, "test")
    assert claimed is not None
    run, work = claimed
    assert {part.job_id for part in work} == {job.pk, other.pk}
    results = critical_participation.run(
        spark, PostgresSegments(segment_store.address()), list(tasks_of(work)), run.pk
    )
    services.finish_run(run, work, results)
    counts = {pk: Window.objects.filter(job_id=pk).count() for pk in (job.pk, other.pk)}
    assert counts[job.pk] > counts[other.pk] > 4
