"""After a change has settled its prediction is held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from analytics.model.reconfigurations import Prediction
from tests.support.changes import COUNT, SOURCE, SPLIT, draft, make_job, member, trail
from tests.support.flink_engine_server import FlinkServer, flink_server
from tests.support.flink_runs import around
from webapp.jobs.models import Job, Role
from webapp.reconfigurations import governance
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, Mode, Proposal
from webapp.reconfigurations.services import approve, propose
from webapp.reconfigurations.verification import changed_again
from workers.tasks.apply import apply_proposal
from workers.tasks.proposals import look_after
from workers.tasks.verify import verify_due

pytestmark = pytest.mark.django_db


@pytest.fixture
def flink() -> Iterator[FlinkServer]:
    with flink_server() as server:
        yield server


@pytest.fixture
def job(flink: FlinkServer) -> Job:
    return make_job(Mode.RECOMMEND, engine="flink", engine_url=flink.url)


def decided(row: Proposal) -> Proposal:
    approve(member(row.job, Role.APPROVER), row.pk, expected_version=None, reason="go")
    apply_proposal(row.pk)
    row = Proposal.objects.select_related("job", "attempt").get(pk=row.pk)
    assert row.state == State.APPLIED, row.state_reason
    return row


def judged(row: Proposal) -> Proposal:
    verify_due()
    row.refresh_from_db()
    return row


def test_a_prediction_that_came_true_is_verified(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    around(row, 198, 900.7, {SPLIT: 0.92, COUNT: 0.7})
    assert judged(row).state == State.VERIFIED
    assert row.state_reason.startswith("Source: events delivers 901 records/s (predicted: 900)")
    assert row.verdict["findings"][0] | {"says": ""} == {
        "what": "source_rate_per_s", "operator_id": SOURCE, "predicted": 900.0, "before": 198, "after": 900.7,
        "agrees": True, "says": "",
    }  # fmt: skip
    assert trail(row.pk)[-1] == ("proposal.verify", "done")
    assert judged(row).version == 5, "a verdict is given once"


def test_no_verdict_is_given_before_the_job_has_settled(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    assert judged(row).state == State.APPLIED
    around(row, 198, 900, {SPLIT: 0.9, COUNT: 0.7}, minutes=2)
    assert judged(row).state == State.APPLIED, "one window is too little"


def test_what_got_worse_brings_a_proposal_to_go_back_which_a_person_decides(
    job: Job, flink: FlinkServer
) -> None:
    ChangePolicy.objects.filter(job=job).update(mode=Mode.AUTOMATIC)
    row = decided(propose(member(job, Role.OPERATOR), job, draft()))
    around(row, 880, 400, {SPLIT: 0.2, COUNT: 0.2})
    assert judged(row).state == State.REGRESSED
    back = Proposal.objects.get(undoes=row)
    assert (back.state, back.change) == (State.PROPOSED, {"parallelism": {SPLIT: 1, COUNT: 1}})
    assert back.shortfall_per_s == 480
    assert back.prediction["source_rates_per_s"] == [[SOURCE, 880]]
    back = decided(back)
    row.refresh_from_db()
    assert row.state == State.REVERTED
    assert [item["parallelism"] for item in flink.job["vertices"]] == [1, 1, 1, 1]


def test_going_back_from_going_back_is_not_offered(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    around(row, 880, 400, {SPLIT: 0.2, COUNT: 0.2})
    judged(row)
    back = decided(Proposal.objects.get(undoes=row))
    Proposal.objects.filter(pk=row.pk).update(applied_at=timezone.now() - timedelta(hours=1))
    around(back, 880, 300, {SPLIT: 0.2, COUNT: 0.2})
    assert judged(back).state == State.REGRESSED
    assert not Proposal.objects.filter(undoes=back).exists()


def test_where_nothing_may_be_proposed_any_more_the_verdict_stands_alone(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    governance.change_rules(member(job, Role.ADMIN), job, mode=Mode.OBSERVE)
    around(row, 880, 400, {})
    assert judged(row).state == State.REGRESSED
    assert not Proposal.objects.filter(undoes=row).exists()


def test_without_measurements_the_verdict_waits_and_is_then_inconclusive(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    Proposal.objects.filter(pk=row.pk).update(applied_at=timezone.now() - timedelta(minutes=8))
    assert judged(row).state == State.APPLIED
    Proposal.objects.filter(pk=row.pk).update(applied_at=timezone.now() - timedelta(minutes=12))
    assert judged(row).state == State.INCONCLUSIVE
    assert row.state_reason.startswith("too little was measured to judge Source: events's rate")


def test_a_job_that_was_changed_again_cannot_be_judged(job: Job) -> None:
    row = decided(propose(None, job, draft()))
    Proposal.objects.filter(pk=row.pk).update(applied_at=timezone.now() - timedelta(minutes=5))
    later = propose(None, make_job(), draft())
    Proposal.objects.filter(pk=later.pk).update(job=job, state=State.APPLIED, applied_at=timezone.now())
    assert judged(row).state == State.INCONCLUSIVE
    assert row.state_reason == f"proposal {later.pk} changed the job again before it could be judged"


@pytest.mark.parametrize("why", ["it was a dry run", "nothing was predicted"])
def test_what_cannot_be_compared_is_inconclusive_at_once(job: Job, why: str) -> None:
    if "dry" in why:
        ChangePolicy.objects.filter(job=job).update(engine="dry-run")
    row = decided(propose(None, job, draft() if "dry" in why else draft(prediction=Prediction())))
    if "dry" not in why:
        around(row, 198, 900, {})
    Proposal.objects.filter(pk=row.pk).update(applied_at=timezone.now() - timedelta(minutes=20))
    assert judged(row).state == State.INCONCLUSIVE
    assert why in row.state_reason


def test_a_dry_run_stays_one_whatever_the_rules_say_later_and_hides_no_change_before_it(
    job: Job, flink: FlinkServer
) -> None:
    real = decided(propose(None, job, draft()))
    Proposal.objects.filter(pk=real.pk).update(applied_at=timezone.now() - timedelta(minutes=20))
    ChangePolicy.objects.filter(job=job).update(engine="dry-run")
    row = decided(propose(None, job, draft(split=6)))
    real.refresh_from_db()
    assert changed_again(real) is None
    ChangePolicy.objects.filter(job=job).update(engine="flink")
    assert judged(row).state == State.INCONCLUSIVE
    assert row.state_reason.startswith("it was a dry run")
    real.refresh_from_db()
    assert "too little was measured" in real.state_reason, "the real one is judged by what was measured"


def test_an_engine_that_gives_no_answer_is_asked_once_a_sweep_and_by_one_worker(
    flink: FlinkServer, caplog: pytest.LogCaptureFixture
) -> None:
    Proposal.objects.filter(state=State.PROPOSED).update(state=State.EXPIRED)
    rows = [
        propose(None, make_job(engine="flink", engine_url=flink.url), draft()),
        propose(None, make_job(engine="flink", engine_url=flink.url), draft()),
    ]
    flink.down = True
    caplog.set_level("INFO")
    look_after()
    assert sum("proposals.unseen" in item.getMessage() for item in caplog.records) == 1
    flink.down = False
    flink.set_parallelism(split=2)
    with ThreadPoolExecutor(1) as other:
        other.submit(_another_worker).result(10)
        look_after()
        states = set(Proposal.objects.filter(pk__in=[row.pk for row in rows]).values_list("state", flat=True))
        assert states == {State.PROPOSED}, "another worker is at it"
        other.submit(lambda: connection.close()).result(10)
    look_after()
    states = set(Proposal.objects.filter(pk__in=[row.pk for row in rows]).values_list("state", flat=True))
    assert states == {State.STALE}


def _another_worker() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtext('proposals.look_after'))")


def test_open_proposals_expire_and_go_stale_when_the_job_changes(job: Job, flink: FlinkServer) -> None:
    row = propose(None, job, draft())
    look_after()
    row.refresh_from_db()
    assert row.state == State.PROPOSED
    flink.set_parallelism(split=2)
    look_after()
    row.refresh_from_db()
    assert (row.state, row.state_reason) == (State.STALE, "split runs with 2 instances now, not 1")
    late = propose(None, job, draft())
    Proposal.objects.filter(pk=late.pk).update(expires_at=timezone.now())
    flink.down = True
    look_after()
    late.refresh_from_db()
    assert late.state == State.EXPIRED
