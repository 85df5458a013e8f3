"""A real Spark event log becomes records, metrics and results; the same log again changes nothing."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from analytics.spark.jobs.critical_participation import Task, cut, summaries
from analytics.spark.sources import PostgresSegments, SegmentRef
from webapp.accounts.models import User
from webapp.analysis import selectors, services, standings
from webapp.analysis.overview import overview
from webapp.jobs.models import Job
from webapp.telemetry import segment_store
from webapp.telemetry.models import Annotation, Batch, MetricSample, Segment, Source, SourceKind
from webapp.telemetry.sources import add_source
from workers.tasks import collect
from workers.tasks.analyse import tasks_of

pytestmark = pytest.mark.django_db(transaction=True)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "spark_event_log"
LOG = next(GOLDEN.glob("eventlog_v2_*"))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    shutil.copytree(LOG, logs / LOG.name)
    return logs


def follow(directory: Path) -> Source:
    parent = add_source(SourceKind.SPARK_EVENT_LOG_DIRECTORY, str(directory))
    collect.poll_directory(parent.pk)
    source = Source.objects.get(parent=parent)
    collect.poll_event_log(source.pk)
    source.refresh_from_db()
    return source


def counts() -> dict[str, int]:
    return {
        model.__name__: model.objects.count() for model in (Batch, Segment, MetricSample, Annotation, Job)
    }


def analyse_all() -> None:
    """What the Spark task does, in this process: the Spark job itself has tests of its own."""
    Job.objects.update(last_received_at=timezone.now() - timedelta(minutes=1))
    segments = PostgresSegments(segment_store.address())
    while claimed := services.claim_work(1, "test"):
        run, work = claimed
        chunks = [chunk for task in tasks_of(work) for chunk in cut(task, refs(segments, task))]
        found = [(c.task.job_id, summary) for c in chunks for summary in summaries(segments, c)]
        services.finish_run(run, work, found)


def refs(segments: PostgresSegments, task: Task) -> list[SegmentRef]:
    return segments.index(task.job_id, task.from_ns - task.horizon_ns, task.to_ns + task.horizon_ns)


def test_a_log_becomes_results_that_name_what_limits_the_job(directory: Path) -> None:
    source = follow(directory)
    assert source.error == ""
    job = source.job
    assert job is not None
    analyse_all()
    job.refresh_from_db()
    assert job.first_ns is not None
    assert job.last_ns is not None
    limits = selectors.limits(job, job.first_ns, job.last_ns)
    assert limits.coverage.window_count > 0
    assert limits.limiter is not None
    assert sum(share.cp for share in limits.activities) == pytest.approx(1, abs=1e-9)
    assert set(limits.worker_names.values()) >= {"driver"}
    person = User.objects.create_user("alice", password="a long password")
    assert standings.refresh() == 1
    assert [row.job for row in overview(person, timezone.now()).rows] == [job]
    assert MetricSample.objects.filter(series__name="input_rows_per_s").exists()
    assert Annotation.objects.filter(kind="micro_batch").exists()


def test_reading_the_same_log_again_from_its_start_changes_nothing(directory: Path) -> None:
    source = follow(directory)
    before = counts()
    Source.objects.filter(pk=source.pk).update(state=None, finished=False)
    collect._forget(source.pk)
    collect.poll_event_log(source.pk)
    assert counts() == before


def test_a_copy_of_a_log_is_recognised_and_not_stored_again(directory: Path, tmp_path: Path) -> None:
    follow(directory)
    before = counts()
    shutil.copytree(directory, tmp_path / "copy")
    copy = follow(tmp_path / "copy")
    assert counts() == before
    assert copy.finished
    assert copy.error.startswith("a copy of ")


def test_a_log_that_cannot_be_read_says_so_and_keeps_its_position(directory: Path) -> None:
    source = follow(directory)
    state = source.state
    Source.objects.filter(pk=source.pk).update(finished=False)
    shutil.rmtree(source.location)
    collect.poll_event_log(source.pk)
    source.refresh_from_db()
    assert source.error
    assert source.state == state
