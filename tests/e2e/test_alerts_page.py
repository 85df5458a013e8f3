"""The tab Alerts: a rule is previewed and saved, fires, is looked after, silenced, over, and removed."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from tests.support.alerting import beside, rule, windows
from tests.support.browser import LOOKS, Visitor, accessibility_faults
from tests.support.changes import make_job, member
from webapp.accounts.models import User
from webapp.jobs.models import Job, Membership, Role
from webapp.notifications.alert_evaluation import evaluate_due
from webapp.notifications.alert_models import Alert, AlertRule, Silence
from webapp.notifications.alert_services import acknowledge, silence

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]
SHOTS = os.environ.get("WEIR_SHOTS", "")


def check(page: Page, name: str) -> None:
    page.wait_for_timeout(400)
    width = page.viewport_size["width"] if page.viewport_size else 0
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/alerts-{name}-{width}.png", full_page=True)
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def evaluate() -> None:
    AlertRule.objects.update(due_at=timezone.now())
    evaluate_due(timezone.now())


def test_an_admin_previews_a_rule_and_looks_after_what_it_finds(alice: Visitor) -> None:
    job = make_job()
    person = User.objects.get(username="alice")
    page = alice.page
    alice.go("/notifications?tab=alerts")
    expect(page.locator("#alert-said")).to_have_text("You are in no job group: alerts belong to groups.")
    Membership.objects.create(user=person, group=job.group, role=Role.ADMIN)
    now = timezone.now()
    windows(job, now - timedelta(minutes=20), [0.7, 0.8, 0.9, 0.4, 0.4, 0.4])
    windows(job, now - timedelta(minutes=2), [0.7, 0.8, 0.75])
    alice.go("/notifications?tab=alerts")
    expect(page.locator("#alert-said")).to_have_text("No rule watches anything yet.")

    page.get_by_role("button", name="Save the rule").click()
    expect(page.locator("#rule-wrong")).to_contain_text("Name: a name of 1 to 100 characters is needed")
    expect(page.locator("#rule-wrong")).to_contain_text("What: a name is needed")
    page.fill("#rule-target", "count")
    page.fill("#rule-name", "count is busy")
    page.get_by_role("button", name="Preview on the last 24 h").click()
    found = page.locator("#rule-preview")
    expect(found).to_contain_text("would have fired 2 times, on 9 values of 1 subject")
    expect(found.locator("tbody tr").first).to_contain_text("still")
    expect(found.locator("tbody tr").last).to_contain_text("90 %")
    page.click("#rule-severity")
    page.get_by_role("option", name="critical").click()
    page.get_by_role("button", name="Save the rule").click()
    expect(page.locator("#alert-done")).to_contain_text("Saved count is busy")
    expect(page.locator("#alert-list")).to_contain_text(
        "CP of operator count above 60 % for 3 windows in a row; over at 50 % or less for 3 windows in a row."
    )
    evaluate()
    expect(page.locator("#alert-said")).to_contain_text("1 alert fires, the oldest since")
    row = page.locator(".source.critical")
    expect(row).to_contain_text("now 75 %")
    expect(row).to_contain_text("▼ critical")
    row.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#alert-said")).to_contain_text("1 acknowledged")
    expect(page.locator("#alert-list")).to_contain_text("alice looks after it since")
    row.get_by_role("button", name="Take it back").click()
    page.get_by_role("dialog").get_by_role("button", name="Take it back").click()
    expect(page.locator("#alert-done")).to_have_text("Nobody looks after it now.")
    expect(page.locator("#alert-said")).not_to_contain_text("acknowledged")
    row.get_by_role("button", name="Acknowledge").click()
    expect(page.locator("#alert-list")).to_contain_text("alice looks after it since")

    page.click("#silence-what")
    page.get_by_role("option", name="count is busy of").click()
    page.get_by_role("button", name="Silence it").click()
    expect(page.locator("#silence-wrong")).to_contain_text(
        "Reason: a reason of 1 to 300 characters is needed"
    )
    page.fill("#silence-reason", "a sale")
    page.get_by_role("button", name="Silence it").click()
    expect(page.locator("#alert-said")).to_contain_text("1 silenced")
    expect(page.locator("#alert-list")).to_contain_text("by alice: a sale")
    page.get_by_role("button", name="End it now").click()
    expect(page.locator("#alert-said")).not_to_contain_text("silenced")
    assert Silence.objects.get().ended_by_name == "alice"
    row.get_by_role("button", name="Silence this job").click()
    expect(page.locator("#alert-done")).to_contain_text(f"{job.name} is in the form below")
    expect(page.locator("#silence-what")).to_have_value(f"all rules of {job.group}")
    expect(page.locator("#silence-job")).to_have_value(job.name)
    page.fill("#silence-reason", "new disks")
    page.get_by_role("button", name="Silence it").click()
    silences = page.get_by_role("list", name="Silences")
    expect(silences).to_contain_text(f"{job.name}, all rules of {job.group}")
    expect(silences).to_contain_text("channels hear nothing about this job")
    expect(page.get_by_role("button", name="Silence this job")).to_have_count(0)
    check(page, "silenced-job")
    page.get_by_role("button", name="End it now").click()
    expect(page.locator("#alert-said")).not_to_contain_text("silenced")

    page.get_by_role("button", name="Change count is busy").click()
    expect(page.locator("#rule-title")).to_have_text("Change the rule count is busy")
    expect(page.locator("#rule-threshold")).to_have_value("60")
    page.fill("#rule-threshold", "65.5")
    page.get_by_role("button", name="Save the rule").click()
    expect(page.locator("#alert-list")).to_contain_text("above 65.5 %")
    assert AlertRule.objects.get().threshold == 0.655
    windows(job, now - timedelta(minutes=1), [0.1, 0.2, 0.3])
    evaluate()
    expect(page.locator("#alert-said")).to_have_text("Nothing fires. 1 rule watches.")
    past = page.get_by_role("region", name="Alerts that are over").locator("tbody tr")
    expect(past.first).to_contain_text("75 %")
    expect(past.first).to_contain_text("alice")
    page.click("#rule-kind")
    page.get_by_role("option", name="no data from a job").click()
    expect(page.locator("#rule-target-field")).to_be_hidden()
    check(page, "forms")
    expect(page.locator("#rule-threshold-label")).to_have_text("Fires at, minutes")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator("#alert-said")).to_have_text("No rule watches anything yet.")
    assert not Alert.objects.exists()


@LOOKS
def test_who_may_only_look_sees_everything_and_can_press_nothing(
    visit: Visit, people: None, screen: dict[str, int], theme: str
) -> None:
    job, boss = busy()
    other, now = beside(job), timezone.now()
    assert job.group is not None
    made = rule(boss, job.group)
    rule(boss, job.group, name="warn early", threshold=0.3, clear=0.3, severity="warning", fire_after=1)
    rule(boss, job.group, name="all is quiet", kind="no_data", target="", threshold=9e5, clear=9e5)
    windows(job, now - timedelta(minutes=5), [0.7, 0.8, 0.9, 0.4, 0.4, 0.7, 0.7, 0.9])
    windows(other, now - timedelta(minutes=4), [0.7, 0.8, 0.9])
    evaluate()
    acknowledge(boss, Alert.objects.filter(rule=made, resolved_at=None).earliest("pk").pk)
    silence(boss, job.group, now + timedelta(hours=1), "a sale", AlertRule.objects.get(name="warn early"))
    Membership.objects.create(user=User.objects.get(username="alice"), group=job.group, role=Role.VIEWER)
    page = visit(viewport=screen, color_scheme=theme).sign_in(
        "alice", path=f"/notifications?tab=alerts&theme={theme}"
    )
    expect(page.locator("#alert-said")).to_contain_text("4 alerts fire")
    expect(page.locator("#alert-said")).to_contain_text("1 acknowledged; 2 silenced")
    expect(page.locator("#alerts-rules")).to_have_text("Rules (3)")
    for name in ("Acknowledge", "Take it back", "End it now", "Change", "Remove"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    for form in ("#rule-form", "#silence-form"):
        expect(page.locator(form)).to_be_hidden()
    check(page, theme)


def busy() -> tuple[Job, User]:
    """A job with an admin."""
    job = make_job()
    return job, member(job, Role.ADMIN, "boss")
