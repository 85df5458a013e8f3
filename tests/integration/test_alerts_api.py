"""Alert rules, alerts, silences and channels over the API: who may do what, and that it does what the page does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.support import alerting
from tests.support.alerting import BAD, SECRET, beside, evaluate, group_of, rule, webhook, windows
from tests.support.api import Caller, problem_of
from tests.support.changes import make_job, member, person
from tests.support.receiver import Receiver
from webapp.accounts.models import Scope, User
from webapp.accounts.services import create_token
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, Role
from webapp.notifications import alert_services
from webapp.notifications.alert_models import Alert, AlertRule, Silence
from webapp.notifications.models import Channel, DeliveryState, Message
from workers.channels import send_due

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, boss = alerting.receiver, alerting.job, alerting.boss
RULES, ALERTS, SILENCES, CHANNELS = (
    f"/api/v1/{name}" for name in ("alert-rules", "alerts", "silences", "channels")
)
RULE = {
    "name": "count is busy", "kind": "operator_cp", "target": "count", "threshold": 0.6, "clear": 0.5,
    "fire_after": 3, "clear_after": 2, "severity": "critical",
}  # fmt: skip


def caller(who: User, *scopes: Scope, jobs: tuple[str, ...] = ()) -> Caller:
    wanted = scopes or (Scope.READ, Scope.DECIDE, Scope.ADMIN)
    return Caller(create_token(who, "test", list(wanted), jobs=jobs)[1])


def wanted(about: Job, **more: object) -> dict[str, object]:
    return {"group": group_of(about).name, **RULE, **more}


def in_an_hour() -> str:
    return (timezone.now() + timedelta(hours=1)).isoformat()


@dataclass(frozen=True)
class Place:
    """A job with a rule that fires, a silence and a channel."""

    job: Job
    rule: AlertRule
    alert: Alert
    silence: Silence
    channel: Channel


def place(receiver: Receiver) -> Place:
    job = make_job()
    boss, now = member(job, Role.ADMIN), timezone.now()
    windows(job, now - timedelta(seconds=30), BAD)
    made = rule(boss, group_of(job))
    evaluate(now)
    silence = alert_services.silence(boss, group_of(job), now + timedelta(hours=1), "work", made)
    return Place(job, made, Alert.objects.get(rule=made), silence, webhook(boss, job, receiver))


@dataclass(frozen=True)
class Action:
    """``ask`` is method, path and body; ``hidden`` what those are answered who must not know what there is, 200: a
    list without it."""

    name: str
    least: Role
    scope: Scope
    ask: Callable[[Place], tuple[str, str, Any]]
    hidden: int = 404


def silence_of(it: Place) -> dict[str, object]:
    return {"group": group_of(it.job).name, "reason": "work", "until": in_an_hour()}


def channel_of(it: Place) -> dict[str, object]:
    address = it.channel.address
    return {
        "group": group_of(it.job).name, "kind": "webhook", "name": "new", "address": address, "secret": SECRET
    }  # fmt: skip


VIEWER, OPERATOR, ADMIN = Role.VIEWER, Role.OPERATOR, Role.ADMIN
ACTIONS = (
    Action("list rules", VIEWER, Scope.READ, lambda it: ("GET", RULES, None), 200),
    Action("see a rule", VIEWER, Scope.READ, lambda it: ("GET", f"{RULES}/{it.rule.pk}", None)),
    Action("preview", VIEWER, Scope.READ, lambda it: ("POST", f"{RULES}/preview", wanted(it.job)), 400),
    Action("make a rule", ADMIN, Scope.ADMIN, lambda it: ("POST", RULES, wanted(it.job, name="new")), 400),
    Action("change a rule", ADMIN, Scope.ADMIN, lambda it: ("PATCH", f"{RULES}/{it.rule.pk}", {"name": "b"})),
    Action("remove a rule", ADMIN, Scope.ADMIN, lambda it: ("DELETE", f"{RULES}/{it.rule.pk}", None)),
    Action("list alerts", VIEWER, Scope.READ, lambda it: ("GET", ALERTS, None), 200),
    Action("see an alert", VIEWER, Scope.READ, lambda it: ("GET", f"{ALERTS}/{it.alert.pk}", None)),
    Action(
        "acknowledge",
        OPERATOR,
        Scope.DECIDE,
        lambda it: ("POST", f"{ALERTS}/{it.alert.pk}/acknowledge", None),
    ),
    Action(
        "take back",
        OPERATOR,
        Scope.DECIDE,
        lambda it: ("DELETE", f"{ALERTS}/{it.alert.pk}/acknowledge", None),
    ),
    Action("list silences", VIEWER, Scope.READ, lambda it: ("GET", SILENCES, None), 200),
    Action("see a silence", VIEWER, Scope.READ, lambda it: ("GET", f"{SILENCES}/{it.silence.pk}", None)),
    Action("silence", OPERATOR, Scope.DECIDE, lambda it: ("POST", SILENCES, silence_of(it)), 400),
    Action(
        "end a silence", OPERATOR, Scope.DECIDE, lambda it: ("DELETE", f"{SILENCES}/{it.silence.pk}", None)
    ),
    Action("list channels", ADMIN, Scope.ADMIN, lambda it: ("GET", CHANNELS, None), 200),
    Action("see a channel", ADMIN, Scope.ADMIN, lambda it: ("GET", f"{CHANNELS}/{it.channel.pk}", None)),
    Action(
        "read a log", ADMIN, Scope.ADMIN, lambda it: ("GET", f"{CHANNELS}/{it.channel.pk}/messages", None)
    ),
    Action("make a channel", ADMIN, Scope.ADMIN, lambda it: ("POST", CHANNELS, channel_of(it)), 400),
    Action("test", ADMIN, Scope.ADMIN, lambda it: ("POST", f"{CHANNELS}/{it.channel.pk}/test", None)),
    Action(
        "remove a channel", ADMIN, Scope.ADMIN, lambda it: ("DELETE", f"{CHANNELS}/{it.channel.pk}", None)
    ),
)


@pytest.mark.parametrize("action", ACTIONS, ids=[action.name for action in ACTIONS])
def test_every_role_may_over_the_api_what_it_may_on_the_page(action: Action, receiver: Receiver) -> None:
    where = place(receiver)
    channels_hidden = action.name in (
        "list channels",
        "see a channel",
        "read a log",
        "test",
        "remove a channel",
    )
    stranger = member(make_job(), Role.ADMIN)
    people = {role.value: member(where.job, role) for role in Role if role.rank < action.least.rank}
    for name, who in {"stranger": stranger, **people}.items():
        method, path, body = action.ask(where)
        answer = caller(who).call(method, path, body, If_Match="*")
        seen = name != "stranger" and not channels_hidden
        if action.hidden == 200 and not seen:
            assert answer.json() == {"items": [], "next": None}, name
            continue
        assert answer.status_code == (403 if seen else action.hidden), (name, answer.content)
        if seen:
            refused = AuditEvent.objects.filter(actor_id=who.pk, outcome="refused")
            assert refused.exists(), name
    assert Caller(None).call(*action.ask(where)).status_code == 401
    admin = member(where.job, action.least)
    others = [scope for scope in Scope if scope != action.scope]
    method, path, body = action.ask(where)
    refused = caller(admin, *others).call(method, path, body, If_Match="*")
    assert problem_of(refused, 403) == "permission_denied"
    assert action.scope.value in refused.json()["detail"]
    assert untouched(where)
    answer = caller(admin, action.scope).call(method, path, body, If_Match="*")
    assert answer.status_code in (200, 201, 202, 204), answer.content
    if action.hidden == 200:
        assert len(answer.json()["items"]) == 1


def untouched(it: Place) -> bool:
    it.alert.refresh_from_db()
    it.silence.refresh_from_db()
    counts = [model._default_manager.count() for model in (AlertRule, Silence, Channel, Message)]
    return (
        counts == [1, 1, 1, 0]
        and AlertRule.objects.get().name == RULE["name"]
        and it.alert.acknowledged_at is None
        and it.silence.ended_at is None
    )


def test_a_rule_is_made_once_read_changed_by_who_saw_it_and_removed(job: Job, boss: User) -> None:
    program = caller(boss)
    body = wanted(job, job=job.pk)
    made = program.post(RULES, body, Idempotency_Key="k")
    assert made.status_code == 201
    again = program.post(RULES, body, Idempotency_Key="k")
    assert (again.json(), again["Idempotent-Replayed"]) == (made.json(), "true")
    row = AlertRule.objects.get()
    address = f"{RULES}/{row.pk}"
    assert made["Location"] == address
    shown = program.get(address)
    assert shown.json() == made.json()
    assert shown.json() | body == shown.json()
    assert shown.json()["condition"] == (
        "CP of operator count above 60 % for 3 windows in a row; over at 50 % or less for 2 windows in a row."
    )
    tag = shown["ETag"]
    assert made["ETag"] == tag
    AlertRule.objects.update(due_at=timezone.now(), error="it could not be evaluated")
    assert program.get(address)["ETag"] == tag, "evaluating it changes nothing that one could overwrite"
    assert problem_of(program.call("PATCH", address, {"threshold": 0.7}), 428) == "if_match_required"
    changed = program.call("PATCH", address, {"threshold": 0.7, "job": None}, If_Match=tag)
    assert changed.json() == shown.json() | {
        "threshold": 0.7, "job": None, "error": "",
        "condition": shown.json()["condition"].replace("60", "70"),
    }  # fmt: skip
    late = program.call("PATCH", address, {"threshold": 0.9}, If_Match=tag)
    assert problem_of(late, 412) == "changed_meanwhile"
    assert program.call("DELETE", address).status_code == 204
    assert problem_of(program.get(address), 404) == "not_found"
    trail = AuditEvent.objects.filter(object_type="alert_rule", object_id=row.pk).order_by("id")
    assert list(trail.values_list("action", "actor_id")) == [
        (f"alert_rule.{what}", boss.pk) for what in ("create", "change", "remove")
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"clear": 0.9}, "clear"), ({"threshold": 1.5}, "threshold"), ({"target": ""}, "target"),
        ({"kind": "activity_cp", "target": "dreaming"}, "target"), ({"kind": "telepathy"}, "kind"),
        ({"fire_after": 0}, "fire_after"), ({"job": 2**62}, "job"), ({"severity": "bad"}, "severity"),
        ({"name": " "}, "name"), ({"threshold": "nan"}, "threshold"), ({"group": "nobody's"}, "group"),
        ({"name": "a\0b"}, "name"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_a_problem_with_its_field(
    job: Job, boss: User, change: dict[str, Any], field: str
) -> None:
    program = caller(boss)
    for path in (RULES, f"{RULES}/preview"):
        answer = program.post(path, wanted(job, **change))
        assert problem_of(answer, 400) == "invalid"
        assert {item["field"] for item in answer.json()["errors"]} == {field}
    if "group" not in change:
        row = rule(boss, group_of(job))
        answer = program.call("PATCH", f"{RULES}/{row.pk}", change, If_Match="*")
        assert {item["field"] for item in answer.json()["errors"]} == {field}
    missing = {name: value for name, value in wanted(job).items() if name != "threshold"}
    assert problem_of(program.post(RULES, missing), 400) == "invalid"
    plain = missing | {"kind": "regressed", "name": "worse"}
    assert program.post(RULES, plain).status_code == 201, "there is nothing to compare"


def test_a_preview_tells_when_it_would_have_fired_and_stores_nothing(job: Job) -> None:
    windows(job, timezone.now() - timedelta(minutes=5), [0.1, *BAD, 0.4, 0.4, 0.1])
    found = caller(member(job, Role.VIEWER), Scope.READ).post(f"{RULES}/preview", wanted(job)).json()
    [subject] = found["subjects"]
    assert (subject["name"], subject["value_count"], subject["episode_count"]) == (job.name, 7, 1)
    [episode] = subject["episodes"]
    assert episode["to_ns"] > episode["from_ns"]
    assert episode["worst"] == 0.7
    assert found["condition"].startswith("CP of operator count above 60 %")
    assert not AlertRule.objects.exists()


def test_lists_are_pages_that_can_be_narrowed(job: Job, boss: User) -> None:
    other = beside(job)
    for number in range(3):
        rule(boss, group_of(job), name=f"r{number}", job_id=(job, other)[number % 2].pk)
    program = caller(boss)
    first = program.get(f"{RULES}?limit=2").json()
    rest = program.get(f"{RULES}?limit=2&after={first['next']}").json()
    assert [row["name"] for row in first["items"] + rest["items"]] == ["r0", "r1", "r2"]
    assert rest["next"] is None
    assert [row["name"] for row in program.get(f"{RULES}?job={other.pk}").json()["items"]] == ["r1"]
    assert program.get(f"{RULES}?group=nobody").json()["items"] == []
    assert len(program.get(f"{RULES}?group={group_of(job).name}").json()["items"]) == 3
    for wrong in ("job=x", "group=%00"):
        assert problem_of(program.get(f"{RULES}?{wrong}"), 400) == "invalid"


def test_an_alert_is_found_acknowledged_and_over(job: Job, boss: User) -> None:
    now, program = timezone.now(), caller(boss)
    windows(job, now - timedelta(seconds=30), BAD)
    rule(boss, group_of(job))
    evaluate(now)
    [fires] = program.get(f"{ALERTS}?firing=true&group={group_of(job).name}&job={job.pk}").json()["items"]
    assert (fires["subject"], fires["last"], fires["silenced"]) == (job.name, 0.7, False)
    assert program.get(f"{ALERTS}?firing=false").json()["items"] == []
    for _ in range(2):
        taken = program.post(f"{ALERTS}/{fires['id']}/acknowledge", None).json()
        assert taken["acknowledged_by"] == boss.get_username()
    left = program.call("DELETE", f"{ALERTS}/{fires['id']}/acknowledge").json()
    assert (left["acknowledged_by"], left["acknowledged_at"]) == ("", None)
    body = {"group": group_of(job).name, "job": job.pk, "reason": "works", "until": in_an_hour()}
    made = program.post(SILENCES, body, Idempotency_Key="s")
    assert program.post(SILENCES, body, Idempotency_Key="s").json() == made.json()
    assert program.get(f"{ALERTS}/{fires['id']}").json()["silenced"] is True
    assert program.call("DELETE", made["Location"]).status_code == 204
    assert problem_of(program.get(made["Location"]), 404) == "not_found"
    assert program.get(SILENCES).json()["items"] == []
    Alert.objects.update(last=float("inf"))
    assert program.get(f"{ALERTS}/{fires['id']}").json()["last"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"reason": ""}, "reason"),
        ({"rule": 5}, "rule"),
        ({"job": 5}, "job"),
    ],
)
def test_a_silence_that_makes_no_sense_is_refused(
    job: Job, boss: User, change: dict[str, Any], field: str
) -> None:
    body = {"group": group_of(job).name, "reason": "works", "until": in_an_hour()}
    answer = caller(boss).post(SILENCES, body | change)
    assert problem_of(answer, 400) == "invalid"
    assert [item["field"] for item in answer.json()["errors"]] == [field]


def test_a_token_for_some_jobs_has_to_do_with_what_is_about_these_alone(
    job: Job, boss: User, receiver: Receiver
) -> None:
    other, now = beside(job), timezone.now()
    for one in (job, other):
        windows(one, now - timedelta(seconds=30), BAD)
    everything, theirs = rule(boss, group_of(job)), rule(boss, group_of(job), name="theirs", job_id=other.pk)
    evaluate(now)
    limited = caller(boss, jobs=(job.name,))
    assert limited.get(RULES).json()["items"] == []
    for row in (everything, theirs):
        assert problem_of(limited.get(f"{RULES}/{row.pk}"), 404) == "not_found"
        assert problem_of(limited.call("DELETE", f"{RULES}/{row.pk}"), 404) == "not_found"
    [fires] = limited.get(ALERTS).json()["items"]
    assert fires["job"] == job.pk
    hidden = Alert.objects.filter(job=other).values_list("pk", flat=True)[0]
    assert problem_of(limited.post(f"{ALERTS}/{hidden}/acknowledge", None), 404) == "not_found"
    for body in (wanted(job, name="n"), wanted(job, name="n", job=other.pk)):
        assert problem_of(limited.post(RULES, body), 403) == "permission_denied"
    mine = limited.post(RULES, wanted(job, name="n", job=job.pk)).json()
    for change in ({"job": None}, {"kind": "headroom"}):
        refused = limited.call("PATCH", f"{RULES}/{mine['id']}", change, If_Match="*")
        assert problem_of(refused, 403) == "permission_denied"
    silence = {"group": group_of(job).name, "reason": "works", "until": in_an_hour()}
    assert problem_of(limited.post(SILENCES, silence), 403) == "permission_denied"
    assert limited.post(SILENCES, silence | {"job": job.pk}).status_code == 201
    assert problem_of(limited.get(CHANNELS), 403) == "permission_denied"


def test_a_channel_is_made_tested_and_removed_and_its_secret_is_never_shown(
    job: Job, boss: User, receiver: Receiver
) -> None:
    program = caller(boss)
    body = {
        "group": group_of(job).name, "kind": "slack", "name": "ops", "address": f"{receiver.url}/services/hush",
    }  # fmt: skip
    made = program.post(CHANNELS, body, Idempotency_Key="c")
    assert made.status_code == 201
    assert program.post(CHANNELS, body, Idempotency_Key="c").json() == made.json()
    address = made["Location"]
    assert program.get(address).json() == made.json()
    for _ in range(2):
        test = program.call("POST", f"{address}/test", None, Idempotency_Key="t")
        assert (test.status_code, test.json()["state"]) == (202, DeliveryState.DUE)
    assert send_due(5) == 1
    [line] = program.get(f"{address}/messages").json()["items"]
    assert (line["state"], line["status"], line["answer"]) == (DeliveryState.SENT, 200, "ok")
    seen = (made.content, program.get(CHANNELS).content, program.get(f"{address}/messages").content)
    assert not any(b"hush" in answer for answer in seen)
    refused = program.post(CHANNELS, body | {"address": "http://10.0.0.7/", "name": "in"})
    assert [item["field"] for item in refused.json()["errors"]] == ["address"]
    assert program.call("DELETE", address).status_code == 204
    assert problem_of(program.get(address), 404) == "not_found"


def test_a_superuser_sees_all_groups(job: Job, boss: User) -> None:
    rule(boss, group_of(job))
    assert len(caller(person("root", is_superuser=True)).get(RULES).json()["items"]) == 1
