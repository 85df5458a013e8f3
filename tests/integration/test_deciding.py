"""Who may decide what, under which rules, and what everybody else is told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from tests.support.changes import COUNT, SPLIT, binding, draft, make_job, member, person, proposal, trail
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, Membership, Role
from webapp.jobs.policies import jobs_with_role, role_on, visible_jobs
from webapp.jobs.services import ensure_job
from webapp.reconfigurations import errors, execution, governance, selectors
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, Kind, Mode, Proposal
from webapp.reconfigurations.services import approve, expire_due, mark_stale, propose, reject

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    return make_job()


@pytest.fixture
def bob(job: Job) -> User:
    return member(job, Role.APPROVER, "bob")


def state(row: Proposal) -> str:
    return Proposal.objects.get(pk=row.pk).state


def test_a_job_is_only_observed_until_an_admin_says_otherwise() -> None:
    quiet = ensure_job("quiet")
    with pytest.raises(errors.ObserveOnlyError):
        propose(None, quiet, draft())
    admin = person("root", is_superuser=True)
    governance.change_rules(admin, quiet, mode=Mode.RECOMMEND)
    assert propose(None, quiet, draft()).state == State.PROPOSED


def test_an_approver_approves_and_the_audit_record_tells_it(job: Job, bob: User) -> None:
    row = proposal(job)
    decided = approve(bob, row.pk, expected_version=1)
    assert (decided.state, decided.version) == (State.APPROVED, 2)
    assert trail(row.pk) == [("proposal.propose", "done"), ("proposal.approve", "done")]


@pytest.mark.parametrize(
    ("role", "action", "allowed"),
    [
        (role, action, rank >= least)
        for rank, role in enumerate(Role)
        for action, least in (
            ("propose", 1),
            ("approve", 2),
            ("reject", 2),
            ("break_glass", 3),
            ("freeze", 3),
        )
    ],
)
def test_each_role_may_do_what_its_rank_allows(job: Job, role: Role, action: str, allowed: bool) -> None:
    who, row = member(job, role), proposal(job)
    attempts = {
        "propose": lambda: propose(who, job, draft(split=7)),
        "approve": lambda: approve(who, row.pk, expected_version=1),
        "reject": lambda: reject(who, row.pk, expected_version=1, reason="no"),
        "break_glass": lambda: approve(who, row.pk, expected_version=1, reason="outage", break_glass=True),
        "freeze": lambda: governance.freeze(who, job, "holidays"),
    }
    if allowed:
        attempts[action]()
        return
    with pytest.raises(errors.NotAllowedError, match="needs the role"):
        attempts[action]()
    assert state(row) == State.PROPOSED
    refusal = AuditEvent.objects.filter(outcome="refused", actor_id=who.pk).latest("id")
    assert refusal.job_id == job.pk


def test_a_stranger_sees_no_job_of_a_group_and_cannot_tell_whether_a_proposal_exists(job: Job) -> None:
    stranger, row, free = person("stranger"), proposal(job), ensure_job("free for all")
    assert set(visible_jobs(stranger)) >= {free}
    assert job not in set(visible_jobs(stranger))
    for number in (row.pk, 10**9):
        with pytest.raises(errors.NoSuchProposalError, match="no such proposal"):
            approve(stranger, number, expected_version=1)
    assert trail(row.pk)[-1] == ("proposal.approve", "refused")
    assert role_on(stranger, job) is None
    assert role_on(stranger, free) is Role.VIEWER
    with pytest.raises(errors.NoSuchProposalError):
        propose(stranger, job, draft())


def test_a_superuser_is_admin_everywhere_and_a_disabled_account_nowhere(job: Job) -> None:
    root, gone = person("root", is_superuser=True), person("gone", is_superuser=True, is_active=False)
    assert role_on(root, job) is Role.ADMIN
    assert job in jobs_with_role(root, Role.APPROVER)
    assert role_on(gone, job) is None
    with pytest.raises(PermissionDenied):
        visible_jobs(gone)
    with pytest.raises(errors.NoSuchProposalError):
        approve(gone, proposal(job).pk, expected_version=1)


def test_a_rejection_and_a_risky_approval_need_a_reason(job: Job, bob: User) -> None:
    row = proposal(job, risks=("state of 40 GB must move",))
    for blank in ("", "  "):
        with pytest.raises(errors.ReasonRequiredError):
            reject(bob, row.pk, expected_version=1, reason=blank)
        with pytest.raises(errors.ReasonRequiredError, match="40 GB"):
            approve(bob, row.pk, expected_version=1, reason=blank)
    assert approve(bob, row.pk, expected_version=1, reason="at night").state == State.APPROVED


def test_nobody_approves_what_they_proposed_by_hand(job: Job, bob: User) -> None:
    row = proposal(job, bob)
    with pytest.raises(errors.NotAllowedError, match="yourself"):
        approve(bob, row.pk, expected_version=1)
    other = member(job, Role.APPROVER)
    assert approve(other, row.pk, expected_version=1).state == State.APPROVED


def test_two_people_must_agree_where_the_rules_say_so_even_if_they_said_so_later(job: Job, bob: User) -> None:
    row = proposal(job)
    governance.change_rules(member(job, Role.ADMIN), job, quorum=2)
    assert approve(bob, row.pk, expected_version=1).state == State.PROPOSED
    with pytest.raises(errors.AlreadyVotedError):
        approve(bob, row.pk, expected_version=1)
    assert approve(member(job, Role.APPROVER), row.pk, expected_version=1).state == State.APPROVED
    actions = ["proposal.vote", "proposal.approve", "proposal.approve"]
    assert [action for action, _ in trail(row.pk)[1:]] == actions


@pytest.mark.parametrize("everything", [True, False])
def test_a_freeze_stops_approvals_and_no_rejections_until_it_is_lifted(
    job: Job, bob: User, everything: bool
) -> None:
    root, row = person("root", is_superuser=True), proposal(job)
    of = None if everything else job
    governance.freeze(root, of, "the sale is on")
    with pytest.raises(errors.DecidedError):
        governance.freeze(root, of, "again")
    with pytest.raises(errors.FrozenError, match="the sale is on"):
        approve(bob, row.pk, expected_version=1)
    governance.lift_freeze(root, of)
    with pytest.raises(errors.DecidedError):
        governance.lift_freeze(root, of)
    assert approve(bob, row.pk, expected_version=1).state == State.APPROVED


def test_only_a_superuser_freezes_everything(job: Job) -> None:
    with pytest.raises(errors.NotAllowedError):
        governance.freeze(member(job, Role.ADMIN), None, "because")
    assert not AuditEvent.objects.filter(action="freeze", outcome="done", job_id=None, actor_name="admin")


def test_breaking_glass_goes_past_the_rules_and_is_loud(
    job: Job, caplog: pytest.LogCaptureFixture, django_capture_on_commit_callbacks: Any
) -> None:
    admin = member(job, Role.ADMIN)
    governance.change_rules(admin, job, quorum=3)
    row = proposal(job, admin)
    governance.freeze(admin, job, "holidays")
    with pytest.raises(errors.ReasonRequiredError):
        approve(admin, row.pk, expected_version=1, break_glass=True)
    with django_capture_on_commit_callbacks(execute=True):
        done = approve(admin, row.pk, expected_version=1, reason="the pipeline is down", break_glass=True)
    warnings = [item.getMessage() for item in caplog.records if item.levelname == "WARNING"]
    assert any(text.startswith(f"proposal.break_glass proposal={row.pk} ") for text in warnings)
    assert (done.state, done.break_glass) == (State.APPROVED, True)
    event = AuditEvent.objects.get(object_type="proposal", object_id=row.pk, loud=True)
    assert (event.action, event.reason) == ("proposal.break_glass", "the pipeline is down")


def test_breaking_glass_sets_aside_what_was_approved_and_only_waits(job: Job, bob: User) -> None:
    admin, waits = member(job, Role.ADMIN), proposal(job)
    approve(bob, waits.pk, expected_version=1)
    urgent = proposal(job, split=6)
    assert "on its way" in selectors.why_not(bob, urgent), "no button where the service would refuse"
    assert selectors.why_not(admin, urgent, "break_glass") == ""
    assert selectors.why_not(bob, urgent, "reject") == ""
    done = approve(admin, urgent.pk, expected_version=1, reason="outage", break_glass=True)
    assert (done.state, state(waits)) == (State.APPROVED, State.SUPERSEDED)
    assert trail(waits.pk)[-1] == ("proposal.set_aside", "done")
    event = AuditEvent.objects.get(object_type="proposal", object_id=waits.pk, loud=True)
    assert (event.actor_id, event.reason) == (admin.pk, f"the glass was broken for proposal {urgent.pk}")


def test_breaking_glass_leaves_alone_what_a_worker_is_at(job: Job, bob: User) -> None:
    admin, begun = member(job, Role.ADMIN), proposal(job)
    approve(bob, begun.pk, expected_version=1)
    assert execution.claim(begun.pk, "worker") is not None
    urgent = proposal(job, split=6)
    assert "on its way" in selectors.why_not(admin, urgent, "break_glass")
    with pytest.raises(errors.BusyError):
        approve(admin, urgent.pk, expected_version=1, reason="outage", break_glass=True)
    assert (state(begun), state(urgent)) == (State.APPLYING, State.PROPOSED)


@pytest.mark.parametrize("how", ["demoted", "removed", "disabled", "deleted"])
def test_the_vote_of_somebody_who_may_not_approve_any_more_does_not_count(
    job: Job, bob: User, how: str
) -> None:
    governance.change_rules(member(job, Role.ADMIN), job, quorum=2)
    row = proposal(job)
    approve(bob, row.pk, expected_version=1)
    if how == "demoted":
        Membership.objects.filter(user=bob).update(role=Role.OPERATOR)
    elif how == "removed":
        Membership.objects.filter(user=bob).delete()
    elif how == "disabled":
        User.objects.filter(pk=bob.pk).update(is_active=False)
    else:
        bob.delete()
    assert approve(member(job, Role.APPROVER), row.pk, expected_version=1).state == State.PROPOSED
    assert approve(member(job, Role.APPROVER), row.pk, expected_version=1).state == State.APPROVED


def test_a_decided_an_expired_a_superseded_and_a_stale_proposal_cannot_be_decided(
    job: Job, bob: User
) -> None:
    decided, late = proposal(job), proposal(make_job())
    reject(bob, decided.pk, expected_version=1, reason="no")
    with pytest.raises(errors.DecidedError, match="rejected: no"):
        approve(bob, decided.pk, expected_version=1)
    approver = member(late.job, Role.APPROVER)
    Proposal.objects.filter(pk=late.pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(errors.ExpiredError):
        approve(approver, late.pk, expected_version=1)
    assert state(late) == State.EXPIRED, "what was found out is written down"
    first = proposal(job)
    second = proposal(job, split=6)
    assert (state(first), second.supersedes_id) == (State.SUPERSEDED, first.pk)
    with pytest.raises(errors.DecidedError, match="superseded"):
        approve(bob, first.pk, expected_version=1)
    assert not mark_stale(second.pk, binding())
    assert mark_stale(second.pk, binding(split=4))
    with pytest.raises(errors.DecidedError, match="split runs with 4 instances now, not 1"):
        approve(bob, second.pk, expected_version=2)


def test_a_stale_page_is_told_to_look_again(job: Job, bob: User) -> None:
    row = proposal(job)
    Proposal.objects.filter(pk=row.pk).update(version=2)
    with pytest.raises(errors.StaleViewError):
        approve(bob, row.pk, expected_version=1)
    assert state(row) == State.PROPOSED


def test_a_second_change_of_a_job_waits_for_the_first(job: Job, bob: User) -> None:
    first = proposal(job)
    approve(bob, first.pk, expected_version=1)
    second = proposal(job, split=6)
    with pytest.raises(errors.BusyError):
        approve(bob, second.pk, expected_version=1)
    with pytest.raises(IntegrityError, match="one_in_flight"), transaction.atomic():
        Proposal.objects.filter(pk=second.pk).update(state=State.APPROVED)
    with pytest.raises(IntegrityError, match="proposal_state_known"), transaction.atomic():
        Proposal.objects.filter(pk=second.pk).update(state="done")


def test_a_policy_neither_repeats_itself_nor_pushes_a_persons_proposal_aside(job: Job) -> None:
    first = proposal(job)
    assert proposal(job).pk == first.pk
    by_hand = proposal(job, member(job, Role.OPERATOR), split=3)
    assert state(first) == State.SUPERSEDED
    with pytest.raises(errors.BusyError):
        proposal(job)
    assert state(by_hand) == State.PROPOSED


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "names operators"),
        ({"parallelism": {"ffff": 2}}, "no operator ffff"),
        ({"parallelism": {SPLIT: 0}}, "1 to 128"),
        ({"parallelism": {SPLIT: 200}}, "not 200"),
        ({"parallelism": {SPLIT: 2.5}}, "not 2.5"),
        ({"parallelism": {SPLIT: 1, COUNT: 1}}, "change nothing"),
    ],
)
def test_what_makes_no_sense_is_not_proposed(job: Job, change: dict[str, object], why: str) -> None:
    with pytest.raises(errors.InvalidProposalError, match=why):
        propose(None, job, draft(change=change))
    assert not Proposal.objects.filter(job=job).exists()


def test_an_automatic_job_is_changed_within_its_limits_only() -> None:
    job = make_job(Mode.AUTOMATIC, auto_max_factor=5, auto_max_parallelism=5, auto_max_per_day=1)
    assert proposal(job, split=6).state == State.PROPOSED, "6 instances are more than 5"
    assert proposal(job, risks=("large state",)).state == State.PROPOSED
    within = proposal(job)
    assert (within.state, within.automatic) == (State.APPROVED, True)
    Proposal.objects.filter(pk=within.pk).update(state=State.APPLY_FAILED)
    assert proposal(job).state == State.PROPOSED, "one a day is enough"
    by_hand = make_job(Mode.AUTOMATIC, auto_max_factor=9)
    assert proposal(by_hand, member(by_hand, Role.ADMIN)).state == State.PROPOSED


def test_a_sweep_expires_what_nobody_decided(job: Job) -> None:
    row = proposal(job)
    Proposal.objects.filter(pk=row.pk).update(expires_at=timezone.now())
    assert expire_due() == 1
    assert expire_due() == 0
    assert state(row) == State.EXPIRED


def test_rules_are_changed_by_admins_with_both_values_on_record_but_no_secret(job: Job) -> None:
    admin = member(job, Role.ADMIN)
    rules = {"engine": "webhook", "engine_url": "https://hooks.example/x", "webhook_secret": "whsec_c2VjcmV0"}
    governance.change_rules(admin, job, **rules)
    event = AuditEvent.objects.filter(action="rules.change", job_id=job.pk).latest("id")
    assert event.detail["after"]["webhook_secret"] == "set"
    assert "c2VjcmV0" not in str(event.detail)
    assert "webhook_secret" not in proposal(job).rules
    for wrong in ({"mode": "yolo"}, {"settle_s": 10}, {"engine_url": "file:///etc/passwd"}, {"nonsense": 1},
                  {"windows": [{"days": ["someday"]}]}, {"quorum": 0}, {"auto_max_factor": 0.5}):  # fmt: skip
        with pytest.raises((ValidationError, IntegrityError)), transaction.atomic():
            governance.change_rules(admin, job, **wrong)
    with pytest.raises(errors.NotAllowedError):
        governance.change_rules(member(job, Role.APPROVER), job, quorum=1)
    assert ChangePolicy.objects.get(job=job).mode == Mode.RECOMMEND


def test_every_kind_has_the_same_life(job: Job, bob: User) -> None:
    for kind in Kind:
        if kind is Kind.RESCALE:
            continue
        row = propose(None, job, draft(kind=kind, change={"size": 3}))
        assert reject(bob, row.pk, expected_version=1, reason="not now").state == State.REJECTED
