"""Channels: what receivers get, who may make them, what stays secret, and where messages may not go."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import connection
from django.utils import timezone
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.support import alerting
from tests.support.alerting import SECRET
from tests.support.changes import make_job, member
from tests.support.receiver import Receiver
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs.models import JobGroup, Role
from webapp.notifications import channels, outside
from webapp.notifications.models import Channel, DeliveryState, Message
from webapp.notifications.outside import InsideError, may_reach
from webapp.notifications.sealing import BrokenSealError, opened, seal
from workers.channels import send_due, wire_of
from workers.tasks.notify import send_messages

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, group, boss = alerting.receiver, alerting.job, alerting.group, alerting.boss


def sent_test(boss: User, channel: Channel) -> Message:
    message = channels.test_channel(boss, channel.pk)
    send_messages()
    message.refresh_from_db()
    return message


def test_a_webhook_is_signed_so_that_the_standards_own_library_believes_it(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    channel = channels.create_channel(
        boss, group, kind="webhook", name="ops", address=f"{receiver.url}/weir", secret=SECRET
    )
    message = sent_test(boss, channel)
    assert (message.state, message.status, message.error) == (DeliveryState.SENT, 200, "")
    [(path, headers, body)] = receiver.got
    assert path == "/weir"
    said = Webhook(SECRET).verify(body, headers)
    assert said["type"] == "weir.notification"
    assert said["data"]["title"] == f"Test from Weir for {group.name}"
    assert said["data"]["url"] == "https://weir.example/notifications?tab=channels"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body.replace(b"Test", b"Fake"), headers)


def test_slack_gets_text_in_which_nothing_can_pose_as_a_mention(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    channel = channels.create_channel(
        boss, group, kind="slack", name="chat", address=f"{receiver.url}/services/T0/B0/verysecret"
    )
    channels.post(channel, title="a <!channel> & b", text="x", path="/jobs/1", severity="info")
    assert send_due(10) == 1
    [(path, _, body)] = receiver.got
    assert path == "/services/T0/B0/verysecret"
    text = json.loads(body)["text"]
    assert text == "*a &lt;!channel&gt; &amp; b*\nx\n<https://weir.example/jobs/1|Open in Weir>"


def test_pagerduty_gets_an_event_whose_key_joins_what_belongs_together(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    receiver.status = 202
    channel = channels.create_channel(
        boss, group, kind="pagerduty", name="pager", address=f"{receiver.url}/v2/enqueue", secret="R0UT1NGKEY"
    )
    for _ in range(2):
        channels.post(channel, title="late", text="x", path="/jobs/1", severity="critical", key="job-1")
    assert send_due(10) == 2
    events = [json.loads(body) for _, _, body in receiver.got]
    assert {event["dedup_key"] for event in events} == {"job-1"}
    assert events[0]["routing_key"] == "R0UT1NGKEY"
    assert events[0]["event_action"] == "trigger"
    assert events[0]["payload"] == {
        "summary": "late", "source": f"weir/{group.name}", "severity": "critical", "custom_details": {"text": "x"},
    }  # fmt: skip


def test_secrets_are_nowhere_in_the_database_in_the_clear(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    kinds = {
        "webhook": (f"{receiver.url}/hook", SECRET), "slack": (f"{receiver.url}/services/verysecret", ""),
        "pagerduty": (f"{receiver.url}/v2", "R0UT1NGKEY"),
    }  # fmt: skip
    for kind, (address, secret) in kinds.items():
        sent_test(
            boss,
            channels.create_channel(boss, group, kind=kind, name=kind, address=address, secret=secret),
        )
    assert len(receiver.got) == 3
    with connection.cursor() as cursor:
        for table in ("notifications_channel", "notifications_message", "audit_event"):
            cursor.execute(f"SELECT row_to_json(t)::text FROM {table} AS t")
            rows = " ".join(row for (row,) in cursor.fetchall())
            assert rows
            for secret in (SECRET, SECRET.removeprefix("whsec_"), "verysecret", "R0UT1NGKEY"):
                assert secret not in rows
                assert secret.encode().hex() not in rows


def test_a_secret_sealed_with_another_key_opens_nothing(settings: Any) -> None:
    sealed = seal("hush")
    assert opened(sealed) == "hush"
    assert seal("hush") != sealed
    settings.SECRET_KEY = "another"
    with pytest.raises(BrokenSealError, match="another WEIR_SECRET_KEY"):
        opened(sealed)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:9/", "http://localhost:9/", "http://10.0.0.7/", "http://192.168.1.1/", "http://172.16.0.1/",
        "http://169.254.169.254/", "http://[::1]/", "http://[fd00::1]/", "http://[::ffff:10.0.0.1]/",
        "http://100.64.0.1/", "http://0.0.0.0/", "http://[64:ff9b::a00:1]/", "http://2130706433/", "http://0x7f.1/",
        "http://[2002:0a00:0001::1]/",
    ],
)  # fmt: skip
def test_addresses_inside_the_network_are_refused(group: JobGroup, boss: User, address: str) -> None:
    with pytest.raises(ValidationError) as refused:
        channels.create_channel(boss, group, kind="webhook", name="x", address=address, secret=SECRET)
    assert "address" in refused.value.message_dict
    assert not Channel.objects.exists()


def test_a_name_that_leads_inside_after_it_was_checked_is_not_connected_to(
    receiver: Receiver, group: JobGroup, boss: User, settings: Any
) -> None:
    channel = channels.create_channel(
        boss, group, kind="webhook", name="ops", address=receiver.url, secret=SECRET
    )
    settings.WEIR_ALLOWED_INSIDE = ""
    message = sent_test(boss, channel)
    assert message.state == DeliveryState.FAILED
    assert "is inside the network (127.0.0.1)" in message.error
    assert receiver.got == []


def test_one_inside_address_among_others_is_enough_to_refuse_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", (address, 443)) for address in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(outside.socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(InsideError, match=r"10\.0\.0\.1"):
        outside.resolve("rebind.example", 443)


@pytest.mark.parametrize(
    ("address", "may"), [("93.184.216.34", True), ("2606:4700::1111", True), ("224.0.0.1", False)]
)
def test_addresses_outside_are_reached_and_groups_of_them_are_not(address: str, may: bool) -> None:
    assert may_reach(address) is may


def test_a_redirect_is_not_followed(receiver: Receiver, group: JobGroup, boss: User) -> None:
    channel = channels.create_channel(
        boss, group, kind="webhook", name="ops", address=receiver.url, secret=SECRET
    )
    receiver.status, receiver.headers = 302, {"Location": f"{receiver.url}/elsewhere"}
    message = sent_test(boss, channel)
    assert (message.state, message.error) == (DeliveryState.FAILED, "the receiver answered 302")
    assert [path for path, *_ in receiver.got] == ["/"]


def test_a_receiver_that_fails_in_passing_gets_the_same_bytes_again_and_the_log_says_so(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    channel = channels.create_channel(
        boss, group, kind="webhook", name="ops", address=receiver.url, secret=SECRET
    )
    receiver.status, receiver.answer = 503, b"busy " * 10_000
    message = sent_test(boss, channel)
    assert (message.state, message.status, message.attempts) == (DeliveryState.DUE, 503, 1)
    assert message.answer.startswith("busy")
    assert len(message.answer) <= 500
    assert message.not_before > timezone.now() + timedelta(seconds=10)
    send_messages()
    assert len(receiver.got) == 1, "the wait is not over"
    receiver.status, receiver.answer = 200, b"ok"
    Message.objects.update(not_before=timezone.now())
    send_messages()
    message.refresh_from_db()
    assert (message.state, message.attempts, message.error) == (DeliveryState.SENT, 2, "")
    first, second = receiver.got
    assert first[2] == second[2]
    assert first[1]["webhook-id"] == second[1]["webhook-id"]


def test_a_message_of_a_worker_that_died_is_sent_by_another_and_only_then(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    channel = channels.create_channel(
        boss, group, kind="webhook", name="ops", address=receiver.url, secret=SECRET
    )
    channels.test_channel(boss, channel.pk)
    [held] = channels.claim("dead", timezone.now(), 10)
    assert send_due(5) == 0
    Message.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    assert send_due(5) == 1
    channels.settle(held, timezone.now(), error="the one that was dead is back")
    assert Message.objects.get().state == DeliveryState.SENT
    assert wire_of(channel, held, 1).body == receiver.got[0][2]


def test_only_admins_of_the_group_make_test_see_and_remove_channels(
    receiver: Receiver, group: JobGroup, boss: User
) -> None:
    made = {"kind": "webhook", "name": "ops", "address": receiver.url, "secret": SECRET}
    channel = channels.create_channel(boss, group, **made)
    approver = member(group.jobs.get(), Role.APPROVER)
    stranger = member(make_job(), Role.ADMIN)
    for who in (approver, stranger):
        assert list(channels.channels(who)) == []
        with pytest.raises(PermissionDenied):
            channels.create_channel(who, group, **made)
        for act in (channels.test_channel, channels.remove_channel):
            with pytest.raises(Channel.DoesNotExist):
                act(who, channel.pk)
    with pytest.raises(ValidationError, match="of this name already"):
        channels.create_channel(boss, group, **made)
    channels.remove_channel(boss, channel.pk)
    people = [boss.pk, approver.pk, stranger.pk]
    trail = AuditEvent.objects.filter(action__startswith="channel.", actor_id__in=people).order_by("id")
    assert list(trail.values_list("action", "outcome")) == [
        ("channel.create", "done"), ("channel.create", "refused"), ("channel.create", "refused"),
        ("channel.remove", "done"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("webhook", ""),
        ("webhook", "whsec_!!"),
        ("webhook", "whsec_c2hvcnQ="),
        ("pagerduty", ""),
        ("telegram", "x"),
    ],
)
def test_what_cannot_work_is_refused_with_a_line(
    receiver: Receiver, group: JobGroup, boss: User, kind: str, secret: str
) -> None:
    with pytest.raises(ValidationError):
        channels.create_channel(boss, group, kind=kind, name="x", address=receiver.url, secret=secret)
