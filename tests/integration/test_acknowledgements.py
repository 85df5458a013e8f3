"""Acknowledgements: who looks after what fires, whether PagerDuty knows, and that it can be taken back."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.utils import timezone

from tests.support import alerting
from tests.support.alerting import BAD, GOOD, beside, evaluate, group_of, rule, told, webhook, windows
from tests.support.callbacks import call, signed_in
from tests.support.changes import make_job, member
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, Role
from webapp.notifications import alert_services
from webapp.notifications.alert_models import Alert
from webapp.notifications.models import DeliveryState, Message
from workers.channels import send_due

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, boss = alerting.receiver, alerting.job, alerting.boss


def test_pagerduty_hears_once_that_somebody_looks_after_all_that_fires_and_others_hear_nothing_of_it(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now, group = timezone.now(), group_of(job)
    other = beside(job)
    webhook(boss, job, receiver)
    webhook(boss, job, receiver, "pagerduty")
    rule(boss, group)
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    evaluate(now)
    assert send_due(5) == 2
    first, second = Alert.objects.order_by("pk")
    alert_services.acknowledge(boss, first.pk)
    assert send_due(5) == 0, "nobody looks after the other yet"
    for _ in range(2):
        alert_services.acknowledge(boss, second.pk)
    receiver.status = 503
    assert send_due(5) == 0
    receiver.status = 202
    Message.objects.update(not_before=timezone.now())
    assert send_due(5) == 1
    evaluate(now)
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    windows(other, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    assert send_due(5) == 4
    events = [json.loads(body) for path, _, body in receiver.got if path == "/pagerduty"]
    kinds = [event["event_action"] for event in events]
    assert kinds == ["trigger", "acknowledge", "acknowledge", "trigger", "resolve"], (
        "the second is the first again"
    )
    assert events[1] == events[2] == {
        "routing_key": "R0UT1NGKEY", "event_action": "acknowledge", "dedup_key": events[0]["dedup_key"],
    }  # fmt: skip
    heard = [
        json.loads(body)["data"]["title"].split(":")[0]
        for path, _, body in receiver.got
        if path == "/webhook"
    ]
    assert heard == ["FIRING", "PARTLY OVER", "RESOLVED"]
    [log] = Message.objects.filter(content__action="acknowledge")
    assert (log.state, log.status, log.attempts) == (DeliveryState.SENT, 202, 2)
    assert log.content["title"] == f"ACKNOWLEDGED: count is busy ({group.name}): 2 subjects"


def test_an_acknowledgement_in_silence_reaches_pagerduty_after_what_it_is_about(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now, group = timezone.now(), group_of(job)
    other = beside(job)
    webhook(boss, job, receiver, "pagerduty")
    rule(boss, group)
    quiet = alert_services.silence(boss, group, now + timedelta(hours=1), "new disks", job=job)
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert_services.acknowledge(boss, Alert.objects.get().pk)
    assert told() == [], "there is no incident yet that somebody could look after"
    alert_services.end_silence(boss, quiet.pk)
    evaluate(now)
    windows(other, now - timedelta(seconds=30), BAD)
    evaluate(now)
    windows(other, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    seen = [row.content["action"] for row in Message.objects.order_by("id")]
    assert seen == ["trigger", "acknowledge", "trigger", "trigger", "acknowledge"]
    assert told()[1::3] == [f"ACKNOWLEDGED: count is busy ({group.name}): {job.name}"] * 2
    assert told()[3].startswith("PARTLY OVER"), "what is left is looked after again"
    alert = Alert.objects.get(job=job)
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    Alert.objects.filter(pk=alert.pk).update(acknowledged_at=None)
    alert_services.acknowledge(boss, alert.pk)
    assert told()[5:] == [f"RESOLVED: count is busy ({group.name}): {job.name}"], "what is over stays over"


def actions() -> list[str]:
    return [row.content["action"] for row in Message.objects.order_by("id")]


def test_what_is_taken_back_wakes_people_anew(job: Job, boss: User, receiver: Receiver) -> None:
    receiver.status = 202
    now, other = timezone.now(), beside(job)
    webhook(boss, job, receiver, "pagerduty")
    rule(boss, group_of(job))
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    evaluate(now)
    first, second = Alert.objects.order_by("pk")
    alert_services.acknowledge(boss, first.pk)
    colleague = member(job, Role.OPERATOR)
    alert_services.take_back(colleague, first.pk)
    assert actions() == ["trigger"], "PagerDuty has heard of nobody yet"
    for alert in (first, second):
        alert_services.acknowledge(boss, alert.pk)
    for _ in range(2):
        alert_services.take_back(colleague, second.pk)
    assert actions() == ["trigger", "acknowledge", "resolve", "trigger"]
    second.refresh_from_db()
    assert (second.acknowledged_at, second.acknowledged_by_name) == (None, "")
    said = Message.objects.order_by("-id")[0].content
    assert said["title"] == f"FIRING: count is busy ({group_of(job).name}): 2 subjects"
    assert f"{colleague.get_username()} took back that somebody looks after {other.name}." in said["text"]
    alert_services.acknowledge(colleague, second.pk)
    assert send_due(5) == 5
    events = [json.loads(body) for _, _, body in receiver.got]
    kinds = [event["event_action"] for event in events]
    assert kinds == ["trigger", "acknowledge", "resolve", "trigger", "acknowledge"]
    assert len({event["dedup_key"] for event in events}) == 1
    trail = AuditEvent.objects.filter(action="alert.take_back", object_id=second.pk)
    assert list(trail.values_list("actor_id", "outcome")) == [(colleague.pk, "done")]


def test_in_silence_nothing_is_taken_back_since_nobody_would_hear(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver, "pagerduty")
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert = Alert.objects.get()
    alert_services.acknowledge(boss, alert.pk)
    quiet = alert_services.silence(boss, group_of(job), now + timedelta(hours=1), "new disks")
    with pytest.raises(ValidationError, match="end the silence first"):
        alert_services.take_back(boss, alert.pk)
    alert.refresh_from_db()
    assert alert.acknowledged_at is not None
    alert_services.end_silence(boss, quiet.pk)
    alert_services.take_back(boss, alert.pk)
    assert actions() == ["trigger", "acknowledge", "resolve", "trigger"]
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    alert.refresh_from_db()
    Alert.objects.filter(pk=alert.pk).update(acknowledged_at=now, acknowledged_by_name="boss")
    alert_services.take_back(boss, alert.pk)
    alert.refresh_from_db()
    assert alert.acknowledged_by_name == "boss", "what is over keeps who looked after it"
    assert actions()[4:] == ["resolve"]


def test_only_operators_take_back_and_a_forged_click_of_others_does_nothing(job: Job, boss: User) -> None:
    now = timezone.now()
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert = Alert.objects.get()
    alert_services.acknowledge(boss, alert.pk)
    for who in (member(job, Role.VIEWER), member(make_job(), Role.ADMIN)):
        with pytest.raises(PermissionDenied):
            alert_services.take_back(who, alert.pk)
        assert AuditEvent.objects.filter(
            actor_id=who.pk, action="alert.take_back", outcome="refused"
        ).exists()
        data = {"alert-do.data": {"do": "take back", "id": alert.pk, "sent": 1}, "url.search": ""}
        assert call(signed_in(who), "alert-do.data", data).status_code == 200
    alert.refresh_from_db()
    assert alert.acknowledged_by_name == boss.get_username()
