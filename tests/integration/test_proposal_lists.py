"""What pages show about proposals, and to whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from analytics.model.topology import JobPoll, Operator, Topology
from frontend.components.proposals import told
from frontend.pages import calibration
from tests.support.changes import SPLIT, binding, make_job, member, person, proposal
from webapp.jobs import reports
from webapp.jobs.models import Membership, Role
from webapp.reconfigurations import governance, selectors
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.services import approve

pytestmark = pytest.mark.django_db


def test_the_inbox_has_what_waits_for_this_person_and_what_costs_most_first() -> None:
    jobs = [make_job(quorum=2) for _ in range(4)]
    bob, viewer = member(jobs[0], Role.APPROVER), member(jobs[0], Role.VIEWER)
    for job in jobs[1:]:
        Membership.objects.create(user=bob, group=job.group, role=Role.APPROVER)
    cheap, dear = proposal(jobs[0], shortfall_per_s=5.0), proposal(jobs[1], shortfall_per_s=700.0)
    by_bob, voted = proposal(jobs[2], bob), proposal(jobs[3])
    assert list(selectors.inbox(bob)) == [dear, cheap, voted]
    approve(bob, voted.pk, expected_version=1)
    assert list(selectors.inbox(bob)) == [dear, cheap]
    assert by_bob in selectors.proposals(bob, jobs[2], [State.PROPOSED])
    assert list(selectors.inbox(viewer)) == []


def test_a_stranger_finds_no_proposal_and_a_viewer_reads_why_the_buttons_are_grey() -> None:
    job = make_job()
    row, stranger, viewer = proposal(job), person("stranger"), member(job, Role.VIEWER)
    assert selectors.proposal(stranger, row.pk) is None
    assert list(selectors.proposals(stranger, job)) == []
    assert selectors.proposal(viewer, row.pk) == row
    assert "needs the role approver" in selectors.why_not(viewer, row)
    bob = member(job, Role.APPROVER)
    assert selectors.why_not(bob, row) == ""
    governance.freeze(member(job, Role.ADMIN), job, "a sale")
    assert "a sale" in selectors.why_not(bob, row)
    assert selectors.why_not(bob, row, "reject") == ""
    row.state = State.EXPIRED
    assert "expired" in selectors.why_not(bob, row, "reject")


def test_a_proposal_by_hand_is_bound_to_what_the_engine_said_last() -> None:
    job = make_job()
    assert selectors.current_binding(job) is None
    operators = tuple(Operator(item.id, item.name, item.parallelism, 128) for item in binding().operators)
    topology = Topology(binding().engine_job_id, "job", "RUNNING", None, operators, ())
    poll = JobPoll(int(timezone.now().timestamp()) * 10**9, topology, ())
    reports.keep_report(job, poll)
    assert selectors.current_binding(job) == replace(binding(), running_since_ms=None)


def test_calibration_lists_what_was_predicted_beside_what_came() -> None:
    job = make_job()
    finding = {"what": "utilisation", "operator_id": SPLIT, "predicted": 0.9, "before": 1.0, "after": 0.92,
               "agrees": True, "says": ""}  # fmt: skip
    row = proposal(job)
    Proposal.objects.filter(pk=row.pk).update(
        state=State.VERIFIED,
        applied_at=timezone.now(),
        verdict={"outcome": "verified", "findings": [finding]},
    )
    (point,) = selectors.calibration(member(job, Role.VIEWER))
    assert (point.policy, point.predicted, point.after, point.agrees) == ("ds2", 0.9, 0.92, True)
    assert selectors.calibration(member(job, Role.VIEWER), "dhalion") == []
    assert selectors.calibration(person("stranger")) == []


def test_calibration_takes_the_newest_and_its_page_says_when_there_are_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job, now = make_job(), timezone.now()
    finding = {"what": "utilisation", "operator_id": SPLIT, "predicted": 0.9, "before": 1.0, "after": 0.92,
               "agrees": True, "says": ""}  # fmt: skip
    rows = [proposal(job, split=split) for split in (2, 3, 4)]
    for age, row in enumerate(reversed(rows)):
        Proposal.objects.filter(pk=row.pk).update(
            state=State.VERIFIED, applied_at=now - timedelta(hours=age), verdict={"findings": [finding]}
        )
    Proposal.objects.filter(pk=proposal(job, split=5).pk).update(
        state=State.INCONCLUSIVE, applied_at=now, verdict={"findings": []}
    )
    viewer = member(job, Role.VIEWER)
    assert calibration._limit(selectors.calibration(viewer)) == ""
    monkeypatch.setattr(selectors, "MOST_JUDGED", 2)
    points = selectors.calibration(viewer)
    assert [point.proposal_id for point in points] == [rows[1].pk, rows[2].pk]
    assert calibration._limit(points) == " Only the newest 2 changes are counted."


def test_lists_leave_what_is_heavy_in_the_database(django_assert_num_queries: Any) -> None:
    job = make_job()
    proposal(job)
    bob = member(job, Role.APPROVER)
    for rows in (selectors.listed(bob, job), selectors.inbox(bob).filter(job=job)):
        (row,) = rows
        assert {"payload", "evidence", "verdict"} <= row.get_deferred_fields()
        assert "attempt" not in row._state.fields_cache
        with django_assert_num_queries(0):
            described(row), told.sentence(row, timezone.now())
