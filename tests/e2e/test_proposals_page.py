"""Proposals in the browser: who decides, who cannot, and what the other one reads."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import PASSWORD, Visitor
from tests.support.changes import draft, make_job
from webapp.accounts.models import User
from webapp.audit.models import AuditEvent
from webapp.jobs.models import Job, Membership, Role
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.services import propose

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]


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
