"""The Notifications page: a person subscribes, sees the next digest as it will be sent, and finds it afterwards."""

from __future__ import annotations

import io
import os
from collections.abc import Callable

import pytest
from django.utils import timezone
from PIL import Image, ImageColor
from playwright.sync_api import Page, expect

from tests.support.browser import DESKTOP, PHONE, Visitor, accessibility_faults
from tests.support.digests import eventful
from webapp.accounts.models import User
from webapp.jobs.models import Job, Membership, Role
from webapp.notifications.models import Delivery, Subscription
from workers.tasks.notify import send_digests, send_messages

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]
SHOTS = os.environ.get("WEIR_SHOTS", "")


def check(page: Page, width: int, name: str) -> None:
    page.wait_for_timeout(400)
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}-{width}.png", full_page=True)
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def check_as_mail(visit: Visit, html: str) -> None:
    """In a mail client of 600 px: it fits, has contrast and its ground is that of the reader's theme."""
    for theme, ground in (("light", "#f6f7f9"), ("dark", "#0f1115")):
        page = visit(viewport={"width": 600, "height": 900}, color_scheme=theme).page
        page.set_content(html)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        check(page, 600, f"mail-{theme}")
        seen = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        assert seen.width == 600
        assert seen.getpixel((2, seen.height // 2)) == ImageColor.getrgb(ground), theme
        assert page.locator("img.chart").first.evaluate("one => one.naturalWidth") == 1056


def test_a_person_subscribes_previews_gets_and_finds_a_digest(
    alice: Visitor, visit: Visit, settings: object
) -> None:
    settings.WEIR_SMTP_URL = ""  # type: ignore[attr-defined]
    job, waits = eventful(timezone.now())
    Job.objects.update(finished=True)  # else it falls silent while a slow machine draws the pages
    person = User.objects.get(username="alice")
    Membership.objects.create(user=person, group=job.group, role=Role.APPROVER)
    page = alice.page
    page.click("#person summary")
    page.get_by_role("link", name="My notifications").click()
    expect(page.locator("#notify-said")).to_have_text("You get no digest.")
    expect(page.locator("#notify-list")).to_contain_text("No digest yet")

    page.get_by_label("Time zone").fill("Europe/Nowhere")
    page.get_by_role("button", name="Subscribe").click()
    expect(page.locator("#notify-wrong")).to_contain_text("there is no time zone Europe/Nowhere")
    page.get_by_label("Time zone").fill("Europe/Berlin")
    page.click("#notify-group")
    page.get_by_role("option", name=job.group.name).click()
    page.click("#notify-hour")
    page.get_by_role("option", name="06:00").click()
    page.get_by_role("button", name="Subscribe").click()
    row = page.locator(".source")
    expect(row).to_contain_text(f"Daily digest of {job.group.name}")
    expect(row).to_contain_text("every day at 06:00 Europe/Berlin, only if something happened")
    subscription = Subscription.objects.get()
    assert (subscription.person, subscription.hour, subscription.group) == (person, 6, job.group)
    page.get_by_label("Your mail address").fill("not an address")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notify-address-wrong")).to_contain_text("valid email address")
    page.get_by_label("Your mail address").fill("alice@example.org")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notify-done")).to_contain_text("go to this address")
    check(page, DESKTOP["width"], "digests")

    row.get_by_role("button", name="Preview").click()
    expect(page.locator("#mail-said")).to_contain_text("would be this mail")
    expect(page.locator(".mail-heads")).to_contain_text("alice@example.org")
    frame = page.frame_locator(".mail-frame")
    expect(frame.get_by_role("heading", level=1)).to_contain_text("1 decision waits for you")
    link = frame.get_by_role("link", name=f"Rescale {job.name}").first
    assert (link.get_attribute("href") or "").endswith(f"/proposals/{waits.pk}")
    loaded = frame.locator("img.chart").first.evaluate("one => one.naturalWidth")
    assert loaded == 1056
    check(page, DESKTOP["width"], "preview")
    preview = page.locator(".mail-frame").get_attribute("srcdoc")

    Subscription.objects.update(next_due_at=timezone.now())
    send_digests()
    assert Delivery.objects.get().state == "sent"
    page.click("#tab-outbox")
    expect(page.locator("#mail-said")).to_have_text(
        "No mail server is set: mails stay here. 1 mail in the outbox."
    )
    page.get_by_role("button", name="Show the daily digest").click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("1 decision waits for you")
    sent = page.locator(".mail-frame").get_attribute("srcdoc")
    assert preview is not None
    assert sent is not None
    assert body_of(sent) == body_of(preview), "the preview shows what is sent"
    check_as_mail(visit, sent)
    page.get_by_role("button", name="Plain text").click()
    expect(page.locator(".mail-text")).to_contain_text("DECISIONS THAT WAIT FOR YOU")
    check(page, DESKTOP["width"], "outbox")

    page.click("#tab-digests")
    page.locator(".source").get_by_role("button", name="Pause").click()
    expect(page.locator(".source")).to_contain_text("Paused: nothing is sent.")
    page.locator(".source").get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".source")).to_have_count(0)
    assert not Subscription.objects.exists()


def test_an_admin_makes_a_channel_tests_it_and_never_sees_its_secret_again(
    visit: Visit, people: None, settings: object
) -> None:
    settings.WEIR_ALLOWED_INSIDE = ""  # type: ignore[attr-defined]
    job, _ = eventful(timezone.now())
    Membership.objects.create(user=User.objects.get(username="alice"), group=job.group, role=Role.ADMIN)
    page = visit(color_scheme="dark").sign_in("alice", path="/notifications?tab=channels&theme=dark")
    expect(page.locator("#channel-said")).to_contain_text("No channel yet")
    page.get_by_label("Name").fill("ops")
    page.get_by_label("Address").fill("http://127.0.0.1:9/hook")
    page.get_by_label("Secret").fill("whsec_" + "A" * 44)
    page.get_by_role("button", name="Make the channel").click()
    expect(page.locator("#channel-wrong")).to_contain_text("127.0.0.1 is inside the network")
    settings.WEIR_ALLOWED_INSIDE = "127.0.0.1/32"  # type: ignore[attr-defined]
    page.get_by_role("button", name="Make the channel").click()
    row = page.locator(".source")
    expect(row).to_contain_text("signed webhook, http://127.0.0.1:9/hook")
    expect(page.get_by_label("Secret")).to_have_value("")
    assert "AAAA" not in page.content()
    row.get_by_role("button", name="Send a test").click()
    expect(row).to_contain_text("… waits")
    send_messages()
    expect(row).to_contain_text("no answer")
    expect(page.locator("#channel-said")).to_contain_text("the last message failed to ops")
    check(page, DESKTOP["width"], "channels")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def body_of(srcdoc: str) -> list[str]:
    """The lines of a mail's HTML that do not depend on the minute in which it was made."""
    import re

    lines = re.sub(r"(Proposed|,) \d+ (s|min|h)[^.,<]* (ago|before)", "", srcdoc).splitlines()
    varies = ('class="period"', "period", "unsubscribe", "data:image")
    return [line for line in lines if not any(word in line for word in varies)]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_is_usable_on_a_phone_in_both_themes(visit: Visit, people: None, theme: str) -> None:
    job, _ = eventful(timezone.now())
    person = User.objects.get(username="alice")
    Membership.objects.create(user=person, group=job.group, role=Role.APPROVER)
    row = Subscription.objects.create(
        person=person, group=job.group, rhythm="weekly", weekday=4, zone="America/New_York",
        next_due_at=timezone.now(),
    )  # fmt: skip
    window = visit(viewport=PHONE, color_scheme=theme)
    page = window.sign_in("alice", path=f"/notifications?theme={theme}")
    expect(page.locator(".source")).to_contain_text("every Friday at 07:00 America/New_York")
    check(page, PHONE["width"], f"phone-{theme}")
    window.go(f"/notifications?theme={theme}&tab=preview&subscription={row.pk}")
    expect(page.locator(".mail-frame")).to_be_visible()
    check(page, PHONE["width"], f"phone-preview-{theme}")
