"""Replays are asked for once, computed by the worker's own function, and anew when what they rest on changed."""

from __future__ import annotations

import time
from datetime import timedelta
from itertools import pairwise

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from analytics.scaling.replay import AS_IT_WAS
from tests.support import scaling
from webapp.accounts.models import User
from webapp.analysis import outlook, policy_lab
from webapp.analysis.models import Replay, ScalingSetup, TimelineState
from webapp.analysis.policy_lab import LabRange
from webapp.jobs import reports
from webapp.jobs.models import JobGroup
from webapp.jobs.services import ensure_job
from workers.tasks import policy_lab as tasks

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hour() -> LabRange:
    """The last hour and some, and room for what comes."""
    now_ns = time.time_ns()
    return LabRange(now_ns - 3_700 * scaling.SECOND_NS, now_ns + 600 * scaling.SECOND_NS, "1h")


def test_every_policy_is_tried_on_what_the_job_lived_through(hour: LabRange) -> None:
    job = scaling.doubled()
    row = policy_lab.ask_history(job, hour, 30.0)
    assert row is not None
    assert (row.state, policy_lab.lab_of(row)) == (TimelineState.QUEUED, None)
    tasks.compute(row.key)
    row = policy_lab.ask_history(job, hour, 30.0)
    assert row is not None
    assert row.state == TimelineState.READY
    found = policy_lab.lab_of(row)
    assert found is not None
    lanes = {lane.policy: lane for lane in found.lanes}
    assert list(lanes) == [AS_IT_WAS, "ds2", "flink-autoscaler", "dhalion"]
    assert (found.interval_count, found.interval_s) == (60, 60.0)
    assert lanes[AS_IT_WAS].missed == ((1800.0, 3600.0),)
    assert dict(lanes["ds2"].final) == {"split": 4, "count": 4}
    assert len(lanes["ds2"].steps) == 1
    assert lanes["ds2"].under_target_s == 90.0, "one minute until it is seen, and the restart"
    assert len(lanes["dhalion"].steps) == 2
    assert lanes["dhalion"].under_target_s > lanes["ds2"].under_target_s


def test_windows_that_overlap_are_not_lived_through_twice(hour: LabRange) -> None:
    job = scaling.doubled(minutes=10)
    newest = reports.newest_rates(job)
    assert newest is not None
    half = [
        scaling.minute(newest.window.start_ns - k * scaling.MINUTE_NS - 30 * scaling.SECOND_NS, 40.0)
        for k in range(9)
    ]
    scaling.keep(job, half)
    chosen = policy_lab.history(job, hour.from_ns, hour.to_ns)
    assert len(chosen) == 10
    assert all(one.window.end_ns <= other.window.start_ns for one, other in pairwise(chosen))


def test_a_job_with_very_many_instances_is_replayed_over_its_newest_windows(
    monkeypatch: pytest.MonkeyPatch, hour: LabRange
) -> None:
    job = scaling.doubled(minutes=12)
    monkeypatch.setattr(policy_lab, "MOST_INSTANCE_WINDOWS", 40)
    chosen = policy_lab.history(job, hour.from_ns, hour.to_ns)
    newest = reports.newest_rates(job)
    assert (len(chosen), chosen[-1]) == (8, newest), "eight windows of five instances"


def test_a_replay_stands_until_newer_rates_or_another_setup_and_is_not_asked_twice(hour: LabRange) -> None:
    job = scaling.doubled(minutes=6)
    row = policy_lab.ask_history(job, hour, 0.0)
    assert row is not None
    again = policy_lab.ask_history(job, hour, 0.0)
    assert again is not None
    assert again.requested_at == row.requested_at
    tasks.compute(row.key)
    ScalingSetup.objects.create(job=job, targets_per_s={"events": 200.0})
    changed = policy_lab.ask_history(job, hour, 0.0)
    assert changed is not None
    assert changed.state == TimelineState.QUEUED
    assert policy_lab.lab_of(changed) is not None, "the answer of before is shown meanwhile"
    tasks.compute(row.key)
    newest = reports.newest_rates(job)
    assert newest is not None
    scaling.keep(job, [scaling.minute(newest.window.end_ns, 40.0)])
    soon = policy_lab.ask_history(job, hour, 0.0)
    assert soon is not None
    assert soon.state == TimelineState.READY, "not at once for every new window"
    Replay.objects.update(requested_at=timezone.now() - policy_lab.REFRESH - timedelta(seconds=1))
    later = policy_lab.ask_history(job, hour, 0.0)
    assert later is not None
    assert later.state == TimelineState.QUEUED


def test_a_source_that_was_held_back_needs_a_target_before_anything_can_be_replayed(hour: LabRange) -> None:
    job = scaling.recorded()
    row = policy_lab.ask_history(job, hour, 0.0)
    assert row is not None
    tasks.compute(row.key)
    row.refresh_from_db()
    found = policy_lab.lab_of(row)
    assert found is not None
    assert [lane.policy for lane in found.lanes] == [AS_IT_WAS]
    assert [(item.code, item.example) for item in found.diagnostics] == [
        ("never_measured", scaling.SOURCE_NAME)
    ]
    ScalingSetup.objects.create(job=job, targets_per_s={scaling.SOURCE_NAME: 1000.0})
    policy_lab.ask_history(job, hour, 0.0)
    tasks.compute(row.key)
    row.refresh_from_db()
    found = policy_lab.lab_of(row)
    assert found is not None
    ds2 = next(lane for lane in found.lanes if lane.policy == "ds2")
    assert sorted(count for _, count in ds2.final) == [1, 2, 6]


def test_a_failed_replay_says_why_and_is_tried_again_when_asked_to() -> None:
    row = policy_lab.ask_published("heron", 0)
    Replay.objects.update(params={"model": "gone", "start": 0})
    with pytest.raises(KeyError):
        tasks.compute(row.key)
    row.refresh_from_db()
    assert (row.state, row.error) == (TimelineState.FAILED, "KeyError: 'gone'")
    policy_lab.retry(row.key)
    row.refresh_from_db()
    assert (row.state, row.error) == (TimelineState.QUEUED, "")


def test_the_published_dataflows_end_as_published() -> None:
    row = policy_lab.ask_published("heron", 0)
    tasks.compute(row.key)
    row.refresh_from_db()
    found = policy_lab.lab_of(row)
    assert found is not None
    ends = {lane.policy: (len(lane.steps), dict(lane.final)) for lane in found.lanes}
    assert ends["ds2"] == (1, {"flatmap": 10, "count": 20})
    assert ends["dhalion"][0] >= 6
    table = policy_lab.ask_nexmark()
    tasks.compute(table.key)
    table.refresh_from_db()
    rows = policy_lab.table_of(table)
    assert rows is not None
    assert len(rows) == 36
    assert all(len(item.found) <= 3 and item.found[-1] == item.published[-1] for item in rows)
    assert sum(item.found != item.published for item in rows) == 2, "Q5 from 20 and from 24"


def test_only_jobs_that_a_person_may_see_and_that_have_rates_can_be_chosen() -> None:
    job, hidden = scaling.doubled("open", 2), scaling.doubled("hidden", 2)
    ensure_job("silent")
    hidden.group = JobGroup.objects.create(name="theirs")
    hidden.save()
    alice = User.objects.create_user("alice")
    assert policy_lab.jobs_with_history(alice) == ([job], 1)
    with pytest.raises(PermissionDenied):
        policy_lab.jobs_with_history(AnonymousUser())


def test_what_to_expect_does_not_depend_on_the_reserves_of_a_policy(hour: LabRange) -> None:
    job = scaling.doubled(minutes=2)
    seen = policy_lab._seen(policy_lab.history(job, hour.from_ns, hour.to_ns)[-1], {})
    found = outlook.outlook(job, seen, {"split": 6, "count": 6})
    assert found.before.achieved_ratio == pytest.approx(50 / 90)
    assert dict(found.after.utilisation) == pytest.approx({"split": 0.6, "count": 0.6})
    assert (found.target_per_s, found.delivered_per_s) == (90.0, 50.0)
    assert (found.instances, found.slots) == ((5, 13), (2, 6))
    assert outlook.headroom(found.before) == 0.0
    assert outlook.headroom(found.after) == pytest.approx(1 / 0.6 - 1)
    assert found.lag_records == 2400.0
    assert found.catch_up_s == pytest.approx(2400 / (90 * (1 / 0.6 - 1)))
    assert found.restart_ns is None
