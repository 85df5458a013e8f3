"""The whole loop by its own tasks: collector → Spark → DS2 → proposal → a person → PUT → verified.

The cluster answers as a real one did before and after it was rescaled as DS2 asked; only its minutes pass quicker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from analytics.spark.session import create_session, warm_up
from tests.support.changes import COUNT, SOURCE, SPLIT, member, trail
from tests.support.flink_engine_server import flink_server
from tests.support.flink_loop_server import AFTER, BEFORE, LoopServer
from tests.support.scaling import SOURCE_NAME
from webapp.analysis.models import ScalingSetup
from webapp.jobs.models import Job, JobGroup, Role
from webapp.reconfigurations import selectors
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, Mode, Proposal
from webapp.reconfigurations.services import approve
from webapp.telemetry import sources
from webapp.telemetry.models import Annotation, Source, SourceKind
from workers import spark as spark_worker
from workers.tasks import flink as collect
from workers.tasks.apply import apply_proposal
from workers.tasks.proposals import follow_recommendations, look_after
from workers.tasks.recommend import recommend
from workers.tasks.verify import verify_due

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600)]
AGO_S = 140
"""The change is moved so far into the past, so that what came of it is there to be judged."""


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = create_session(tmp_path_factory.mktemp("spark"))
    warm_up(session)
    return session


@pytest.fixture
def flink() -> Iterator[LoopServer]:
    server = LoopServer()
    with flink_server(server):
        yield server
    collect._cluster.cache_clear()


def test_what_a_collector_reads_is_recommended_proposed_approved_applied_and_verified(
    spark: SparkSession, flink: LoopServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_worker, "session", lambda: spark)
    began_ns = time.time_ns() - (AGO_S + 80) * 10**9
    cluster = sources.add_source(SourceKind.FLINK, flink.url)
    collect.poll_cluster(cluster.pk)
    source = Source.objects.get(parent=cluster)
    job = source.job
    assert job is not None
    job.group = JobGroup.objects.create(name="team")
    job.save()
    ScalingSetup.objects.create(job=job, targets_per_s={SOURCE_NAME: 1_000})
    ChangePolicy.objects.create(job=job, mode=Mode.RECOMMEND, engine="flink", engine_url=flink.url)

    def poll_at(base_ns: int, after_s: float) -> None:
        moment = SimpleNamespace(time_ns=lambda: base_ns + int(after_s * 1e9))
        monkeypatch.setattr(collect, "time", moment)
        collect.poll_job(source.pk)

    flink.play(BEFORE, lambda after_s: poll_at(began_ns, after_s))
    recommend()
    follow_recommendations()
    look_after()
    row = Proposal.objects.get(job=job)
    assert (row.state, row.change) == (State.PROPOSED, {"parallelism": {SPLIT: 6, COUNT: 2}})

    approver = member(job, Role.APPROVER)
    assert list(selectors.inbox(approver)) == [row]
    approve(approver, row.pk, expected_version=row.version)
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, row.state_reason) == (State.APPLIED, "split 1 → 6, count 1 → 2")
    (put,) = flink.puts
    assert {key: item["parallelism"] for key, item in put.items()}[SPLIT] == {
        "lowerBound": 1,
        "upperBound": 6,
    }
    assert len(put) == len(flink.job["vertices"])

    verify_due()
    row.refresh_from_db()
    assert row.state == State.APPLIED, "nothing has been measured since"
    changed_ns = moved_to_the_past(row)
    flink.play(AFTER, lambda after_s: poll_at(changed_ns + 6 * 10**9, after_s))
    verify_due()
    row.refresh_from_db()
    assert row.state == State.VERIFIED, row.state_reason
    found = {
        item["operator_id"]: item for item in row.verdict["findings"] if item["what"] == "source_rate_per_s"
    }
    assert found[SOURCE]["before"] == pytest.approx(198, rel=0.05)
    assert found[SOURCE]["after"] == pytest.approx(1_000, rel=0.03)
    assert [action for action, _ in trail(row.pk)] == [
        f"proposal.{word}" for word in ("propose", "approve", "apply", "applied", "verify")
    ]
    assert {item.policy for item in selectors.calibration(approver)} == {"ds2"}
    assert Annotation.objects.filter(job=job, kind="reconfiguration").count() == 1
    assert nothing_more_is_proposed(job)


def moved_to_the_past(row: Proposal) -> int:
    """When the change seems to have been made now."""
    assert row.applied_at is not None
    ago = timedelta(seconds=AGO_S)
    attempt = Attempt.objects.get(proposal=row)
    assert attempt.sent_at is not None
    Attempt.objects.filter(pk=attempt.pk).update(sent_at=attempt.sent_at - ago)
    Proposal.objects.filter(pk=row.pk).update(applied_at=row.applied_at - ago)
    return int((row.applied_at - ago).timestamp() * 1e9)


def nothing_more_is_proposed(job: Job) -> bool:
    """With the rates of after the change the policy has nothing to ask for."""
    recommend()
    follow_recommendations()
    return not Proposal.objects.filter(job=job, state=State.PROPOSED).exists()
