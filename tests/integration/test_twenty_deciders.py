"""Many people and programs at once: exactly one decision, whatever the others are told."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import connection, transaction
from django.utils import timezone

from analytics.verification.judge import Outcome, Verdict
from tests.support.at_once import at_once
from tests.support.changes import COUNT, draft, make_job, member, proposal
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, ChangePolicy, Proposal, Step, Vote
from webapp.reconfigurations.services import approve, propose, reject
from webapp.reconfigurations.steps import locked
from webapp.reconfigurations.verification import settle_verdict

pytestmark = pytest.mark.django_db(transaction=True)


def test_twenty_deciders_at_once_make_one_decision() -> None:
    job = make_job()
    row, people = proposal(job), [member(job, Role.APPROVER) for _ in range(20)]
    acts = [
        (lambda who=who: approve(who, row.pk, expected_version=1))
        if number % 2
        else (lambda who=who: reject(who, row.pk, expected_version=1, reason="no"))
        for number, who in enumerate(people)
    ]
    assert at_once(acts) == {"done": 1, "already_decided": 19}
    row.refresh_from_db()
    assert row.state in (State.APPROVED, State.REJECTED)
    assert (row.version, row.votes.count()) == (2, 1)
    events = AuditEvent.objects.filter(object_type="proposal", object_id=row.pk).exclude(
        action="proposal.propose"
    )
    assert Counter(events.values_list("outcome", flat=True)) == {"done": 1, "refused": 19}


def test_a_double_click_is_one_vote_and_one_decision() -> None:
    job = make_job(quorum=2)
    row, bob, eve = proposal(job), member(job, Role.APPROVER), member(job, Role.APPROVER)
    clicks = [lambda who=who: approve(who, row.pk, expected_version=1) for who in (bob, bob, bob, eve)]
    found = at_once(clicks)
    assert found["done"] == 2
    assert found["already_voted"] + found["already_decided"] == 2
    row.refresh_from_db()
    assert (row.state, row.votes.count()) == (State.APPROVED, 2)


def test_proposals_made_at_once_leave_one_open() -> None:
    job = make_job()
    acts = [lambda split=split: propose(None, job, draft(split=split)) for split in range(2, 10)]
    assert at_once(acts) == {"done": 8}
    assert Proposal.objects.filter(job=job, state=State.PROPOSED).count() == 1
    assert Proposal.objects.filter(job=job, state=State.SUPERSEDED).count() == 7


def test_a_verdict_and_a_way_back_asked_for_meanwhile_do_not_wait_for_each_other() -> None:
    job = make_job()
    row, olga = proposal(job), member(job, Role.OPERATOR)
    Proposal.objects.filter(pk=row.pk).update(state=State.APPLIED, applied_at=timezone.now())
    Attempt.objects.create(proposal=row, engine="flink", step=Step.FINISHED)
    began, ended = threading.Event(), threading.Event()

    def settle() -> None:
        began.set()
        settle_verdict(row.pk, Verdict(Outcome.REGRESSED, ("it is slower",), ()))
        ended.set()

    with transaction.atomic():
        ChangePolicy.objects.select_for_update().get(job=job)  # as everybody does who proposes
        verdict = threading.Thread(target=lambda: at_once([settle]))
        verdict.start()
        assert began.wait(10)
        assert not ended.wait(0.5), "the verdict waits for the job's rules"
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
        back = propose(olga, job, draft(undoes=row, change={"parallelism": {COUNT: 3}}))
    verdict.join(30)
    row.refresh_from_db()
    assert (ended.is_set(), row.state) == (True, State.REGRESSED)
    offered = Proposal.objects.get(job=job, state=State.PROPOSED)
    assert (offered.undoes_id, offered.supersedes_id) == (row.pk, back.pk)


def test_what_refers_to_a_proposal_does_not_wait_for_who_decides_about_it() -> None:
    row = proposal(make_job())
    bob = member(row.job, Role.APPROVER)

    def refer() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            Vote.objects.create(proposal=row, voter=bob, voter_name="bob", approves=True)

    with transaction.atomic():
        locked(row.pk)
        assert at_once([refer]) == {"done": 1}


def test_approving_while_a_newer_one_supersedes_it_ends_in_one_of_the_two() -> None:
    job = make_job()
    row, bob = proposal(job), member(job, Role.APPROVER)
    newer = lambda: propose(None, job, draft(split=9))  # noqa: E731
    found = at_once([lambda: approve(bob, row.pk, expected_version=1), newer])
    row.refresh_from_db()
    if found["done"] == 2:
        assert row.state == State.APPROVED
    else:
        assert (found["already_decided"], row.state) == (1, State.SUPERSEDED)
