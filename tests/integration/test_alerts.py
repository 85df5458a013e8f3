"""Alerts: told once by whoever evaluates, not flapping, silenced without a loss, and only for whom they concern."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from email import message_from_bytes
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection, transaction
from django.utils import timezone

from analytics.model.topology import Topology
from tests.support.alerting import cp_draft, rule, windows
from tests.support.changes import make_job, member, proposal
from tests.support.mail_server import mail_server
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts.models import Cluster, HeadroomPoint
from webapp.jobs.models import Job, JobGroup, Role
from webapp.notifications import alert_selectors, alert_services, channels, retention
from webapp.notifications.alert_evaluation import evaluate_due
from webapp.notifications.alert_models import Alert, AlertRule, RuleKind, Silence
from webapp.notifications.alert_reading import EVERY, ns
from webapp.notifications.content import Composer
from webapp.notifications.models import Channel, DeliveryState, Message, Subscription
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from workers.channels import send_due
from workers.tasks.notify import evaluate_alerts

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BAD, GOOD = [0.8, 0.9, 0.7], [0.5, 0.4]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.WEIR_ALLOWED_INSIDE = "127.0.0.1/32"
    settings.WEIR_PUBLIC_URL = "https://weir.example"
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def job() -> Job:
    return make_job()


@pytest.fixture
def boss(job: Job) -> User:
    return member(job, Role.ADMIN, "boss")


def group_of(job: Job) -> JobGroup:
    assert job.group is not None
    return job.group


def webhook(boss: User, job: Job, receiver: Receiver, kind: str = "webhook") -> Channel:
    secret = "R0UT1NGKEY" if kind == "pagerduty" else SECRET
    return channels.create_channel(
        boss, group_of(job), kind=kind, name=kind, address=f"{receiver.url}/{kind}", secret=secret
    )


def evaluate(at: datetime) -> None:
    """A round at some time, whatever was evaluated when."""
    AlertRule.objects.update(due_at=at)
    assert evaluate_due(at) == AlertRule.objects.count()


def told() -> list[str]:
    return [row.content["title"] for row in Message.objects.order_by("id")]


def test_ten_evaluators_tell_once_and_all_subjects_in_one_message(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    other = make_job()
    Job.objects.filter(pk=other.pk).update(group=job.group)
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    webhook(boss, job, receiver)
    made = rule(boss, group_of(job))
    gate, troubles = threading.Barrier(10), list[str]()

    def work() -> None:
        gate.wait()
        try:
            evaluate_alerts()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must see it
            troubles.append(repr(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == []
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


def test_a_preview_tells_what_the_rule_would_have_done_and_then_it_does_that(job: Job, boss: User) -> None:
    now = timezone.now()
    start = now - timedelta(minutes=30)
    windows(job, start, [0.1, *BAD, *GOOD, 0.7, 0.7, 0.1, *BAD, 0.99])
    draft = cp_draft()
    [seen] = alert_services.preview(boss, group_of(job), draft, now)
    assert (seen.name, seen.value_count) == (job.name, 13)
    alert_services.save_rule(boss, group_of(job), draft)
    evaluate(now)
    rows = list(Alert.objects.order_by("fired_at"))
    assert [(ns(row.fired_at), row.resolved_at and ns(row.resolved_at), row.worst) for row in rows] == [
        (item.from_ns, item.to_ns, item.worst) for item in seen.episodes
    ]
    assert [row.resolved_at is None for row in rows] == [False, True]


@pytest.mark.parametrize("kind", [RuleKind.ACTIVITY_CP, RuleKind.WORKER_CP])
def test_activities_and_workers_are_watched_too(job: Job, boss: User, kind: RuleKind) -> None:
    now = timezone.now()
    windows(job, now - timedelta(seconds=30), BAD)
    target = "processing" if kind == RuleKind.ACTIVITY_CP else "w"
    rule(boss, group_of(job), kind=kind, target=target)
    rule(boss, group_of(job), name="of another", kind=RuleKind.WORKER_CP, target="nobody")
    evaluate(now)
    assert [row.rule.kind for row in Alert.objects.all()] == [kind]


def low_headroom(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    cluster = Cluster.objects.create(name=f"cluster-{job.pk}", group=job.group)

    def point(seconds: int, ratio: float) -> None:
        HeadroomPoint.objects.create(
            cluster=cluster, at_ns=ns(now + timedelta(seconds=seconds)), version="1", rates=[1.0], ratio=ratio,
            joint=1.0, single=1.0,
        )  # fmt: skip

    point(-9, 0.5)
    point(-8, 0.04)
    return lambda: point(2, float("inf"))


def no_data(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    Job.objects.filter(pk=job.pk).update(last_received_at=now - timedelta(seconds=400))
    return lambda: Job.objects.filter(pk=job.pk).update(last_received_at=now) and None


def expiring(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    row = proposal(job)
    Proposal.objects.filter(pk=row.pk).update(
        created_at=now - timedelta(seconds=60), expires_at=now + timedelta(seconds=200)
    )
    return lambda: Proposal.objects.filter(pk=row.pk).update(state=State.REJECTED) and None


def regressed(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    row = proposal(job)
    verdict = {"outcome": "regressed", "judged_at": (now - timedelta(seconds=5)).isoformat(), "findings": []}
    Proposal.objects.filter(pk=row.pk).update(state=State.REGRESSED, verdict=verdict, changed_at=now)
    return lambda: Proposal.objects.filter(pk=row.pk).update(state=State.REVERTING) and None


def backlog(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    from analytics.model.rates import OperatorRates, RateWindow
    from webapp.jobs.reports import Measured, keep_rates

    topology = Topology("x", "job", "RUNNING", None, (), ())

    def lag(seconds: int, *records: float | None) -> None:
        end = ns(now + timedelta(seconds=seconds))
        sources = tuple(OperatorRates(f"s{i}", 1, (), lag_last=item) for i, item in enumerate(records))
        keep_rates(job, Measured(topology, RateWindow(end - 10**9, end, sources)))

    lag(-20, 4_000.0, 3_000.0)
    lag(-10, 8_000.0, 3_000.0)
    return lambda: lag(2, 10.0, None)


def backlog_metric(job: Job, boss: User, now: datetime) -> Callable[[], None]:
    from analytics.model.metrics import MetricSample
    from analytics.model.trace import Records, TraceBatch
    from webapp.telemetry.services import digest_of, store_batch

    minute = ns(now) // (60 * 10**9) * 60 * 10**9

    def lag(at_ns: int, *records: float) -> None:
        samples = tuple(
            MetricSample("consumer_lag", (("partition", str(i)),), at_ns, value)
            for i, value in enumerate(records)
        )
        store_batch(job, TraceBatch(Records.of([]), metrics=samples), digest_of(job.name, str(at_ns)))

    lag(minute - 100 * 10**9, 6_000.0, 5_000.0)
    return lambda: lag(minute - 30 * 10**9, 6_000.0, 10.0)


KINDS: dict[str, tuple[Callable[[Job, User, datetime], Callable[[], None]], dict[str, Any], str]] = {
    "headroom": (
        low_headroom, {"kind": RuleKind.HEADROOM, "threshold": 0.05, "clear": 0.1}, "now 4 %",
    ),
    "no data": (no_data, {"kind": RuleKind.NO_DATA, "threshold": 300, "clear": 300}, "now 6 min 40 s"),
    "expiring": (expiring, {"kind": RuleKind.EXPIRING, "threshold": 300, "clear": 300}, "now 3 min 20 s"),
    "regressed": (regressed, {"kind": RuleKind.REGRESSED, "threshold": 0, "clear": 0}, "proposal"),
    "backlog": (
        backlog, {"kind": RuleKind.BACKLOG, "threshold": 1e4, "clear": 9e3}, "now 11,000 records",
    ),
    "backlog by a metric": (
        backlog_metric, {"kind": RuleKind.BACKLOG, "target": "consumer_lag", "threshold": 1e4, "clear": 9e3},
        "now 11,000 records",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_fires_is_told_and_ends(name: str, job: Job, boss: User, receiver: Receiver) -> None:
    prepare, values, said = KINDS[name]
    now = timezone.now() - timedelta(seconds=10)
    webhook(boss, job, receiver)
    relieve = prepare(job, boss, now)
    known: dict[str, Any] = {"target": "", "fire_after": 1, "clear_after": 1}
    draft = cp_draft("it", **(known | values))
    [seen] = alert_services.preview(boss, group_of(job), draft, now)
    if name != "no data":  # its past is that of deliveries, of which there are none
        assert [item.to_ns for item in seen.episodes] == [None]
    alert_services.save_rule(boss, group_of(job), draft)
    evaluate(now)
    [message] = Message.objects.all()
    assert message.content["title"].startswith("FIRING: it")
    assert said in message.content["text"]
    relieve()
    evaluate(now + timedelta(seconds=75))
    assert Alert.objects.get().resolved_at is not None
    assert told()[1].startswith("RESOLVED: it")


def test_jobs_that_went_silent_in_the_past_are_previewed_by_their_deliveries(job: Job, boss: User) -> None:
    from webapp.telemetry.models import Batch

    now = timezone.now()
    Job.objects.filter(pk=job.pk).update(created_at=now - timedelta(days=2))
    for minutes in (1_440, 600, 599, 1):
        row = Batch.objects.create(
            job=job, digest=minutes.to_bytes(32, "big"), record_count=1, metric_count=0
        )
        Batch.objects.filter(pk=row.pk).update(received_at=now - timedelta(minutes=minutes))
    draft = cp_draft("it", kind=RuleKind.NO_DATA, target="", threshold=7_200.0, clear=7_200.0)
    [seen] = alert_services.preview(boss, group_of(job), draft, now)
    lengths_s = [round((item.to_ns - item.from_ns) / 1e9) for item in seen.episodes if item.to_ns]
    assert lengths_s == [pytest.approx(720 * 60, abs=31), pytest.approx(478 * 60, abs=31)]


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
        inbox.refused = {"b@example.org": "550 no such box"}
        assert send_due(5) == 2
        windows(job, now - timedelta(seconds=20), GOOD)
        evaluate(now)
        assert send_due(5) == 2
    first, second, third, _ = inbox.mails
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


def test_each_role_can_do_what_it_may_and_strangers_learn_nothing(job: Job, boss: User) -> None:
    now = timezone.now()
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert = made.alerts.get()
    foreign = member(make_job(), Role.ADMIN, "foreign")
    acts: dict[str, tuple[Role, Callable[[User], object]]] = {
        "preview": (Role.VIEWER, lambda who: alert_services.preview(who, group_of(job), cp_draft(), now)),
        "acknowledge": (Role.OPERATOR, lambda who: alert_services.acknowledge(who, alert.pk)),
        "silence": (
            Role.OPERATOR,
            lambda who: alert_services.silence(who, group_of(job), now + timedelta(hours=1), "x"),
        ),
        "end": (
            Role.OPERATOR,
            lambda who: alert_services.end_silence(who, Silence.objects.earliest("pk").pk),
        ),
        "save": (Role.ADMIN, lambda who: alert_services.save_rule(who, group_of(job), cp_draft(), made.pk)),
        "remove": (Role.ADMIN, lambda who: alert_services.remove_rule(who, made.pk)),
    }
    for name, (least, act) in acts.items():
        for who in (foreign, *(member(job, role) for role in Role)):
            mine = alert_services.role_in(who, group_of(job).pk)
            if mine is not None and mine.rank >= least.rank:
                if name != "remove":
                    act(who)
                continue
            with pytest.raises(PermissionDenied) as refused:
                act(who)
            assert group_of(job).name not in str(refused.value)
            last = AuditEvent.objects.filter(actor_id=who.pk).latest("id")
            assert (last.outcome, name in last.action or name in ("end", "save")) == ("refused", True), name
    assert list(alert_selectors.rules(foreign)) == list(alert_selectors.alerts(foreign)) == []
    alert.refresh_from_db()
    assert alert.acknowledged_by_name.startswith("operator"), "the first who says so stands there"
    seen = member(job, Role.VIEWER, "looks")
    assert [row.pk for row in alert_selectors.firing(seen, now)] == [alert.pk]


def test_a_removed_rule_ends_what_channels_believe_to_fire(job: Job, boss: User, receiver: Receiver) -> None:
    now = timezone.now()
    webhook(boss, job, receiver, "pagerduty")
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert_services.remove_rule(boss, made.pk)
    assert send_due(5) == 2
    assert [json.loads(body)["event_action"] for _, _, body in receiver.got] == ["trigger", "resolve"]
    assert not Alert.objects.exists()


def test_a_changed_rule_watches_anew_and_a_finished_job_no_longer_fires(
    job: Job, boss: User, receiver: Receiver
) -> None:
    now = timezone.now()
    webhook(boss, job, receiver)
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    moved = cp_draft(kind=RuleKind.ACTIVITY_CP, target="processing")
    alert_services.save_rule(boss, group_of(job), moved, made.pk)
    evaluate(now)
    assert told()[1].startswith("FIRING"), "what the new one found is told with what is over"
    Job.objects.update(finished=True)
    evaluate(now)
    assert told()[2].startswith("RESOLVED")
    assert [row.ended_by for row in Alert.objects.order_by("id")] == [
        "the rule was changed", "there is nothing to watch any more",
    ]  # fmt: skip


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


def test_a_rule_that_cannot_be_evaluated_says_so_and_holds_up_no_other(job: Job, boss: User) -> None:
    now = timezone.now()
    broken = rule(boss, group_of(job), name="broken")
    AlertRule.objects.filter(pk=broken.pk).update(kind=RuleKind.ACTIVITY_CP, target="dancing")
    rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    with transaction.atomic():
        evaluate(now)
    assert Alert.objects.count() == 1
    broken.refresh_from_db()
    assert "could not be evaluated" in broken.error


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
