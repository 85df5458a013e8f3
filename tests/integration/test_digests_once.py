"""One mail, however many workers run, and none lost: crowds, kill -9, and a mail server that is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from tests.support.at_once import at_once
from tests.support.celery_worker import celery_worker, kill, wait_for
from tests.support.digests import due, eventful, follower
from tests.support.mail_server import Inbox, mail_server
from webapp.notifications import carriers, deliveries, selectors
from webapp.notifications.models import Carrier, Delivery, DeliveryState, Subscription
from webapp.queue import enqueue
from workers.tasks.notify import send_digests

pytestmark = pytest.mark.django_db(transaction=True)
QUEUE = "default"


@pytest.fixture
def inbox(settings: object) -> Iterator[Inbox]:
    with mail_server() as found:
        settings.WEIR_SMTP_URL = found.url  # type: ignore[attr-defined]
        yield found


def followers(count: int) -> list[Subscription]:
    now = timezone.now()
    job, _ = eventful(now)
    return [due(follower(job, f"p{number}"), job, now) for number in range(count)]


def test_ten_workers_send_every_mail_once(inbox: Inbox) -> None:
    wanted = followers(40)
    assert at_once([send_digests] * 10) == {"done": 10}
    addresses = sorted(mail.recipients[0] for mail in inbox.mails)
    assert addresses == sorted(row.person.email for row in wanted)
    assert set(Delivery.objects.values_list("state", "attempts")) == {(DeliveryState.SENT, 1)}


def test_a_due_moment_is_planned_once_though_the_clock_is_asked_twice(inbox: Inbox) -> None:
    [row] = followers(1)
    at = row.next_due_at
    assert deliveries.plan_due(timezone.now()) == 1
    assert deliveries.plan_due(timezone.now()) == 0
    Subscription.objects.filter(pk=row.pk).update(next_due_at=at, covered_until=None)
    assert deliveries.plan_due(timezone.now()) == 1
    assert Delivery.objects.count() == 1
    row.refresh_from_db()
    assert row.next_due_at > timezone.now()


@pytest.mark.parametrize("where", ["claimed", "handed over"])
def test_kill_9_loses_no_mail(
    inbox: Inbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    [row] = followers(1)
    log = tmp_path / "worker.log"
    log.touch()
    monkeypatch.setenv("WEIR_SMTP_URL", inbox.url)
    monkeypatch.setenv("WEIR_SECRET_KEY", django_settings.SECRET_KEY)
    inbox.hold = threading.Event()
    with celery_worker(QUEUE, tmp_path, log) as worker:
        enqueue("workers.tasks.notify.send_digests", queue=QUEUE)
        wait_for("a worker that hands a mail over", inbox.at_data.is_set, log)
        half = Delivery.objects.get()
        assert half.state == DeliveryState.SENDING
        kill(worker)
    if where == "claimed":  # as if it had died before the mail was composed
        Delivery.objects.update(message=None)
    inbox.hold.set()
    inbox.hold = None
    wait_for("the server to be done with the dead worker's mail", lambda: len(inbox.mails) <= 1, log)
    before = len(inbox.mails)
    send_digests()
    assert len(inbox.mails) == before, "the lease still holds"
    Delivery.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    inbox.mails.clear()
    send_digests()
    done = Delivery.objects.get()
    assert (done.state, done.attempts) == (DeliveryState.SENT, 2)
    assert [mail.recipients for mail in inbox.mails] == [[row.person.email]]


def test_whoever_lost_the_lease_sends_nothing(inbox: Inbox) -> None:
    followers(1)
    now = timezone.now()
    deliveries.plan_due(now)
    [slow] = deliveries.claim("slow", now, 10)
    assert deliveries.claim("quick", now, 10) == []
    later = now + deliveries.LEASE + timedelta(seconds=1)
    [quick] = deliveries.claim("quick", later, 10)
    assert not deliveries.hold(slow, later, subject="mine")
    assert deliveries.hold(quick, later, subject="mine")
    deliveries.sent(slow, later)
    assert Delivery.objects.get().state == DeliveryState.SENDING


def test_a_mail_server_that_is_away_is_left_alone_longer_each_time_and_then_nothing_is_lost(
    inbox: Inbox, settings: object
) -> None:
    wanted = followers(30)
    good = inbox.url
    settings.WEIR_SMTP_URL = "smtp://127.0.0.1:1"  # type: ignore[attr-defined]
    waits = []
    for _ in range(4):
        send_digests()
        mail = Carrier.objects.get(pk=carriers.MAIL)
        assert mail.not_before is not None
        assert mail.failed_at is not None
        waits.append((mail.not_before - mail.failed_at).total_seconds())
        send_digests()  # nobody asks within the wait
        assert Carrier.objects.get(pk=carriers.MAIL).failures == len(waits)
        Carrier.objects.update(not_before=timezone.now())
        Delivery.objects.update(not_before=timezone.now())
    assert waits == [15, 30, 60, 120]
    told = selectors.backlog(wanted[0].person)
    assert told.waiting == 1
    assert told.carrier is not None
    assert told.carrier.error.startswith("the mail server 127.0.0.1:1 took nothing:")
    assert max(Delivery.objects.values_list("attempts", flat=True)) <= 4
    settings.WEIR_SMTP_URL = good  # type: ignore[attr-defined]
    send_digests()
    assert len(inbox.mails) == 30
    assert Carrier.objects.get(pk=carriers.MAIL).failures == 0


def test_what_fails_for_three_days_is_given_up_and_says_so(inbox: Inbox) -> None:
    followers(1)
    inbox.answer = "451 not now"
    deliveries.plan_due(timezone.now())
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=4))
    send_digests()
    row = Delivery.objects.get()
    assert row.state == DeliveryState.FAILED
    assert row.error.startswith("given up after 3 days: the mail server answered 451")
