"""Proposals in the browser: who decides, who cannot, and what the other one reads."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PASSWORD, Visitor, accessibility_faults
from tests.support.changes import COUNT, SPLIT, draft, make_job
from tests.support.fleet import advise_here
from tests.support.flink_engine_server import FlinkServer, flink_server
from tests.support.flink_runs import around
from tests.support.scaling import SOURCE_NAME, recorded
from webapp.accounts.models import User
from webapp.analysis.models import ScalingSetup
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, JobGroup, Membership, Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.services import approve, propose
from workers.tasks.apply import apply_proposal
from workers.tasks.verify import verify_due

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]


@pytest.fixture
def flink() -> Iterator[FlinkServer]:
    with flink_server() as server:
        yield server


def give(name: str, job: Job, role: Role) -> User:
    """This person's role on the job; the account is made if it is not there."""
    who = User.objects.filter(username=name).first() or User.objects.create_user(name, password=PASSWORD)
    Membership.objects.update_or_create(user=who, group=job.group, defaults={"role": role})
    return who


def enter(visit: Visit, name: str, path: str, **more: object) -> Page:
    window = visit(color_scheme="light", **more)
    return window.sign_in(name, path=path)


def trail(row: Proposal) -> list[tuple[str, str, str]]:
    events = AuditEvent.objects.filter(object_type="proposal", object_id=row.pk, job_id=row.job_id).order_by(
        "id"
    )
    return list(events.values_list("actor_name", "action", "outcome"))


def test_one_approves_and_the_other_with_the_older_page_is_told_what_was_decided(visit: Visit) -> None:
    job = make_job()
    for name in ("anna", "ben"):
        give(name, job, Role.APPROVER)
    row = propose(None, job, draft(risks=("count would run on one slot",)))
    anna, ben = (enter(visit, name, f"/proposals/{row.pk}") for name in ("anna", "ben"))
    expect(anna.locator("#proposal-sentence")).to_contain_text("split 1 → 5, count 1 → 2")
    expect(anna.locator("#proposal-state")).to_contain_text("waits for a decision")
    expect(anna.locator(".risky")).to_contain_text("⚠ Risky: count would run on one slot")
    ben.click("#proposal-approve")
    expect(ben.locator("#decide-yes")).to_have_text("Rescale split to 5 and count to 2")
    anna.click("#proposal-approve")
    expect(anna.locator("#decide-words")).to_contain_text("Nothing is sent: the job's rules say dry run.")
    anna.click("#decide-yes")
    expect(anna.locator("#decide-error")).to_contain_text("give a reason: this is flagged risky")
    anna.fill("#decide-reason", "the backlog grows")
    anna.dblclick("#decide-yes")
    expect(anna.locator("#decided-said")).to_contain_text("✓ Approved")
    expect(anna.locator("#decide")).to_be_hidden()
    expect(anna.locator("#proposal-state")).to_contain_text("approved")
    expect(anna.locator("#proposal-history")).to_contain_text("“the backlog grows”")
    ben.fill("#decide-reason", "me too")
    ben.click("#decide-yes")
    expect(ben.locator("#decide-error")).to_contain_text(
        "Not done: nothing is left to decide, it is approved"
    )
    expect(ben.locator("#decide-yes")).to_be_disabled()
    ben.click("#decide-no")
    expect(ben.locator("#proposal-approve")).to_have_count(0)
    assert trail(row) == [
        ("policy ds2", "proposal.propose", "done"),
        ("anna", "proposal.approve", "refused"),
        ("anna", "proposal.approve", "done"),
        ("ben", "proposal.approve", "refused"),
    ]


def test_what_is_recommended_is_proposed_by_a_button_for_somebody_else_to_decide(visit: Visit) -> None:
    job = recorded()
    job.group = JobGroup.objects.create(name="team")
    job.save()
    ScalingSetup.objects.create(job=job, targets_per_s={SOURCE_NAME: 900})
    advise_here(time.time_ns())
    give("olga", job, Role.OPERATOR)
    give("anna", job, Role.APPROVER)
    page = enter(visit, "olga", f"/jobs/{job.pk}?tab=scaling")
    button = page.get_by_role("button", name="Propose this: split 1 → 5 and count 1 → 2")
    expect(page.locator("#offer")).to_contain_text("Weir only observes this job")
    button.click()
    expect(page.locator("#offer")).to_contain_text("waits for a decision")
    expect(page.locator("#proposal-approve")).to_have_count(0)
    row = Proposal.objects.get(job=job)
    assert (row.by_hand, row.proposed_by_name, row.state) == (True, "olga", State.PROPOSED)
    other = enter(visit, "anna", f"/jobs/{job.pk}?tab=scaling")
    expect(other.locator("#offer")).to_contain_text("Made byolga, by hand")
    assert trail(row) == [("olga", "proposal.propose", "done")]


def test_a_rejection_needs_a_reason_and_ends_the_proposal(visit: Visit) -> None:
    job = make_job()
    give("anna", job, Role.APPROVER)
    row = propose(None, job, draft())
    page = enter(visit, "anna", f"/proposals/{row.pk}")
    expect(page.locator("#proposal-approve")).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator("#decide-label")).to_contain_text("required")
    expect(page.locator("#decide-reason")).to_be_focused()
    expect(page.locator("#decide-reason")).to_have_value("")
    page.click("#decide-yes")
    expect(page.locator("#decide-error")).to_contain_text("a rejection without one helps nobody")
    page.fill("#decide-reason", "not during the sale")
    page.click("#decide-yes")
    expect(page.locator("#proposal-state")).to_contain_text("rejected")
    row.refresh_from_db()
    assert (row.state, row.state_reason) == (State.REJECTED, "not during the sale")
    expect(page.locator("#proposal-sentence")).to_contain_text(
        re.compile("It is rejected: not during the sale")
    )


def test_the_inbox_is_worked_off_by_keyboard_what_costs_most_first(visit: Visit) -> None:
    cheap, dear, by_two = make_job(), make_job(), make_job(quorum=2)
    for job in (cheap, dear, by_two):
        give("anna", job, Role.APPROVER)
    first = propose(None, dear, draft(shortfall_per_s=702.0))
    second = propose(None, cheap, draft(shortfall_per_s=5.0))
    third = propose(None, by_two, draft())
    page = enter(visit, "anna", "/inbox")
    expect(page.locator("#inbox-sentence")).to_contain_text(
        "3 proposals wait for you. Together their jobs stay 707/s behind"
    )
    expect(page.locator("#inbox-count")).to_have_text("3")
    listed = page.locator("#inbox-list [data-item]")
    assert [int(item.get_attribute("data-item") or 0) for item in listed.all()] == [
        first.pk,
        second.pk,
        third.pk,
    ]
    card = page.locator("#proposal-card")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(card).to_have_attribute("data-proposal", str(second.pk))
    assert f"item={second.pk}" in page.url
    page.keyboard.press("a")
    expect(page.locator("#decide-title")).to_have_text(f"Approve proposal {second.pk}")
    expect(page.locator("#decide-reason")).to_be_focused()
    assert Proposal.objects.get(pk=second.pk).state == State.PROPOSED, "a key decides nothing"
    page.keyboard.press("Escape")
    expect(page.locator("#decide")).to_be_hidden()
    page.locator(f'[data-item="{second.pk}"]').focus()
    page.keyboard.press("k")
    expect(card).to_have_attribute("data-proposal", str(first.pk))
    page.keyboard.press("r")
    expect(page.locator("#decide-title")).to_have_text(f"Reject proposal {first.pk}")
    page.keyboard.type("not now")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#decided-said")).to_contain_text("✓ Rejected")
    expect(page.locator("#inbox-count")).to_have_text("2")
    page.locator(f'[data-item="{third.pk}"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator("#proposal-title")).to_have_text(f"Proposal {third.pk}")
    page.click("#proposal-approve")
    expect(page.locator("#decide-words")).to_contain_text("another person must agree before anything is done")
    page.click("#decide-yes")
    expect(page.locator("#decided-said")).to_contain_text("1 more approval needed")
    page.locator("body").press("g")
    page.locator("body").press("i")
    expect(page.locator("#inbox-sentence")).to_contain_text("1 proposal waits for you")
    page.click("#tab-history")
    expect(page.locator("#inbox-history tbody tr")).to_have_count(3)
    page.locator('select[data-param="show"]').select_option("rejected")
    expect(page.locator("#inbox-history tbody tr")).to_have_count(1)
    assert accessibility_faults(page) == []


def test_a_viewer_reads_why_not_and_the_frozen_job_says_so_to_everybody(visit: Visit) -> None:
    job = make_job(engine_url="")
    for name, role in (("vera", Role.VIEWER), ("adam", Role.ADMIN)):
        give(name, job, role)
    row = propose(None, job, draft())
    vera, adam = (enter(visit, name, f"/proposals/{row.pk}") for name in ("vera", "adam"))
    expect(vera.locator("#proposal-why-not")).to_contain_text("this needs the role approver")
    expect(vera.locator("#proposal-approve")).to_have_count(0)
    expect(vera.locator("#proposal-reject")).to_have_count(0)
    adam.goto(adam.url.split("/proposals")[0] + f"/jobs/{job.pk}?tab=rules")
    expect(adam.locator("#roles-list")).to_contain_text("vera")
    adam.fill("#freeze-reason", "the sale runs")
    adam.click("#freeze-job")
    expect(adam.locator("#alarm")).to_contain_text(f"Frozen. Changes of {job.name} are stopped by adam")
    adam.fill("#rules-quorum", "0")
    adam.click("#rules-save")
    expect(adam.locator("#rules-said")).to_contain_text("People who must agree")
    adam.fill("#rules-quorum", "2")
    adam.fill("#rules-windows", "mon 09:00-17:00 Europe/Berlin")
    adam.click("#rules-save")
    expect(adam.locator("#rules-sentence")).to_contain_text(
        "2 people must agree; changes are applied only on mon 09:00"
    )
    assert accessibility_faults(adam) == []
    expect(vera.locator("#alarm")).to_contain_text("the sale runs")
    adam.goto(adam.url.split("/jobs")[0] + f"/proposals/{row.pk}")
    expect(adam.locator("#proposal-why-not")).to_contain_text("adam froze")
    adam.click("#proposal-break-glass")
    expect(adam.locator("#decide-words .loud")).to_contain_text("You go past a rule")
    adam.fill("#decide-reason", "orders pile up")
    adam.click("#decide-yes")
    expect(adam.locator("#alarm")).to_contain_text("The glass was broken.")
    expect(vera.locator("#alarm")).to_contain_text("adam went past the rules")
    event = AuditEvent.objects.get(action="proposal.break_glass", object_id=row.pk, job_id=job.pk)
    assert (event.actor_name, event.loud, event.reason) == ("adam", True, "orders pile up")
    vera.goto(vera.url.split("/proposals")[0] + "/audit?loud=1")
    expect(vera.locator("#audit-list tbody tr")).to_have_count(1)
    assert accessibility_faults(vera) == []


def test_what_came_of_a_change_is_drawn_and_what_made_it_worse_is_taken_back(
    visit: Visit, flink: FlinkServer
) -> None:
    job = make_job(engine="flink", engine_url=flink.url)
    for name, role in (("olga", Role.OPERATOR), ("anna", Role.APPROVER)):
        give(name, job, role)
    row = propose(None, job, draft())
    approve(User.objects.get(username="anna"), row.pk, expected_version=1, reason="go")
    apply_proposal(row.pk)
    row = Proposal.objects.select_related("job", "attempt").get(pk=row.pk)
    around(row, 880, 400, {SPLIT: 0.2, COUNT: 0.2})
    verify_due()
    Proposal.objects.filter(undoes=row).update(state=State.EXPIRED)
    page = enter(visit, "olga", f"/proposals/{row.pk}")
    expect(page.locator("#proposal-state")).to_contain_text("▼ regressed")
    expect(page.locator("#outcome-verdict")).to_contain_text(
        "The job does worse than before: Source: events delivers 400"
    )
    expect(page.locator("#panel-outcome .point").first).to_be_attached()
    expect(page.locator("#panel-outcome tbody tr").first).to_contain_text("-55.6 %")
    assert accessibility_faults(page) == []
    page.click("#proposal-way-back")
    expect(page.locator("#decided-said")).to_contain_text("✓ Proposed to go back")
    expect(page.locator("#panel-outcome .back")).to_contain_text("waits for a decision")
    back = Proposal.objects.filter(undoes=row).latest("id")
    assert (back.proposed_by_name, back.change) == ("olga", {"parallelism": {SPLIT: 1, COUNT: 1}})
    page.goto(page.url.split("/proposals")[0] + "/calibration")
    expect(page.locator("#calibration-sentence")).to_contain_text(
        "0 of 3 predictions about 1 change came true"
    )
    expect(page.locator("#chart-scatter-rates .point").first).to_be_attached()
    assert accessibility_faults(page) == []
    page.goto(page.url.split("/calibration")[0] + f"/jobs/{job.pk}")
    expect(page.locator("#frame-activity")).to_have_attribute(
        "aria-label",
        re.compile(rf"1 change marked: at .+ Proposal {row.pk}: Applied: split 1 → 5.+decided by anna"),
    )
    expect(page.locator("#chart-activity .annotation-text")).to_have_text(f"▼ {row.pk}")
