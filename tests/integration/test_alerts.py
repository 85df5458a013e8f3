"""Alerts: told once by whoever evaluates, not flapping, silenced without a loss, and only for whom they concern."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone

from tests.support import alerting
from tests.support.alerting import BAD, GOOD, beside, evaluate, group_of, rule, told, webhook, windows
from tests.support.at_once import at_once
from tests.support.celery_worker import celery_worker, kill, wait_for
from tests.support.changes import make_job, member
from tests.support.mail_server import mail_server
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts.models import Cluster, HeadroomPoint
from webapp.jobs.models import Job, Role
from webapp.notifications import alert_selectors, alert_services, channels, retention
from webapp.notifications.alert_evaluation import evaluate_due
from webapp.notifications.alert_models import Alert, AlertRule, RuleKind, Silence
from webapp.notifications.alert_reading import EVERY, ns
from webapp.notifications.content import Composer
from webapp.notifications.models import DeliveryState, Message, Subscription
from webapp.queue import enqueue
from workers.channels import send_due
from workers.tasks.notify import evaluate_alerts

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, boss = alerting.receiver, alerting.job, alerting.boss


def test_ten_evaluators_tell_once_and_all_subjects_in_one_message(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    other = beside(job)
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    webhook(boss, job, receiver)
    made = rule(boss, group_of(job))
    assert at_once([evaluate_alerts] * 10) == {"done": 10}
    assert told() == [f"FIRING: count is busy ({group_of(job).name}): 2 subjects"]
    assert send_due(5) == 1
    [(_, _, body)] = receiver.got
    said = json.loads(body)["data"]
    assert said["url"] == "https://weir.example/notifications?tab=alerts"
    assert said["severity"] == "critical"
    first = (
        "CP of operator count above 60 % for 3 windows in a row; over at 50 % or less for 2 windows in a row."
    )
    assert said["text"].splitlines()[0] == first
    for one in (job, other):
        assert f"Fires now: {one.name}, since " in said["text"]
    assert {row.worst for row in Alert.objects.filter(rule=made)} == {0.7}


def test_it_fires_after_three_windows_holds_within_the_band_and_ends_after_two(job: Job, boss: User) -> None:
    start = timezone.now() - timedelta(seconds=60)
    made = rule(boss, group_of(job))

    def then(place: int, *shares: float | None) -> list[bool]:
        windows(job, start + timedelta(seconds=place), shares)
        evaluate(start + timedelta(seconds=place + len(shares)))
        return [row.resolved_at is None for row in Alert.objects.order_by("id")]

    assert then(0, 0.7, 0.8) == []
    assert then(2, None) == [], "a window without a result neither fires nor breaks the row"
    assert then(3, 0.65) == [True]
    assert then(4, 0.55, 0.9, 0.55, 0.58, 0.4) == [True], "one good window is too few"
    assert then(9, 0.55, 0.5) == [True], "the row of good ones was broken"
    assert then(11, 0.3) == [False]
    assert then(12, 0.9, 0.9) == [False]
    alert = made.alerts.get()
    assert (alert.worst, alert.last) == (0.9, 0.3)
    evaluate(timezone.now())
    assert made.alerts.count() == 1, "no window counts twice"


def test_pagerduty_gets_a_trigger_and_a_resolve_of_one_key_in_their_order(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver, "pagerduty")
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    receiver.status = 503
    assert send_due(5) == 0
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    assert send_due(5) == 0
    assert len(receiver.got) == 1, "the end waits for the beginning, which waits for the receiver"
    receiver.status = 202
    Message.objects.update(not_before=timezone.now())
    assert send_due(5) == 2
    events = [json.loads(body) for _, _, body in receiver.got[1:]]
    assert [event["event_action"] for event in events] == ["trigger", "resolve"]
    assert {event["dedup_key"] for event in events} == {f"weir-alert-{made.pk}"}
    assert events[0]["payload"]["severity"] == "critical"
    assert events[0]["links"] == [
        {"href": "https://weir.example/notifications?tab=alerts", "text": "Open in Weir"}
    ]


def test_a_silence_hides_but_does_not_lose(job: Job, boss: User, receiver: Receiver) -> None:
    now = timezone.now()
    webhook(boss, job, receiver)
    made = rule(boss, group_of(job))
    operator = member(job, Role.OPERATOR)
    made_silence = alert_services.silence(
        operator, group_of(job), now + timedelta(minutes=10), "a sale", rule=made
    )
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    [alert] = alert_selectors.firing(boss, now)
    assert alert.silenced  # type: ignore[attr-defined]
    assert told() == []
    after = now + timedelta(minutes=10, seconds=1)
    evaluate(after)
    assert told() == [f"FIRING: count is busy ({group_of(job).name}): {job.name}"]
    second = alert_services.silence(operator, group_of(job), timezone.now() + timedelta(hours=2), "again")
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(after)
    assert Alert.objects.get().resolved_at is not None
    assert len(told()) == 1
    alert_services.end_silence(operator, second.pk)
    evaluate(after)
    assert told()[1:] == [f"RESOLVED: count is busy ({group_of(job).name}): {job.name}"]
    trail = AuditEvent.objects.filter(actor_id=operator.pk).order_by("id")
    assert [row.action for row in trail] == ["silence.create", "silence.create", "silence.end"]
    assert (made_silence.by_name, made_silence.reason) == (operator.username, "a sale")


def test_a_silence_of_one_job_says_nothing_of_it_and_all_of_the_others(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now, group = timezone.now(), group_of(job)
    other = beside(job)
    webhook(boss, job, receiver)
    rule(boss, group)
    operator, hour = member(job, Role.OPERATOR), now + timedelta(hours=1)
    quiet = alert_services.silence(operator, group, hour, "new disks", job=job)
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    evaluate(now)
    seen = {row.subject_name: row.silenced for row in alert_selectors.firing(boss, now)}  # type: ignore[attr-defined]
    assert seen == {job.name: True, other.name: False}
    alert_services.end_silence(operator, quiet.pk)
    evaluate(now)
    again = alert_services.silence(operator, group, hour, "more disks", AlertRule.objects.get(), job)
    windows(other, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    windows(job, now - timedelta(seconds=20), GOOD)
    evaluate(now)
    alert_services.end_silence(operator, again.pk)
    evaluate(now)
    about = f"count is busy ({group.name})"
    assert told() == [
        f"FIRING: {about}: {other.name}", f"FIRING: {about}: {job.name}", f"PARTLY OVER: {about}: {other.name}",
        f"RESOLVED: {about}: {job.name}",
    ]  # fmt: skip
    first, second, third, last = (row.content for row in Message.objects.order_by("id"))
    assert job.name not in first["text"], "what is silenced is not mentioned"
    assert f"Fires still: {other.name}, since" in second["text"]
    assert third["text"].splitlines()[-1] == f"Silenced after it had fired: {job.name}"
    assert [row["action"] for row in (third, last)] == ["trigger", "resolve"], "people believed that it fires"
    trail = AuditEvent.objects.filter(actor_id=operator.pk).order_by("id")
    assert list(trail.values_list("action", "job_id", "job_name", "detail__rule")) == [
        ("silence.create", job.pk, job.name, None), ("silence.end", job.pk, job.name, None),
        ("silence.create", job.pk, job.name, "count is busy"), ("silence.end", job.pk, job.name, "count is busy"),
    ]  # fmt: skip


def test_a_silence_of_a_job_for_one_rule_leaves_its_other_rules_and_what_no_job_owns(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now, group = timezone.now(), group_of(job)
    webhook(boss, job, receiver)
    quiet = rule(boss, group, name="quiet")
    rule(boss, group, name="loud")
    cluster = Cluster.objects.create(name="nodes", group=group)
    HeadroomPoint.objects.create(
        cluster=cluster, at_ns=ns(now) - 1, version="1", rates=[1.0], ratio=0.1, joint=1.0, single=1.0
    )
    room = rule(boss, group, name="room", kind=RuleKind.HEADROOM, threshold=0.2, clear=0.2, fire_after=1)
    alert_services.silence(boss, group, now + timedelta(hours=1), "new disks", quiet, job)
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    assert told() == [f"FIRING: loud ({group.name}): {job.name}", f"FIRING: room ({group.name}): nodes"]
    alert_services.silence(boss, group, now + timedelta(hours=1), "new disks", job=job)
    seen = {row.rule.name: row.silenced for row in alert_selectors.firing(boss, now)}  # type: ignore[attr-defined]
    assert seen == {"quiet": True, "loud": True, "room": False}
    stranger, until = make_job(), now + timedelta(hours=1)
    of_another = rule(boss, group, name="of another", job_id=job.pk)
    second = make_job()
    Job.objects.filter(pk=second.pk).update(group=group)
    second.refresh_from_db()
    for named, about, why in (
        (None, stranger, "the group has no such job"), (room, job, "the rule watches clusters, not jobs"),
        (of_another, second, "the rule watches another job"),
    ):  # fmt: skip
        with pytest.raises(ValidationError) as refused:
            alert_services.silence(boss, group, until, "x", named, about)
        assert refused.value.message_dict == {"job": [why]}
    assert Silence.objects.count() == 2
    Job.objects.filter(pk=job.pk).delete()
    assert not Silence.objects.exists()
    evaluate(now)
    assert told()[2:] == [f"RESOLVED: loud ({group.name}): {job.name}"], "a removed job's alerts are over"


def test_what_begins_and_ends_in_silence_is_in_the_history_and_told_to_nobody(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver)
    rule(boss, group_of(job))
    alert_services.silence(boss, group_of(job), now + timedelta(hours=1), "a sale")
    windows(job, now - timedelta(seconds=30), [*BAD, *GOOD])
    evaluate(now)
    Silence.objects.update(ended_at=now)
    evaluate(now + EVERY)
    assert told() == []
    assert alert_selectors.alerts(boss).get().resolved_at is not None


def test_an_evaluator_that_dies_before_the_end_leaves_neither_state_nor_message_and_the_next_has_both(
    job: Job, boss: User, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver)
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)

    class DiesError(BaseException):
        """What a kill looks like to the database: the transaction is never committed."""

    kept = channels.post

    def dies(*args: Any, **more: Any) -> Message:
        kept(*args, **more)
        raise DiesError

    monkeypatch.setattr(channels, "post", dies)
    AlertRule.objects.update(due_at=now)
    with pytest.raises(DiesError):
        evaluate_due(now)
    assert (Alert.objects.count(), Message.objects.count()) == (0, 0)
    monkeypatch.setattr(channels, "post", kept)
    assert evaluate_due(now) == 1
    assert (Alert.objects.count(), len(told())) == (1, 1)
    # Stored, and the sender dies with it in its hands: another sends it once the lease is over.
    assert len(channels.claim("dead", timezone.now(), 10)) == 1
    assert send_due(5) == 0
    Message.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert send_due(5) == 1
    assert len(receiver.got) == 1


def test_mails_go_to_the_addresses_of_the_channel_or_to_all_members(
    job: Job, boss: User, settings: Any
) -> None:
    now, settings.WEIR_PUBLIC_URL = timezone.now(), "https://weir.example"
    for who, address in ((boss, "boss@example.org"), (member(job, Role.VIEWER), "eve@example.org")):
        User.objects.filter(pk=who.pk).update(email=address)
    listed = "a@example.org; b@example.org"
    channels.create_channel(boss, group_of(job), kind="smtp", name="list", address=listed)
    channels.create_channel(boss, group_of(job), kind="smtp", name="all")
    with pytest.raises(ValidationError, match="no mail address"):
        channels.create_channel(boss, group_of(job), kind="smtp", name="bad", address="a@b@c")
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    with mail_server() as inbox:
        settings.WEIR_SMTP_URL = inbox.url
        inbox.answer = "451 busy"
        assert send_due(5) == 0
        inbox.answer = "250 OK"
        Message.objects.update(not_before=timezone.now())
        inbox.refused = {"b@example.org": "550 no\0such box"}
        assert send_due(5) == 2
        windows(job, now - timedelta(seconds=20), GOOD)
        evaluate(now)
        assert send_due(5) == 2
    # channels are tried side by side: the two mails of a round arrive in any order
    firing, ended = (sorted(inbox.mails[at : at + 2], key=lambda mail: mail.recipients) for at in (0, 2))
    (first, second), (third, _) = firing, ended
    assert first.recipients == ["a@example.org"]
    assert second.recipients == ["boss@example.org", "eve@example.org"]
    mail = message_from_bytes(second.content)
    assert mail["Subject"] == f"Weir: FIRING: count is busy ({group_of(job).name}): {job.name}"
    text = mail.get_payload(decode=True).decode()  # type: ignore[union-attr]
    assert "https://weir.example/notifications?tab=alerts" in text
    assert f"Fires now: {job.name}" in text
    over = message_from_bytes(third.content)
    assert over["Subject"].startswith("Weir: RESOLVED")
    assert over["References"] == mail["References"], "mail programs show both in one thread"
    assert over["Message-ID"] != mail["Message-ID"]
    log = Message.objects.filter(channel__name="list").order_by("id")[0]
    assert log.state == DeliveryState.SENT
    assert log.answer.startswith("taken for 1 of 2 addresses; b@example.org: the mail server answered 550")
    assert made.alerts.count() == 1


def test_without_a_mail_server_the_log_keeps_the_message(job: Job, boss: User, settings: Any) -> None:
    settings.WEIR_SMTP_URL = ""
    channel = channels.create_channel(boss, group_of(job), kind="smtp", name="m", address="a@example.org")
    message = channels.test_channel(boss, channel.pk)
    send_due(5)
    message.refresh_from_db()
    assert message.state == DeliveryState.SKIPPED
    assert "No mail server is set" in message.answer


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": ""}, "name"), ({"kind": "x"}, "kind"), ({"threshold": float("nan")}, "threshold"),
        ({"clear": 0.7}, "clear"), ({"fire_after": 0}, "fire_after"), ({"severity": "loud"}, "severity"),
        ({"target": ""}, "target"), ({"job_id": 10**9}, "job"), ({"threshold": 1.2, "clear": 1.0}, "threshold"),
        ({"kind": RuleKind.ACTIVITY_CP, "target": "dancing"}, "target"),
    ],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused_with_a_line(
    job: Job, boss: User, values: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        rule(boss, group_of(job), **values)
    assert field in refused.value.message_dict
    assert not AlertRule.objects.exists()


def test_digests_tell_of_alerts_to_members_only(job: Job, boss: User) -> None:
    now = timezone.now()
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    Job.objects.filter(pk=job.pk).update(last_received_at=now)
    stranger = member(make_job(), Role.ADMIN)
    for who, expected in ((boss, ["1 alert fires"]), (stranger, [])):
        row = Subscription(person=who, rhythm="daily", zone="Europe/Berlin")
        digest = Composer().digest(row, now - timedelta(days=1), now)
        alerts = [section for section in digest.sections if section.heading == "Alerts"]
        assert [section.told for section in alerts] == expected
    [item] = next(
        s for s in Composer().digest(
            Subscription(person=boss, rhythm="daily"), now - timedelta(days=1), now
        ).sections if s.heading == "Alerts"
    ).items  # fmt: skip
    assert item.title == f"count is busy: {job.name}"
    assert item.lines[0].endswith("now 70 %.")


def test_old_alerts_silences_and_messages_are_forgotten_and_what_fires_stays(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver)
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), [*BAD, *GOOD, *BAD])
    alert_services.silence(boss, group_of(job), now + timedelta(minutes=1), "x")
    evaluate(now)
    evaluate(now + timedelta(minutes=2))
    assert send_due(5) == 1
    gone = retention.forget(now, timezone.now() + timedelta(hours=1))
    assert (gone["old alerts"], gone["old silences"], gone["old messages"]) == (1, 1, 1)
    assert [row.resolved_at for row in Alert.objects.all()] == [None]


def test_a_message_of_a_sender_that_is_killed_arrives_by_another(
    job: Job, boss: User, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 while the mail is at the server, which has not taken it yet."""
    now, log = timezone.now(), tmp_path / "worker.log"
    log.touch()
    channels.create_channel(boss, group_of(job), kind="smtp", name="m", address="a@example.org")
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    with mail_server() as inbox:
        settings.WEIR_SMTP_URL, inbox.hold = inbox.url, threading.Event()
        monkeypatch.setenv("WEIR_SMTP_URL", inbox.url)
        monkeypatch.setenv("WEIR_SECRET_KEY", settings.SECRET_KEY)
        evaluate(now)
        with celery_worker("default", tmp_path, log) as worker:
            enqueue("workers.tasks.notify.send_messages", queue="default")
            wait_for("the mail", inbox.at_data.is_set, log)
            assert Message.objects.get().state == DeliveryState.SENDING
            kill(worker)
        inbox.hold.set()
        inbox.hold = None
        assert send_due(5) == 0, "the lease still holds"
        Message.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        assert send_due(5) == 1
        last = message_from_bytes(inbox.mails[-1].content)
    assert last["Subject"].startswith("Weir: FIRING: count is busy")
    message = Message.objects.get()
    assert (message.state, message.attempts) == (DeliveryState.SENT, 2)
