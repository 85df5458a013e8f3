"""Rules of alerts: every kind, what a preview tells, who may make and press what, and what makes no sense."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from analytics.model.topology import Topology
from tests.support import alerting
from tests.support.alerting import BAD, GOOD, cp_draft, evaluate, group_of, rule, told, webhook, windows
from tests.support.callbacks import call, signed_in
from tests.support.changes import make_job, member, proposal
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.bursts.models import Cluster, HeadroomPoint
from webapp.jobs.models import Job, Role
from webapp.notifications import alert_selectors, alert_services
from webapp.notifications.alert_models import Alert, AlertRule, RuleKind, Silence
from webapp.notifications.alert_reading import ns
from webapp.notifications.models import Message
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from workers.channels import send_due

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, boss = alerting.receiver, alerting.job, alerting.boss


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
    assert Alert.objects.get().job_id == (None if name == "headroom" else job.pk)
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
    alert_services.silence(boss, group_of(job), now + timedelta(hours=1), "nobody could tell it later")
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


def filled_form(job: Job, name: str) -> dict[str, str]:
    """The form of a rule on jobs without data, filled in."""
    form = {
        "group": str(group_of(job).pk),
        "job": "0",
        "kind": "no_data",
        "severity": "info",
        "threshold": "5",
    }
    form |= {"name": name, "target": "", "clear": "", "fire_after": "", "clear_after": ""}
    return {f"rule-{field}.value": value for field, value in form.items()}


def test_who_saw_an_earlier_rule_does_not_write_over_the_later(job: Job, boss: User) -> None:
    made = rule(boss, group_of(job))
    given = filled_form(job, "quiet")
    seen = {"id": made.pk, "seen": alert_services.revision(made)}
    alert_services.save_rule(boss, group_of(job), cp_draft(threshold=0.9), made.pk)
    press = {"rule-save.n_clicks": 1, "rule-changed.data": seen, **given}
    page = call(signed_in(boss), "rule-save.n_clicks", press).content.decode()
    assert "Somebody changed the rule count is busy since you began: begin again with Change." in page
    made = AlertRule.objects.get()
    assert (made.name, made.threshold) == ("count is busy", 0.9)
    press["rule-changed.data"] = {"id": made.pk, "seen": alert_services.revision(made)}
    call(signed_in(boss), "rule-save.n_clicks", press)
    assert AlertRule.objects.get().name == "quiet"


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


def test_forged_callbacks_of_a_viewer_and_of_a_stranger_change_nothing(job: Job, boss: User) -> None:
    now = timezone.now()
    made = rule(boss, group_of(job))
    windows(job, now - timedelta(seconds=30), BAD)
    evaluate(now)
    alert = made.alerts.get()
    saved = filled_form(job, "forged")
    quiet = {"silence-what.value": f"rule:{made.pk}", "silence-for.value": "60", "silence-reason.value": "x"}
    quiet["silence-job.value"] = str(job.pk)
    for who in (member(job, Role.VIEWER), member(make_job(), Role.ADMIN, "foreign")):
        client = signed_in(who)
        for do, pk in (
            ("acknowledge", alert.pk),
            ("remove", made.pk),
            ("end", 1),
            ("silence", alert.pk),
            ("edit", made.pk),
        ):
            data = {"alert-do.data": {"do": do, "id": pk, "sent": 1}, "url.search": ""}
            assert call(client, "alert-do.data", data).status_code == 200
        known = {"id": made.pk, "seen": alert_services.revision(made)}
        call(client, "rule-save.n_clicks", {"rule-save.n_clicks": 1, "rule-changed.data": known, **saved})
        call(client, "rule-save.n_clicks", {"rule-save.n_clicks": 1, **saved})
        call(client, "silence-add.n_clicks", {"silence-add.n_clicks": 1, **quiet})
        if alert_services.role_in(who, group_of(job).pk) is None:
            body = call(client, "alert-do.data", data).content.decode()
            assert made.name not in body
            assert job.name not in body
    assert list(AlertRule.objects.values_list("name", "kind")) == [("count is busy", "operator_cp")]
    assert (Silence.objects.count(), Alert.objects.get().acknowledged_at) == (0, None)
