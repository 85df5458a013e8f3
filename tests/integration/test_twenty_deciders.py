"""Many people and programs at once: exactly one decision, whatever the others are told."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connection

from tests.support.changes import draft, make_job, member, proposal
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Role
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.services import approve, propose, reject

pytestmark = pytest.mark.django_db(transaction=True)


def at_once(acts: list[Callable[[], object]]) -> Counter[str]:
    """Run all at the same moment, each on a connection of its own; how often each came out how."""
    gate, found, lock = threading.Barrier(len(acts)), Counter[str](), threading.Lock()

    def run(act: Callable[[], object]) -> None:
        gate.wait()
        try:
            act()
            outcome = "done"
        except RefusedError as error:
            outcome = error.code
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            outcome = repr(error)
        finally:
            connection.close()
        with lock:
            found[outcome] += 1

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


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
