"""What policies recommend becomes a proposal by itself, once, and only where the job's mode says so."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from analytics.model import packed
from analytics.model.decisions import Move
from analytics.model.plain import from_plain
from analytics.model.reconfigurations import Binding
from analytics.scaling.evidence import recompute
from tests.support import fleet, scaling
from tests.support.changes import COUNT, SOURCE, SPLIT, member, person, trail
from webapp.analysis.models import Recommendation, ScalingSetup
from webapp.audit.models import AuditEvent
from webapp.jobs import reports
from webapp.jobs.models import Job, JobGroup, Role
from webapp.reconfigurations import errors
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, Mode, Proposal
from webapp.reconfigurations.proposing import Followed, follow, propose_by_hand, propose_recommended
from webapp.reconfigurations.services import approve, reject

pytestmark = pytest.mark.django_db(transaction=True)

ONE, NONE = Followed(1, 0), Followed(0, 0)


def recommended(mode: Mode | None, target_per_s: float = 900, **rules: object) -> Job:
    """The recorded job that is held at 198 records/s, with DS2's advice for this target."""
    job = scaling.recorded()
    job.group = JobGroup.objects.create(name="team")
    job.save()
    if mode is not None:
        ChangePolicy.objects.create(job=job, mode=mode, **rules)
    advise(job, target_per_s)
    return job


def advise(job: Job, target_per_s: float) -> Recommendation:
    """Ask the policy (again) about the newest rates."""
    setup, _ = ScalingSetup.objects.get_or_create(job=job)
    setup.targets_per_s, setup.seen_ns = {scaling.SOURCE_NAME: target_per_s}, None
    setup.save()
    fleet.advise_here(time.time_ns())
    return Recommendation.objects.get(job=job, superseded_at=None)


def only(job: Job) -> Proposal:
    return Proposal.objects.get(job=job, state=State.PROPOSED)


def test_a_job_nobody_has_set_a_mode_for_is_only_observed() -> None:
    job = recommended(None)
    assert Recommendation.objects.get(job=job).move == Move.RESCALE
    assert follow() == NONE
    assert not Proposal.objects.exists()


def test_a_recommendation_becomes_a_proposal_with_all_that_speaks_for_it() -> None:
    job = recommended(Mode.RECOMMEND, expires_after_s=600)
    assert follow() == ONE
    row = only(job)
    assert row.change == {"parallelism": {SPLIT: 5, COUNT: 2}}
    assert (row.policy, row.proposed_by_name, row.by_hand) == ("ds2", "policy ds2", False)
    assert row.rules["mode"] == Mode.RECOMMEND
    assert (row.expires_at - row.created_at).total_seconds() == pytest.approx(600, abs=1)
    report = reports.newest_report(job)
    assert report is not None
    bound = from_plain(Binding, row.binding)
    assert bound.engine_job_id == report.topology.job_id
    assert bound.running_since_ms == report.topology.running_since_ms
    assert bound.parallelism == {item.id: item.parallelism for item in report.topology.operators}
    assert row.prediction["source_rates_per_s"] == row.prediction["targets_per_s"] == [[SOURCE, 900]]
    assert dict(row.prediction["utilisation"])[SPLIT] == pytest.approx(0.9, abs=0.02)
    assert row.shortfall_per_s == pytest.approx(702, abs=10)
    assert any(sentence.startswith("split: 1 → 5") for sentence in row.evidence["sentences"])
    assert row.evidence["outlook"]["slots"] == [1, 5]
    stored = packed.unpack(row.payload)
    assert recompute(stored["evidence"]) == stored["action"]
    assert trail(row.pk) == [("proposal.propose", "done")]


def test_the_same_advice_is_proposed_once_and_other_advice_supersedes_it() -> None:
    job = recommended(Mode.RECOMMEND)
    assert follow() == ONE
    first = only(job)
    assert follow() == NONE
    assert advise(job, 901).pk == first.recommendation_id, "the same instances: it confirms"
    assert follow() == NONE
    advise(job, 1_500)
    assert follow() == ONE
    second = only(job)
    first.refresh_from_db()
    assert (first.state, second.supersedes_id) == (State.SUPERSEDED, first.pk)
    assert second.change["parallelism"][SPLIT] > 5
    assert not AuditEvent.objects.filter(job_id=job.pk, outcome="refused").exists()


def test_advice_to_change_nothing_withdraws_what_its_policy_proposed_but_not_what_people_did() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    row = only(job)
    assert advise(job, 190).move == Move.KEEP
    assert follow() == Followed(0, 1)
    row.refresh_from_db()
    assert (row.state, row.state_reason) == (State.SUPERSEDED, "ds2 finds nothing to change any more")
    assert trail(row.pk)[-1] == ("proposal.withdraw", "done")
    theirs = propose_by_hand(member(job, Role.OPERATOR), job, {SPLIT: 3})
    assert follow() == NONE
    advise(job, 900)
    assert follow() == NONE, "a person's proposal goes first"
    assert only(job) == theirs


def test_a_policy_that_cannot_decide_withdraws_nothing() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    Recommendation.objects.filter(job=job).update(move=Move.WAIT, changes=[])
    assert follow() == NONE
    Recommendation.objects.filter(job=job).update(move=Move.KEEP, undecided=[[SPLIT, "MISSING_RATES"]])
    assert follow() == NONE
    assert only(job)


def test_what_people_rejected_is_not_proposed_again_until_the_policy_says_something_else() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    reject(member(job, Role.APPROVER), only(job).pk, expected_version=1, reason="not before Christmas")
    assert follow() == NONE
    advise(job, 901)
    assert follow() == NONE
    advise(job, 1_500)
    assert follow() == ONE


def test_what_nobody_decided_is_proposed_anew_with_newer_evidence() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    first = only(job)
    Proposal.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert follow() == ONE
    assert only(job).pk != first.pk


def test_nothing_is_proposed_while_a_change_is_on_its_way_or_not_judged_yet() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    row = only(job)
    approve(member(job, Role.APPROVER), row.pk, expected_version=1)
    advise(job, 1_500)
    for state in (State.APPROVED, State.APPLYING, State.APPLIED):
        Proposal.objects.filter(pk=row.pk).update(state=state)
        assert follow() == NONE
    Proposal.objects.filter(pk=row.pk).update(state=State.VERIFIED)
    assert follow() == ONE


def test_a_failed_attempt_is_not_repeated_as_long_as_nothing_is_otherwise() -> None:
    job = recommended(Mode.RECOMMEND)
    follow()
    row = only(job)
    Proposal.objects.filter(pk=row.pk).update(state=State.APPLY_FAILED)
    assert follow() == NONE
    bound = row.binding | {"running_since_ms": 1}
    Proposal.objects.filter(pk=row.pk).update(binding=bound)
    assert follow() == ONE, "it failed for another run of the job"


def test_advice_about_a_job_that_runs_otherwise_since_is_left_alone() -> None:
    job = recommended(Mode.RECOMMEND)
    newest = scaling.polls(scaling.RUN)[-1]
    restarted = scaling.replace(newest.topology, running_since_ms=5)
    reports.keep_report(job, scaling.replace(newest, at_ns=time.time_ns(), topology=restarted))
    assert follow() == NONE
    with pytest.raises(errors.OutdatedError, match="the job was restarted"):
        propose_recommended(member(job, Role.OPERATOR), job)


def test_an_automatic_job_is_changed_without_asking_within_its_limits() -> None:
    job = recommended(Mode.AUTOMATIC, auto_max_factor=5, auto_max_parallelism=8)
    assert follow() == ONE
    row = Proposal.objects.get(job=job)
    assert (row.state, row.automatic) == (State.APPROVED, True)
    approval = AuditEvent.objects.filter(action="proposal.approve", object_id=row.pk).get()
    assert (approval.actor_id, approval.actor_name) == (None, "policy ds2")


def test_beyond_its_limits_a_person_decides_and_what_waits_is_approved_once_it_is_within_them() -> None:
    job = recommended(Mode.AUTOMATIC, auto_max_factor=2)
    assert follow() == ONE
    row = only(job)
    assert follow() == NONE
    ChangePolicy.objects.update(auto_max_factor=5)
    follow()
    row.refresh_from_db()
    assert (row.state, row.automatic) == (State.APPROVED, True)


def test_a_change_that_made_things_worse_before_is_flagged_and_not_done_without_asking() -> None:
    job = recommended(Mode.AUTOMATIC, auto_max_factor=9)
    follow()
    first = Proposal.objects.get(job=job)
    Proposal.objects.filter(pk=first.pk).update(state=State.REVERTED)
    Recommendation.objects.all().delete()
    advise(job, 900)
    assert follow() == ONE
    assert only(job).risks == [f"proposal {first.pk} asked for the same, and the job did worse"]


def test_one_job_whose_advice_cannot_be_read_holds_up_no_other() -> None:
    job = recommended(Mode.RECOMMEND)
    odd = fleet.store(fleet.measured(7, time.time_ns()))
    ChangePolicy.objects.create(job=odd, mode=Mode.RECOMMEND)
    fleet.advise_here(time.time_ns())
    Recommendation.objects.filter(job=job).update(payload=b"nonsense")
    assert follow() == ONE
    assert only(odd)


def test_a_person_proposes_what_is_recommended_about_a_job_that_is_only_observed() -> None:
    job = recommended(Mode.OBSERVE)
    anna, bob = member(job, Role.OPERATOR), member(job, Role.APPROVER)
    row = propose_recommended(anna, job, "before the sale")
    assert (row.change, row.policy, row.by_hand) == ({"parallelism": {SPLIT: 5, COUNT: 2}}, "ds2", True)
    assert AuditEvent.objects.get(object_id=row.pk, action="proposal.propose").reason == "before the sale"
    with pytest.raises(errors.ObserveOnlyError):
        approve(bob, row.pk, expected_version=1)
    ChangePolicy.objects.update(mode=Mode.RECOMMEND)
    assert approve(bob, row.pk, expected_version=1).state == State.APPROVED


def test_what_a_person_proposes_is_told_with_what_is_to_be_expected_of_it() -> None:
    job = recommended(Mode.RECOMMEND)
    row = propose_by_hand(member(job, Role.OPERATOR), job, {SPLIT: 5}, "count can take more than it says")
    rate = dict(row.prediction["source_rates_per_s"])[SOURCE]
    assert 500 < rate < 800, "count is the next limit"
    assert row.prediction["targets_per_s"] == [[SOURCE, 900]]
    assert (row.policy, row.risks) == ("", [])
    assert row.evidence["reason"] == "count can take more than it says"


def test_what_would_make_things_worse_is_flagged_and_needs_a_reason_to_approve() -> None:
    job = recommended(Mode.RECOMMEND)
    measured = reports.newest_rates(job)
    assert measured is not None
    replace = scaling.replace
    counts = {SPLIT: 2}
    operators = tuple(
        replace(item, parallelism=counts.get(item.id, 1)) for item in measured.topology.operators
    )
    topology = replace(measured.topology, operators=operators)
    rates = tuple(
        replace(item, expected=2, instances=(item.instances[0], replace(item.instances[0], instance=1)))
        if item.operator_id == SPLIT
        else item
        for item in measured.window.operators
    )
    at_ns = time.time_ns()
    window = scaling.replace(measured.window, end_ns=at_ns, operators=rates)
    reports.keep_rates(job, reports.Measured(topology, window))
    reports.keep_report(job, scaling.replace(scaling.polls(scaling.RUN)[-1], at_ns=at_ns, topology=topology))
    row = propose_by_hand(member(job, Role.OPERATOR), job, {SPLIT: 1})
    assert len(row.risks) == 1
    assert row.risks[0].startswith("the job is expected to do 22% of what it should")
    with pytest.raises(errors.ReasonRequiredError):
        approve(member(job, Role.APPROVER), row.pk, expected_version=1)


def test_nothing_can_be_proposed_about_a_job_of_which_nothing_is_known_or_that_is_not_to_be_seen() -> None:
    job = recommended(Mode.RECOMMEND)
    quiet = Job.objects.create(name="quiet", group=job.group)
    anna = member(job, Role.OPERATOR)
    with pytest.raises(errors.InvalidProposalError, match="never asked"):
        propose_by_hand(anna, quiet, {SPLIT: 2})
    with pytest.raises(errors.OutdatedError, match="nothing is recommended"):
        propose_recommended(anna, quiet)
    for who in (person("stranger"),):
        with pytest.raises(errors.NoSuchProposalError):
            propose_by_hand(who, job, {SPLIT: 2})
        with pytest.raises(errors.NoSuchProposalError):
            propose_recommended(who, job)
    with pytest.raises(errors.InvalidProposalError, match="no operator"):
        propose_by_hand(anna, job, {"ffff\0": 2})
    assert AuditEvent.objects.filter(action="proposal.propose", outcome="refused").count() >= 5


def test_nothing_is_proposed_about_a_job_that_another_controller_scales() -> None:
    job = recommended(Mode.RECOMMEND, scaled_by="KEDA")
    assert follow() == NONE
    assert not AuditEvent.objects.filter(job_id=job.pk).exists(), "and nobody is told so every 20 s"
    with pytest.raises(errors.OwnedError, match="KEDA scales this job"):
        propose_by_hand(member(job, Role.OPERATOR), job, {SPLIT: 3})
    ChangePolicy.objects.update(scaled_by="")
    assert follow() == ONE
    ChangePolicy.objects.update(scaled_by="an HPA")
    with pytest.raises(errors.OwnedError):
        approve(member(job, Role.APPROVER), only(job).pk, expected_version=1)
