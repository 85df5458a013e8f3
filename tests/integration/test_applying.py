"""Applying through Flink's recorded answers: what is sent, what is kept, and what people read when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from analytics.model.reconfigurations import Binding
from frontend.components.proposals import told
from tests.support.changes import COUNT, SINK, SOURCE, SPLIT, binding, draft, make_job, member, trail
from tests.support.flink_engine_server import FlinkServer, flink_server, recorded
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, Role
from webapp.reconfigurations import execution, governance
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, Mode, Proposal, Step
from webapp.reconfigurations.services import approve, propose
from webapp.telemetry.models import Annotation
from workers.tasks import apply
from workers.tasks.apply import apply_proposal

pytestmark = pytest.mark.django_db


@pytest.fixture
def flink() -> Iterator[FlinkServer]:
    with flink_server() as server:
        yield server


@pytest.fixture
def job(flink: FlinkServer) -> Job:
    return make_job(Mode.RECOMMEND, engine="flink", engine_url=flink.url, apply_limit_s=5)


def approved(job: Job, **more: object) -> Proposal:
    row = propose(None, job, draft(**more))
    return approve(member(job, Role.APPROVER), row.pk, expected_version=1, reason="go")


def applied(row: Proposal) -> Proposal:
    """Work on it until nothing is left to do, as the sweep would."""
    for _ in range(20):
        apply_proposal(row.pk)
        row.refresh_from_db()
        if row.state not in (State.APPROVED, State.APPLYING):
            return row
    raise AssertionError(f"still {row.state}: {row.state_reason}")


def test_a_rescale_names_every_vertex_with_lower_bound_one_and_is_polled_until_it_runs(
    job: Job, flink: FlinkServer
) -> None:
    row = applied(approved(job))
    assert (row.state, row.state_reason) == (State.APPLIED, "split 1 → 5, count 1 → 2")
    assert flink.puts == [recorded("requirements_put")]
    attempt = row.attempt
    assert attempt.step == Step.FINISHED
    assert attempt.before["asked"][0][1:] == [1, 1]
    after = {item["name"]: item["parallelism"] for item in attempt.after["running"]["operators"]}
    assert after == {"Source: events": 1, "split": 5, "count": 2, "out: Writer": 1}
    assert attempt.rescale["vertices"][SPLIT]["postRescaleParallelism"] == 5
    put = next(item for item in attempt.exchanges if item["method"] == "PUT")
    assert (put["status"], put["answer"], put["sent"]) == (200, {}, flink.puts[0])
    assert [action for action, _ in trail(row.pk)] == [
        "proposal.propose", "proposal.approve", "proposal.apply", "proposal.applied",
    ]  # fmt: skip
    assert (
        Annotation.objects.get(job=job, kind="reconfiguration").label == "Applied: split 1 → 5, count 1 → 2"
    )


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("above_max_parallelism", "400: The newly requested parallelism 200 for the job vertex"),
        ("lower_gt_upper", "400: The requested lower bound [4] for job vertex"),
        ("lower_zero", "must be greater than zero"),
        ("zero", "must be greater than zero"),
        ("missing_vertex", "400: The request is incomplete, missing job vertex"),
        ("unknown_vertex", "was not found in the JobGraph"),
        ("empty", "Request body does not specify resource requirements"),
        ("garbage", "Request did not match expected format"),
        ("bad_job_id", "Cannot resolve path parameter (jobid)"),
        ("unknown_job", "500: Could not find Flink job (ffffffffffffffffffffffffffffffff)"),
    ],
)
def test_a_refused_put_fails_with_flinks_own_words_and_is_not_sent_again(
    job: Job, flink: FlinkServer, name: str, said: str
) -> None:
    flink.next_put = recorded(f"put_{name}")
    row = applied(approved(job))
    assert row.state == State.APPLY_FAILED
    assert said in row.state_reason
    assert "\tat " not in row.state_reason
    assert len(flink.puts) == 1
    assert row.attempt.exchanges[-1]["answer"] == recorded(f"put_{name}")["response"]


def test_a_cluster_without_the_adaptive_scheduler_is_not_touched(job: Job, flink: FlinkServer) -> None:
    flink.requirements_answer = recorded("fixed_get_requirements")
    flink.job["schedulerType"] = "Default"
    row = applied(approved(job))
    assert row.state == State.APPLY_FAILED
    assert row.state_reason == "its scheduler is Default: only the adaptive one changes a running job"
    assert flink.puts == []


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("job.autoscaler.enabled", "true", "Flink's autoscaler"),
        ("kubernetes.operator.job.autoscaler.enabled", "true", "Flink's autoscaler"),
        ("scheduler-mode", "reactive", "KEDA or an HPA"),
    ],
)
def test_a_job_that_another_controller_scales_is_left_to_it(
    job: Job, flink: FlinkServer, key: str, value: str, said: str
) -> None:
    flink.setting(key, value)
    row = applied(approved(job))
    assert row.state == State.APPLY_FAILED
    assert said in row.state_reason
    assert "Weir does not fight it" in row.state_reason
    assert flink.puts == []


def test_an_autoscaler_that_only_advises_owns_nothing(job: Job, flink: FlinkServer) -> None:
    flink.setting("job.autoscaler.enabled", "true")
    flink.setting("job.autoscaler.scaling.enabled", "false")
    assert applied(approved(job)).state == State.APPLIED


def test_an_owner_that_an_admin_named_is_respected(job: Job, flink: FlinkServer) -> None:
    row = approved(job)
    ChangePolicy.objects.filter(job=job).update(scaled_by="KEDA ScaledObject words")
    row = applied(row)
    assert row.state_reason == "KEDA ScaledObject words scales this job, and Weir does not fight it"
    assert flink.puts == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("rescaled", "split runs with 3 instances now, not 1"),
        ("restarted", "the job was restarted"),
        ("replaced", "the maximum parallelism of split is 256 now, not 128"),
        ("finished", "the job is FINISHED"),
    ],
)
def test_a_job_that_is_not_the_one_people_decided_about_is_not_touched(
    job: Job, flink: FlinkServer, how: str, said: str
) -> None:
    row = approved(job)
    if how == "rescaled":
        flink.set_parallelism(split=3)
    elif how == "restarted":
        flink.job["timestamps"]["RUNNING"] += 1
    elif how == "replaced":
        flink.job["vertices"][1]["maxParallelism"] = 256
    else:
        flink.job["state"] = "FINISHED"
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert said in row.state_reason
    assert flink.puts == []


def test_too_few_slots_end_as_a_failure_that_says_what_runs(job: Job, flink: FlinkServer) -> None:
    row = applied(approved(job, split=20))
    assert row.state == State.APPLY_FAILED
    assert row.state_reason == (
        "after 5 s split runs with 10 instances, not 20; what was asked for still stands"
    )
    assert row.attempt.rescale is not None


def test_what_was_asked_for_in_vain_does_not_ride_along_with_the_next_approval(
    job: Job, flink: FlinkServer
) -> None:
    applied(approved(job, change={"parallelism": {SPLIT: 20}}))
    applied(approved(job, binding=running(flink), change={"parallelism": {COUNT: 30}}))
    row = applied(approved(job, binding=running(flink), change={"parallelism": {SINK: 3}}))
    assert row.state == State.APPLIED
    asked = [{key: item["parallelism"]["upperBound"] for key, item in put.items()} for put in flink.puts]
    assert asked == [
        {SOURCE: 1, SPLIT: 20, COUNT: 1, SINK: 1},
        {SOURCE: 1, SPLIT: 1, COUNT: 30, SINK: 1},
        {SOURCE: 1, SPLIT: 1, COUNT: 1, SINK: 3},
    ]


def running(flink: FlinkServer) -> Binding:
    """What the job runs with now."""
    counts = {item["name"]: item["parallelism"] for item in flink.job["vertices"]}
    return binding(since_ms=flink.job["timestamps"]["RUNNING"], **counts)


def test_an_engine_that_cannot_be_reached_is_tried_again_until_the_limit(
    job: Job, flink: FlinkServer
) -> None:
    row = approved(job)
    flink.down = True
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, row.attempt.finished_at) == (State.APPLYING, None)
    assert row.pk in execution.due()
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=1))
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert row.state_reason.endswith("nothing was sent")
    assert "gave no answer" in row.attempt.exchanges[0]["error"] or row.attempt.exchanges[0]["error"]


LOGIN = b"<html>sign in</html>"


@pytest.mark.parametrize(
    "bad", [(200, LOGIN), (503, LOGIN), (500, {"errors": ["busy"]}), (404, {"errors": ["?"]})]
)
def test_a_bad_answer_to_a_poll_ends_nothing_that_was_accepted(
    job: Job, flink: FlinkServer, bad: tuple[int, object]
) -> None:
    flink.polls = [bad, bad]
    row = applied(approved(job))
    assert (row.state, len(flink.puts)) == (State.APPLIED, 1)
    kept = [(item["status"], item["method"]) for item in row.attempt.exchanges]
    assert (bad[0], "GET") in kept, "what it said is on record"


def test_what_was_accepted_and_is_never_seen_to_run_fails_once_at_the_limit(
    job: Job, flink: FlinkServer
) -> None:
    row = approved(job)
    flink.polls = [(503, LOGIN)] * 50
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, row.attempt.step) == (State.APPLYING, Step.SENT)
    Attempt.objects.update(sent_at=timezone.now() - timedelta(minutes=1))
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert "Flink answered 503" in row.state_reason
    assert row.state_reason.endswith("the change was accepted, but nobody saw what became of it")
    assert [action for action, _ in trail(row.pk)].count("proposal.apply_failed") == 1


def test_a_job_that_flink_does_not_know_before_anything_was_sent_ends_it(
    job: Job, flink: FlinkServer
) -> None:
    row = approved(job)
    ChangePolicy.objects.filter(job=job).update(engine_url=f"{flink.url}/elsewhere")
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert row.state_reason.startswith("Flink answered 404")
    assert flink.puts == []


def test_an_address_that_is_none_ends_the_attempt_with_the_reason(job: Job) -> None:
    row = approved(job)
    ChangePolicy.objects.filter(job=job).update(engine_url="http://flink:port")
    row = applied(row)
    assert (row.state, "is no address" in row.state_reason) == (State.APPLY_FAILED, True)


@pytest.mark.parametrize("details", [LOGIN, {"what": "a\0b"}])
def test_a_record_that_cannot_be_read_or_stored_fails_nothing(
    job: Job, flink: FlinkServer, details: object
) -> None:
    flink.details = details
    row = applied(approved(job))
    assert row.state == State.APPLIED
    assert row.attempt.rescale == (None if details is LOGIN else {"what": "ab"})


def test_an_attempt_that_weir_fails_at_ends_at_its_limit_and_frees_the_job(
    job: Job, flink: FlinkServer
) -> None:
    row = approved(job)
    Proposal.objects.filter(pk=row.pk).update(binding={"no": "binding"})
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, row.attempt.finished_at) == (State.APPLYING, None)
    Attempt.objects.update(started_at=timezone.now() - timedelta(minutes=1))
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert row.state_reason.startswith("Weir failed at it (")
    assert row.state_reason.endswith("nothing was sent")
    assert Proposal.objects.filter(job=job, state=State.APPLYING).count() == 0


def test_a_proxys_error_for_a_put_is_not_flinks_no(job: Job, flink: FlinkServer) -> None:
    flink.next_put = {"status": 502, "response": LOGIN}
    row = applied(approved(job))
    assert (row.state, len(flink.puts)) == (State.APPLIED, 2), "Flink had not got it, so it was sent again"


def test_an_approved_change_waits_for_its_window_and_for_the_end_of_a_freeze(
    job: Job, flink: FlinkServer
) -> None:
    row, admin = approved(job), member(job, Role.ADMIN)
    tomorrow = (timezone.now() + timedelta(days=2)).strftime("%a").lower()
    night = {"days": [tomorrow], "from": "02:00", "to": "02:01", "zone": "UTC"}
    governance.change_rules(admin, job, windows=[night])
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, row.state_reason) == (State.APPROVED, "waits for the next change window")
    governance.change_rules(admin, job, windows=[])
    governance.freeze(admin, job, "a sale")
    apply_proposal(row.pk)
    row.refresh_from_db()
    assert (row.state, flink.puts) == (State.APPROVED, [])
    governance.lift_freeze(admin, job)
    assert applied(row).state == State.APPLIED


def test_an_approval_that_nobody_could_carry_out_in_time_fails(job: Job, flink: FlinkServer) -> None:
    row = approved(job)
    Proposal.objects.filter(pk=row.pk).update(decided_at=timezone.now() - timedelta(hours=2))
    row = applied(row)
    assert row.state == State.APPLY_FAILED
    assert "waited too long" in row.state_reason
    assert flink.puts == []


def test_breaking_glass_applies_in_spite_of_a_freeze(job: Job, flink: FlinkServer) -> None:
    row, admin = propose(None, job, draft()), member(job, Role.ADMIN)
    governance.freeze(admin, job, "a sale")
    approve(admin, row.pk, expected_version=1, reason="outage", break_glass=True)
    assert applied(row).state == State.APPLIED


def test_two_workers_apply_once(job: Job, flink: FlinkServer) -> None:
    row = approved(job)
    first = execution.claim(row.pk, "one")
    assert first is not None
    assert execution.claim(row.pk, "two") is None
    Attempt.objects.update(lease_until=timezone.now())
    assert execution.claim(row.pk, "two") is not None
    with pytest.raises(execution.LostLeaseError):
        apply._advance(first)
    assert flink.puts == [], "the one that was given up sends nothing"


def test_the_way_back_restores_what_was_asked_for_before(job: Job, flink: FlinkServer) -> None:
    first = applied(approved(job))
    Proposal.objects.filter(pk=first.pk).update(state=State.REGRESSED)
    now = draft().binding
    bound = type(now)(
        now.engine_job_id, flink.job["timestamps"]["RUNNING"],
        tuple(
            type(item)(item.id, item.name, {SPLIT: 5, COUNT: 2}.get(item.id, 1), 128) for item in now.operators
        ),
    )  # fmt: skip
    back = applied(approved(job, binding=bound, change={"parallelism": {SPLIT: 1, COUNT: 1}}, undoes=first))
    first.refresh_from_db()
    assert (back.state, first.state) == (State.APPLIED, State.REVERTED)
    assert flink.puts[1] == recorded("requirements")
    assert set(flink.puts[1]) == {SOURCE, SPLIT, COUNT, SINK}


def test_a_way_back_that_fails_is_said_of_both(job: Job, flink: FlinkServer) -> None:
    first = applied(approved(job))
    Proposal.objects.filter(pk=first.pk).update(state=State.REGRESSED)
    back = applied(approved(job, change={"parallelism": {SPLIT: 2}}, undoes=first))
    first.refresh_from_db()
    assert (back.state, first.state) == (State.APPLY_FAILED, State.REVERT_FAILED)
    assert "split runs with 5 instances now" in first.state_reason


def test_a_dry_run_keeps_what_would_be_sent_and_sends_nothing(job: Job, flink: FlinkServer) -> None:
    ChangePolicy.objects.filter(job=job).update(engine="dry-run")
    row = applied(approved(job))
    assert (row.state, flink.puts) == (State.APPLIED, [])
    assert row.state_reason == "it was a dry run: nothing was sent, and nothing has changed"
    assert not Annotation.objects.filter(job=job).exists(), "charts have no line where nothing happened"
    end = AuditEvent.objects.filter(object_id=row.pk, action="proposal.applied").latest("id")
    assert "nothing was sent" in told.did("applied", end.detail["engine"])
    assert row.attempt.request["body"]["parallelism"] == {SPLIT: 5, COUNT: 2}
