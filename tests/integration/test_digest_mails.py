"""Digests that a real mail server receives: their parts, pictures, links and headers, and what is in them."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from html import unescape
from html.parser import HTMLParser

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from PIL import Image

from analytics.model.activity import ActivityType
from tests.support.changes import make_job, proposal
from tests.support.digests import HOUR, due, eventful, follower, judged, limiter_moved, stands
from tests.support.mail_server import Inbox, mail_server
from webapp.accounts.models import User
from webapp.bursts.models import Cluster, HeadroomAlert
from webapp.jobs.models import Job, Membership, Role
from webapp.notifications import retention, selectors
from webapp.notifications.composing import compose, envelope_of
from webapp.notifications.content import Composer
from webapp.notifications.models import Delivery, DeliveryState, HourlyLimiter, Subscription
from webapp.notifications.render import message_of
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from workers.tasks.notify import send_digests

pytestmark = pytest.mark.django_db(transaction=True)


class Page(HTMLParser):
    """The words, links and pictures of an HTML text, and everything in it that would be loaded."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.pictures: list[str] = []
        self.styled = self.unstyled = 0
        self._silent = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self._silent += tag in ("style", "title")
        if tag == "a":
            self.links.append(known["href"] or "")
        if tag == "img":
            self.pictures.append(known["src"] or "")
        if tag in ("a", "p", "h1", "h2", "img", "td"):
            self.styled += "style" in known
            self.unstyled += "style" not in known
        assert tag not in ("link", "script", "iframe", "form")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("style", "title")

    def handle_data(self, data: str) -> None:
        if not self._silent and data.strip():
            self.words.append(" ".join(data.split()))


@pytest.fixture
def inbox(settings: object) -> Iterator[Inbox]:
    with mail_server() as found:
        settings.WEIR_SMTP_URL = found.url  # type: ignore[attr-defined]
        settings.WEIR_PUBLIC_URL = "https://weir.example"  # type: ignore[attr-defined]
        settings.WEIR_MAIL_FROM = "Weir <weir@ops.example>"  # type: ignore[attr-defined]
        yield found


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def parsed(content: bytes) -> EmailMessage:
    found = message_from_bytes(content, policy=default)
    assert isinstance(found, EmailMessage)
    return found


def parts(content: bytes) -> tuple[str, Page, dict[str, bytes]]:
    """The plain text, the HTML, and the pictures by content id."""
    mail = parsed(content)
    plain, html = mail.get_body(("plain",)), mail.get_body(("html",))
    assert plain is not None
    assert html is not None
    pictures = {
        part["Content-ID"][1:-1]: part.get_content()
        for part in mail.walk()
        if part.get_content_type() == "image/png"
    }
    return plain.get_content(), Page(html.get_content()), pictures


def test_an_eventful_day_makes_a_mail_with_both_texts_pictures_links_and_headers(
    inbox: Inbox, now: datetime
) -> None:
    job, waits = eventful(now)
    ann = follower(job)
    row = due(ann, job, now)
    send_digests()
    [received] = inbox.mails
    assert (received.sender, received.recipients) == ("weir@ops.example", [ann.email])
    mail = parsed(received.content)
    assert mail["Subject"] == (
        f"Weir daily, {job.group.name}: 1 decision waits for you; 1 change came to something; 1 limiter moved"
    )
    assert mail["From"] == "Weir <weir@ops.example>"
    assert mail["To"] == ann.email
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert re.fullmatch(r"<https://weir\.example/unsubscribe/\d+:[\w-]+>", mail["List-Unsubscribe"])
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail["Message-ID"] == f"<digest-{row.pk}-{int(row.next_due_at.timestamp())}@ops.example>"
    assert all(len(line) <= 998 for line in received.content.split(b"\r\n"))

    text, page, pictures = parts(received.content)
    assert set(page.pictures) == {f"cid:{cid}" for cid in pictures}
    assert len(pictures) == 1
    for picture in pictures.values():
        image = Image.open(io.BytesIO(picture))
        assert image.size == (1056, 208)
        assert len(image.getcolors(100_000) or ()) > 3, "the picture is empty"
    assert page.unstyled == 0, "a mail client would show this as it likes"
    wanted = {
        f"https://weir.example/proposals/{waits.pk}", f"https://weir.example/jobs/{job.pk}",
        "https://weir.example/notifications",
    }  # fmt: skip
    assert wanted <= set(page.links)
    assert all(link.startswith("https://weir.example/") for link in page.links)
    assert f"Rescale {job.name}: split 1 → 5, count 1 → 2" in text
    assert "Waiting costs 702/s of what the sources should deliver" in text
    assert "split: predicted 90 % busy, measured 88 %." in text
    assert "Limited by processing in count, 62 % of critical paths. Before: scheduling, 48 %." in text


def test_the_two_texts_of_a_mail_say_the_same(inbox: Inbox, now: datetime) -> None:
    job, _ = eventful(now)
    judged(job, now, State.REGRESSED)
    due(follower(job), job, now)
    send_digests()
    text, page, _ = parts(inbox.mails[0].content)
    flat = " ".join(text.split()).lower()
    only_html = {"settings", "unsubscribe", "·", "see all", "scheduling", "processing"}
    missing = [words for words in page.words if unescape(words).lower() not in flat]
    assert [words for words in missing if words.lower() not in only_html] == []
    assert set(re.findall(r"https://\S+", text)) == set(page.links)


def test_a_quiet_day_sends_nothing_unless_that_is_wanted(inbox: Inbox, now: datetime) -> None:
    job = make_job()
    stands(job, now)
    limiter_moved(job, now)  # nothing moved: the same limiter the day before
    HourlyLimiter.objects.update(activity=ActivityType.PROCESSING, operator="count", cp=0.6)
    quiet = due(follower(job, "bob"), job, now)
    always = due(follower(job, "eve"), job, now, only_if_something=False)
    send_digests()
    assert [mail.recipients for mail in inbox.mails] == [[always.person.email]]
    assert Delivery.objects.get(subscription=quiet).state == DeliveryState.SKIPPED
    text, _, pictures = parts(inbox.mails[0].content)
    assert "Nothing happened: no decision waits, no limiter moved, every job reports." in text
    assert pictures == {}


def test_the_first_digest_of_a_trial_waits_until_there_is_something_to_tell(
    settings: object, now: datetime
) -> None:
    settings.WEIR_SMTP_URL = ""  # type: ignore[attr-defined]
    root = User.objects.create_superuser("admin")
    call_command("first_digest")
    call_command("first_digest")
    row = Subscription.objects.get()
    assert row.person == root
    assert now < row.next_due_at < now + timedelta(minutes=5)
    Subscription.objects.update(next_due_at=now - timedelta(seconds=1))
    send_digests()
    waits = Delivery.objects.get()
    assert (waits.state, waits.error) == (DeliveryState.DUE, "")
    limiter_moved(make_job(), now)
    Delivery.objects.update(not_before=timezone.now())
    send_digests()
    assert "1 limiter moved" in selectors.outbox(root).get().subject


def test_decisions_come_in_the_order_of_what_waiting_costs(inbox: Inbox, now: datetime) -> None:
    first = make_job()
    ann = follower(first)
    costs = {}
    for shortfall in (10.0, 702.0, 90.0):
        job = make_job()
        Membership.objects.create(user=ann, group=job.group, role=Role.APPROVER)
        costs[shortfall] = proposal(job, shortfall_per_s=shortfall)
    due(ann, None, now)
    send_digests()
    text, page, _ = parts(inbox.mails[0].content)
    links = [link for link in page.links if "/proposals/" in link]
    assert list(dict.fromkeys(links)) == [
        f"https://weir.example/proposals/{costs[cost].pk}" for cost in (702.0, 90.0, 10.0)
    ]
    assert "3 decisions wait for you" in text


def test_nobody_is_told_about_jobs_they_may_not_see(inbox: Inbox, now: datetime) -> None:
    job, waits = eventful(now)
    ann, bob, eve = follower(job), follower(job, "bob", Role.VIEWER), follower(make_job(), "eve")
    for who in (ann, bob):
        due(who, job, now)
    due(eve, None, now)
    gone = follower(job, "gus")
    left = due(gone, job, now)
    Membership.objects.filter(user=gone).delete()
    send_digests()
    texts = {mail.recipients[0]: parts(mail.content)[0] for mail in inbox.mails}
    assert set(texts) == {ann.email, bob.email}
    assert f"/proposals/{waits.pk}" in texts[ann.email]
    assert f"/proposals/{waits.pk}" not in texts[bob.email], "a viewer has nothing to decide"
    assert Delivery.objects.get(subscription=left).state == DeliveryState.SKIPPED


def test_a_job_that_fell_silent_is_told_once_and_not_forever(inbox: Inbox, now: datetime) -> None:
    job = make_job()
    row = due(follower(job), job, now)
    Job.objects.filter(pk=job.pk).update(last_received_at=row.next_due_at - 3 * HOUR)
    send_digests()
    text, _, _ = parts(inbox.mails[0].content)
    assert "1 job no longer reports" in text
    assert "3 h before" in text
    later = now + timedelta(days=1)
    composed, _ = compose(row, now, later, Composer())
    assert composed.sections == ()


def test_headroom_that_is_low_or_was_is_told_to_those_who_see_the_cluster(
    inbox: Inbox, now: datetime
) -> None:
    job = make_job()
    low = Cluster.objects.create(name="low", group=job.group)
    over = Cluster.objects.create(name="over", group=job.group)
    Cluster.objects.create(name="fine", group=job.group)
    at = int(now.timestamp() * 1e9)
    hour = 3_600 * 10**9
    for cluster, closed in ((low, None), (over, at - hour)):
        HeadroomAlert.objects.create(
            cluster=cluster, threshold_ratio=0.1, opened_ns=at - 3 * hour, opened_ratio=0.09, least_ratio=0.04,
            limit="cpu of node A", closed_ns=closed,
        )  # fmt: skip
    due(follower(job), job, now)
    due(follower(make_job(), "eve"), None, now)
    send_digests()
    [mail] = inbox.mails
    text, page, _ = parts(mail.content)
    assert "headroom is, was or soon will be low in 2 clusters" in text.lower()
    assert "Headroom is below 10 % since " in text
    assert "the least was 4 %." in text
    assert "What stopped growth: cpu of node A." in text
    links = list(dict.fromkeys(link for link in page.links if "/bursts/" in link))
    assert links == [f"https://weir.example/bursts/{cluster.pk}" for cluster in (low, over)]


def test_old_mails_and_old_hours_are_forgotten_and_the_history_stays_for_a_while(
    inbox: Inbox, now: datetime
) -> None:
    job, _ = eventful(now)
    due(follower(job), job, now)
    send_digests()
    assert not any(retention.forget(now - timedelta(days=3), now - timedelta(days=90)).values())
    Delivery.objects.update(period_to=now - timedelta(days=20))
    HourlyLimiter.objects.filter(pk__gt=HourlyLimiter.objects.order_by("pk")[0].pk).delete()
    HourlyLimiter.objects.update(hour=now - timedelta(days=20))
    gone = retention.forget(now - timedelta(days=14), now - timedelta(days=90))
    assert {what: count for what, count in gone.items() if count} == {"hourly limiters": 1, "old mails": 1}
    assert Delivery.objects.get().message is None
    assert retention.forget(now, now - timedelta(days=10))["old notices of mails"] == 1


def test_the_same_delivery_has_the_same_bytes_whoever_makes_it(now: datetime) -> None:
    job, _ = eventful(now)
    row = due(follower(job), job, now)
    until = row.next_due_at
    made = {
        message_of(compose(row, until - timedelta(days=1), until, Composer())[1], envelope_of(row, until))
        for _ in range(3)
    }
    assert len(made) == 1


def test_a_failed_try_is_repeated_with_the_same_bytes_though_the_world_moved_on(
    inbox: Inbox, now: datetime
) -> None:
    job, waits = eventful(now)
    due(follower(job), job, now)
    inbox.answer = "451 try again later"
    send_digests()
    row = Delivery.objects.get()
    assert (row.state, inbox.mails) == (DeliveryState.DUE, [])
    assert row.error == "the mail server answered 451: try again later"
    assert row.not_before > timezone.now() + timedelta(seconds=30)
    first = bytes(row.message or b"")
    Proposal.objects.filter(pk=waits.pk).update(state=State.EXPIRED)
    inbox.answer = "250 OK"
    Delivery.objects.update(not_before=timezone.now())
    send_digests()
    row.refresh_from_db()
    assert (row.state, row.attempts, row.error) == (DeliveryState.SENT, 2, "")
    assert bytes(row.message or b"") == first
    assert selectors.mail(row.subscription.person, row.pk) == inbox.mails[0].content


def test_an_address_that_the_server_refuses_is_given_up_and_the_others_get_theirs(
    inbox: Inbox, now: datetime
) -> None:
    job, _ = eventful(now)
    ann, bob = follower(job), follower(job, "bob")
    inbox.refused[ann.email] = "550 no such user"
    for who in (ann, bob, follower(job, "eve")):
        due(who, job, now)
    nobody = follower(job, "gus")
    User.objects.filter(pk=nobody.pk).update(email="")
    due(nobody, job, now)
    send_digests()
    assert len(inbox.mails) == 2
    lost = Delivery.objects.get(subscription__person=ann)
    assert (lost.state, lost.error) == (DeliveryState.FAILED, "the mail server answered 550: no such user")
    assert "no mail address" in Delivery.objects.get(subscription__person=nobody).error
    assert selectors.backlog(ann).given_up == 1


def test_the_whole_loop_without_a_server_ends_in_the_outbox(settings: object, now: datetime) -> None:
    settings.WEIR_SMTP_URL = ""  # type: ignore[attr-defined]
    job, _ = eventful(now)
    ann = follower(job)
    User.objects.filter(pk=ann.pk).update(email="")
    due(ann, job, now)
    send_digests()
    [row] = selectors.outbox(ann)
    mail = selectors.mail(ann, row.pk)
    assert mail is not None
    assert parsed(mail)["To"] == f"{ann.pk}@localhost"
    assert selectors.mail(follower(job, "bob"), row.pk) is None


def test_only_a_post_unsubscribes_and_the_link_needs_no_sign_in(inbox: Inbox, now: datetime) -> None:
    job, _ = eventful(now)
    row = due(follower(job), job, now)
    send_digests()
    address = parsed(inbox.mails[0].content)["List-Unsubscribe"][1:-1].removeprefix("https://weir.example")
    stranger = Client(enforce_csrf_checks=True)
    asked = stranger.get(address)
    assert asked.status_code == 200
    assert b"<button" in asked.content
    assert Subscription.objects.get(pk=row.pk).active
    done = stranger.post(address, {"List-Unsubscribe": "One-Click"})
    assert done.status_code == 200
    assert b"Unsubscribed" in done.content
    assert not Subscription.objects.get(pk=row.pk).active
    assert stranger.post(address[:-1] + ("a" if address[-1] != "a" else "b")).status_code == 404


def test_a_digest_covers_exactly_what_came_after_the_one_before(inbox: Inbox) -> None:
    job, _ = eventful(timezone.now())
    ann = follower(job)
    now = datetime.now(UTC)
    row = due(ann, job, now)
    send_digests()
    first = Delivery.objects.get()
    Subscription.objects.filter(pk=row.pk).update(next_due_at=first.period_to + timedelta(seconds=1))
    send_digests()
    second = Delivery.objects.order_by("-id").first()
    assert second is not None
    assert second.period_from == first.period_to
