"""Receivers that hang: they hold up no other channel, and nothing is lost, sent twice or out of order for it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.support import alerting
from tests.support.alerting import SECRET, group_of, webhook
from tests.support.callbacks import call, signed_in
from tests.support.celery_worker import celery_worker, wait_for
from tests.support.hanging import Hanging
from tests.support.receiver import Receiver
from tests.support.waiting import eventually
from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.notifications import channels
from webapp.notifications.models import Channel, DeliveryState, Message
from webapp.queue import enqueue
from workers.channels import SENDERS, _round, send_due

pytestmark = pytest.mark.django_db(transaction=True)
receiver, job, boss = alerting.receiver, alerting.job, alerting.boss
WITHIN_S = 0.6
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def hang(receiver: Receiver) -> Iterator[Callable[..., Hanging]]:
    made: list[Hanging] = []

    def make(*how: bytes) -> Hanging:
        made.append(Hanging(*how))
        return made[-1]

    yield make
    for one in made:
        one.close()


def channel_to(boss: User, job: Job, name: str, address: str) -> Channel:
    return channels.create_channel(
        boss, group_of(job), kind="webhook", name=name, address=address, secret=SECRET
    )


def told(channel: Channel, title: str, key: str = "") -> Message:
    return channels.post(channel, title=title, text="x", path="/jobs/1", severity="info", key=key)


def titles(receiver: Receiver) -> list[str]:
    return [json.loads(body)["data"]["title"] for _, _, body in receiver.got]


def now_is_the_next_try(channel: Channel) -> None:
    Channel.objects.filter(pk=channel.pk).update(not_before=timezone.now())


def test_twenty_messages_to_receivers_that_hang_do_not_hold_up_one_to_a_good_one(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    bad = [hang() for _ in range(4)]
    hanging = [channel_to(boss, job, f"hanging {place}", one.url) for place, one in enumerate(bad)]
    for number in range(20):
        for channel in hanging:
            told(channel, f"m{number}")
    good = told(webhook(boss, job, receiver), "good")
    began_s, within_s = time.monotonic(), 2.0
    assert send_due(60, within_s) == 1
    took_s = time.monotonic() - began_s
    good.refresh_from_db()
    assert good.sent_at is not None
    assert good.sent_at - good.created_at < timedelta(seconds=within_s), "before any receiver had given up"
    assert took_s < 5 * within_s, "not each of 80 messages waits"
    assert [one.tries for one in bad] == [1, 1, 1, 1]
    for channel in hanging:
        log = list(channel.messages.order_by("id"))
        assert [row.attempts for row in log] == [1] + [0] * 19
        assert {row.state for row in log} == {DeliveryState.DUE}
        assert log[0].error == "no answer within 2 s"
        assert log[0].took_ms is not None
        assert 2_000 <= log[0].took_ms < 10_000
        channel.refresh_from_db()
        assert channel.not_before is not None
        assert channel.not_before > timezone.now() + timedelta(seconds=10)


def test_what_comes_while_others_hang_goes_out_in_the_same_round(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    hanging = hang()
    told(channel_to(boss, job, "hanging", hanging.url), "lost?")
    good = webhook(boss, job, receiver)
    with ThreadPoolExecutor() as thread:
        under_way = thread.submit(send_due, 60, 60.0)
        eventually(lambda: Message.objects.filter(state=DeliveryState.SENDING).exists(), "one is tried")
        late = told(good, "late")
        assert send_due(1, WITHIN_S) == 0, "the round under way takes it"
        eventually(lambda: titles(receiver) == ["late"], "the late one arrives")
        assert not under_way.done()
        hanging.close()
        assert under_way.result() == 1
    late.refresh_from_db()
    assert (late.state, late.attempts) == (DeliveryState.SENT, 1)


def test_a_round_that_is_over_but_for_one_that_hangs_leaves_what_comes_to_the_next(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    hanging = hang()
    told(channel_to(boss, job, "hanging", hanging.url), "lost?")
    good = webhook(boss, job, receiver)
    with ThreadPoolExecutor() as thread:
        over = thread.submit(send_due, 0.3, 60.0)
        eventually(lambda: Message.objects.filter(state=DeliveryState.SENDING).exists(), "one is tried")
        eventually(lambda: not _round.locked(), "the round gives way")
        told(good, "late")
        assert send_due(30) == 1
        assert not over.done()
        hanging.close()
        assert over.result() == 0


def test_the_page_says_from_when_on_what_waits_is_tried_again(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    channel = channel_to(boss, job, "ops", hang().url)
    told(channel, "x")
    shown = {"url.search": "", "tick.n_intervals": 1}
    for said in ("the last time", "2 times in a row"):
        assert send_due(30, 0.1) == 0
        page = call(signed_in(boss), "tick.n_intervals", shown, "channel-said").content.decode()
        assert f"Nothing was taken {said}: what waits is tried again from " in page
        assert "the last message failed to ops" in page
        now_is_the_next_try(channel)
    Channel.objects.filter(pk=channel.pk).update(address=receiver.url)
    assert send_due(30) == 1
    page = call(signed_in(boss), "tick.n_intervals", shown, "channel-said").content.decode()
    assert "1 channel, none failing." in page
    assert "Nothing was taken" not in page


@pytest.mark.parametrize(
    ("scheme", "how"),
    [
        ("http", (b"X-Drip: yes\r\n", HEAD)),  # heads without end
        ("http", (HEAD,)),  # not even the first line is there in time
        ("https", ()),  # nobody answers the handshake
        ("https", (b"\x16\x03\x03\x3f\xff",)),
    ],
)
def test_a_receiver_that_drips_holds_no_longer_than_one_that_is_silent(
    job: Job, boss: User, hang: Callable[..., Hanging], scheme: str, how: tuple[bytes, ...]
) -> None:
    dripping = hang(*how)
    message = told(channel_to(boss, job, "drips", f"{scheme}://127.0.0.1:{dripping.port}/"), "x")
    began_s = time.monotonic()
    assert send_due(30, WITHIN_S) == 0
    assert time.monotonic() - began_s < WITHIN_S + 5, "it drips for ever"
    message.refresh_from_db()
    assert (message.state, message.attempts) == (DeliveryState.DUE, 1)
    assert message.error == "no answer within 0.6 s"


def test_an_answer_whose_rest_never_comes_counts_as_one_and_nothing_is_sent_again(
    job: Job, boss: User, hang: Callable[..., Hanging]
) -> None:
    endless = hang(b".", HEAD + b"Content-Length: 9999\r\n\r\nok")
    message = told(channel_to(boss, job, "endless", endless.url), "x")
    assert send_due(30, 2.0) == 1
    assert send_due(30, 2.0) == 0
    message.refresh_from_db()
    assert (message.state, message.status, endless.tries) == (DeliveryState.SENT, 200, 1)
    assert message.answer.startswith("ok.")
    assert message.answer.endswith("… the rest did not come")


def test_a_mail_server_that_drips_is_cut_off_too(
    job: Job, boss: User, hang: Callable[..., Hanging], settings: Any
) -> None:
    dripping = hang(b"220-wait\r\n")
    settings.WEIR_SMTP_URL = f"smtp://127.0.0.1:{dripping.port}"
    mails = channels.create_channel(boss, group_of(job), kind="smtp", name="m", address="sre@example.com")
    messages = [told(mails, f"m{number}") for number in range(3)]
    began_s = time.monotonic()
    assert send_due(30, 0.2) == 0
    assert time.monotonic() - began_s < 6, "it drips for ever"
    for message in messages:
        message.refresh_from_db()
    assert [row.attempts for row in messages] == [1, 0, 0]
    assert "took nothing" in messages[0].error
    assert dripping.tries == 1


def test_when_the_receiver_is_back_all_arrives_once_and_in_order(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    channel = channel_to(boss, job, "ops", hang().url)
    for number in range(5):
        told(channel, f"m{number}", key="a" if number % 2 else "")
    for failures, wait in ((1, 15), (2, 30), (3, 60)):
        began = timezone.now()
        assert send_due(30, 0.1) == 0
        channel.refresh_from_db()
        assert (channel.failures, channel.messages.filter(attempts__gt=0).count()) == (failures, 1)
        assert channel.not_before is not None
        assert began <= channel.not_before - timedelta(seconds=wait) <= timezone.now()
        told(channel, f"m{4 + failures}")
        assert send_due(30, 0.1) == 0, "what is new waits with the others"
        now_is_the_next_try(channel)
    Channel.objects.filter(pk=channel.pk).update(address=receiver.url)
    assert send_due(30) == 8
    assert titles(receiver) == [f"m{number}" for number in range(8)]
    channel.refresh_from_db()
    assert (channel.failures, channel.not_before) == (0, None)
    assert [row.attempts for row in channel.messages.order_by("id")] == [4] + [1] * 7
    assert send_due(30) == 0


def test_a_test_after_a_repair_does_not_wait_and_what_waited_goes_with_it(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    channel = channel_to(boss, job, "ops", hang().url)
    told(channel, "m0")
    assert send_due(30, 0.1) == 0
    Channel.objects.filter(pk=channel.pk).update(address=receiver.url)
    assert send_due(30) == 0
    channels.test_channel(boss, channel.pk)
    assert send_due(30) == 2
    assert titles(receiver) == ["m0", f"Test from Weir for {group_of(job).name}"]


def test_a_message_that_its_receiver_chokes_on_does_not_keep_the_others_for_ever(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    channel = channel_to(boss, job, "ops", receiver.url)
    choking = told(channel, "chokes")
    Message.objects.filter(pk=choking.pk).update(attempts=channels.PATIENCE + 1)
    told(channel, "fine")
    assert send_due(30) == 2
    assert titles(receiver) == ["fine", "chokes"]


def test_a_receiver_that_says_it_is_asked_too_often_is_asked_once(
    job: Job, boss: User, receiver: Receiver
) -> None:
    receiver.status = 429
    channel = webhook(boss, job, receiver)
    for number in range(5):
        told(channel, f"m{number}")
    assert send_due(30) == 0
    assert titles(receiver) == ["m0"]


def test_workers_that_claim_at_once_never_have_two_messages_of_a_channel(
    job: Job, boss: User, receiver: Receiver
) -> None:
    several = [channel_to(boss, job, f"c{place}", receiver.url) for place in range(3)]
    for number in range(8):
        for channel in several:
            told(channel, f"m{number}")

    def claim(place: int) -> list[Message]:
        try:
            return channels.claim(f"worker {place}", timezone.now(), SENDERS)
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as threads:
        held = [message for found in threads.map(claim, range(10)) for message in found]
    assert sorted(message.channel_id for message in held) == [channel.pk for channel in several]
    assert {message.content["title"] for message in held} == {"m0"}
    for message in held:
        channels.settle(message, timezone.now())
    assert {message.content["title"] for message in claim(0)} == {"m1"}


def test_channels_that_answer_go_before_those_that_did_not(job: Job, boss: User, receiver: Receiver) -> None:
    failing, good = (channel_to(boss, job, name, receiver.url) for name in ("failing", "good"))
    told(failing, "old")
    told(good, "new")
    Channel.objects.filter(pk=failing.pk).update(failures=3, not_before=timezone.now())
    [first] = channels.claim("me", timezone.now(), 1)
    assert first.channel_id == good.pk


def test_a_mail_that_cannot_be_made_does_not_have_another_channels_message_sent_again(
    job: Job, boss: User, receiver: Receiver, settings: Any
) -> None:
    settings.WEIR_SMTP_URL = "mail.example.com:25"
    good = told(webhook(boss, job, receiver), "good")
    mails = channels.create_channel(boss, group_of(job), kind="smtp", name="m", address="sre@example.com")
    bad = told(mails, "bad")
    assert send_due(30) == 1
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.state, titles(receiver)) == (DeliveryState.SENT, ["good"])
    assert (bad.state, bad.attempts) == (DeliveryState.DUE, 1)
    assert "WEIR_SMTP_URL is not like smtp://" in bad.error


def test_an_attempt_that_ends_while_its_channel_is_removed_waits_for_that_and_both_go_on(
    job: Job, boss: User, receiver: Receiver
) -> None:
    channel = webhook(boss, job, receiver)
    told(channel, "x")
    Channel.objects.filter(pk=channel.pk).update(failures=1)
    [message] = channels.claim("me", timezone.now(), 1)

    def settle() -> None:
        try:
            channels.settle(message, timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor() as thread:
        with transaction.atomic():
            Channel.objects.select_for_update().get(pk=channel.pk)
            under_way = thread.submit(settle)
            eventually(somebody_waits_for_a_lock, "somebody waits for a lock")
            channels.remove_channel(boss, channel.pk)
        under_way.result()
    assert not Message.objects.exists()


def somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return cursor.fetchone() is not None


def test_what_waited_a_day_for_a_receiver_that_takes_nothing_is_given_up_without_a_try_of_its_own(
    job: Job, boss: User, receiver: Receiver, hang: Callable[..., Hanging]
) -> None:
    channel = channel_to(boss, job, "ops", hang().url)
    for number in range(3):
        told(channel, f"m{number}")
    Message.objects.update(created_at=timezone.now() - channels.GIVE_UP_AFTER)
    told(channel, "new")
    assert send_due(30, 0.1) == 0
    states = channel.messages.order_by("id").values_list("state", flat=True)
    assert list(states) == ["failed", "due", "due", "due"], "it failed once only: it may be back in a moment"
    Channel.objects.filter(pk=channel.pk).update(failures=channels.PATIENCE, not_before=None)
    assert send_due(30, 0.1) == 0
    assert list(states.all()) == ["failed", "failed", "failed", "due"]
    assert channel.messages.get(content__title="m2").error == "it waited a day: no answer within 0.1 s"
    Channel.objects.filter(pk=channel.pk).update(address=receiver.url, not_before=None)
    assert send_due(30) == 1
    assert titles(receiver) == ["new"]


def test_a_worker_that_is_told_to_stop_begins_no_more_and_writes_down_what_it_sent(
    job: Job, boss: User, receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    channel, log, many = webhook(boss, job, receiver), tmp_path / "log", 5_000
    first = told(channel, "x")
    waiting = [Message(channel=channel, content=first.content, not_before=first.not_before)] * (many - 1)
    Message.objects.bulk_create(waiting)
    monkeypatch.setenv("WEIR_SECRET_KEY", settings.SECRET_KEY)
    monkeypatch.setenv("WEIR_ALLOWED_INSIDE", settings.WEIR_ALLOWED_INSIDE)
    with celery_worker("default", tmp_path, log) as worker:
        enqueue("workers.tasks.notify.send_messages", queue="default")
        wait_for("the first messages", lambda: len(receiver.got) > 2, log)
        worker.terminate()
        worker.wait(20)
    assert 2 < len(receiver.got) < many
    states = Counter(Message.objects.values_list("state", flat=True))
    assert states == {DeliveryState.SENT: len(receiver.got), DeliveryState.DUE: many - len(receiver.got)}
