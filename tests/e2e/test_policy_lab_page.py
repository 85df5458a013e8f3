"""The policy lab: a job's history and the paper's dataflows through every policy, with a real worker behind it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support import scaling
from tests.support.browser import LOOKS, Visitor, accessibility_faults
from webapp.analysis.models import Replay, TimelineState
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.services import ensure_job

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("timeline_worker")]
Visit = Callable[..., Visitor]
WORKING_MS = 60_000


def open_lab(visitor: Visitor, query: str) -> Page:
    page = visitor.go(f"/policy-lab?{query}")
    expect(page.locator("#lab-basis")).to_contain_text("replayed at", timeout=WORKING_MS)
    return page


def lane(page: Page, policy: str) -> list[str]:
    """A policy's row of the table."""
    row = page.locator("#list-lab-lanes tbody tr", has=page.locator("th", has_text=re.compile(f"^{policy}$")))
    return row.locator("td").all_inner_texts()


def test_a_job_is_chosen_and_its_history_goes_through_every_policy(alice: Visitor) -> None:
    job = scaling.doubled()
    page = alice.page
    page.get_by_role("link", name="Policy lab").click()
    expect(page.locator("#lab-message")).to_contain_text("Nothing chosen yet")
    page.get_by_label("Job").select_option(label="doubled")
    expect(page).to_have_url(re.compile(f"job={job.pk}"))
    expect(page.locator("#lab-basis")).to_contain_text("replayed at", timeout=WORKING_MS)
    alice.go(f"/policy-lab?job={job.pk}&range=1h")
    expect(page.locator("#lab-sentence")).to_have_text(
        re.compile(r"DS2 would have done best for doubled: under target for 1 min 30 s in 1 h in 1 step, for .+ As"
                   r" it was: under target for 30 min, for 5 instance-hours\."),
        timeout=WORKING_MS,
    )  # fmt: skip
    expect(page.locator("#chart-lab-lanes .main-svg").first).to_be_visible()
    assert lane(page, "As it was")[0] == "0"
    assert lane(page, "DS2")[:3] == ["1", "31 min", "1 min 30 s"]
    assert lane(page, "DS2")[-1] == "split 4, count 4"
    assert "split 10, count 10" in lane(page, "Dhalion")[-1]
    expect(page.locator("#list-lab-steps")).to_contain_text("split 2 → 4, count 2 → 4")
    spoken = page.locator("#frame-lab-lanes").get_attribute("aria-label") or ""
    assert "DS2 1 step, under target 1 min 30 s, ends at split 4, count 4" in spoken
    expect(page.locator("#lab-notes")).to_contain_text("capacity grows with the instances")
    page.get_by_role("button", name="0 s", exact=True).click()
    expect(page.locator("#lab-sentence")).to_contain_text("under target for 1 min in 1 h", timeout=WORKING_MS)
    assert "restart=0" in page.url


def test_the_heron_word_count_ends_as_published(alice: Visitor) -> None:
    page = open_lab(alice, "model=heron")
    expect(page.locator("#lab-sentence")).to_contain_text("DS2 takes 1 step to flatmap 10, count 20")
    assert int(lane(page, "Dhalion")[0]) >= 6
    expect(page.locator("#whole-lab-nexmark")).to_be_hidden()


def test_nexmark_shows_the_published_table_beside_the_model(alice: Visitor) -> None:
    page = open_lab(alice, "model=nexmark-q11")
    expect(page.locator("#under-lab-nexmark")).to_contain_text(
        "34 of 36 runs as published", timeout=WORKING_MS
    )
    cells = page.locator("#list-lab-nexmark tbody tr").first.locator("td").all_inner_texts()
    assert cells == ["12 → 16", "11 → 13 → 14", "16 → 20", "14 → 15 → 16", "10", "12 → 22 → 28"]
    page.get_by_role("button", name="20", exact=True).click()
    expect(page.locator("#lab-sentence")).to_contain_text("DS2 takes 1 step to main 28", timeout=WORKING_MS)
    page.get_by_label("Dataflow of the DS2 paper").select_option(label="Nexmark Q8")
    expect(page.locator("#lab-sentence")).to_contain_text("main 10 on Nexmark Q8", timeout=WORKING_MS)
    assert "start=" not in page.url


def test_too_little_history_and_none_say_what_to_do(alice: Visitor) -> None:
    few = scaling.doubled("few", 3)
    page = open_lab(alice, f"job={few.pk}")
    expect(page.locator("#lab-message")).to_contain_text("Only 3 windows in the last 15 min")
    page.get_by_role("button", name="Look at the last 6 h").click()
    expect(page.locator("#lab-message")).to_contain_text("Only 3 windows in the last 6 h", timeout=WORKING_MS)
    page = alice.go(f"/policy-lab?job={ensure_job('none').pk}")
    expect(page.locator("#lab-message")).to_contain_text("Add a Flink cluster")
    old = scaling.doubled("old", 6, time.time_ns() - 3 * 3600 * scaling.SECOND_NS)
    page = alice.go(f"/policy-lab?job={old.pk}")
    expect(page.locator("#lab-message")).to_contain_text("No rates in the last 15 min")


def test_a_source_without_a_target_leads_to_where_it_is_set(alice: Visitor) -> None:
    job = ensure_job("held")
    start_ns = time.time_ns() - 8 * scaling.MINUTE_NS
    scaling.keep(job, (scaling.held(start_ns + k * scaling.MINUTE_NS) for k in range(7)))
    page = open_lab(alice, f"job={job.pk}")
    expect(page.locator("#lab-message")).to_contain_text("It is not known what events should have delivered")
    page.get_by_role("link", name="Set the targets of its sources").click()
    expect(page.locator(".target")).to_contain_text("events")


def test_a_failed_replay_is_tried_again(alice: Visitor) -> None:
    page = open_lab(alice, "model=heron&live=0")
    row = Replay.objects.get(key="model heron 0")
    Replay.objects.filter(pk=row.pk).update(state=TimelineState.FAILED, error="KeyError: 'x'")
    page.reload()
    expect(page.locator("#lab-message")).to_contain_text("The replay failed")
    expect(page.locator("#lab-message")).to_contain_text("What is shown is the answer of before")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#lab-message")).not_to_contain_text("The replay failed", timeout=WORKING_MS)
    row.refresh_from_db()
    assert row.state == TimelineState.READY


def test_a_job_of_others_is_as_good_as_none(alice: Visitor) -> None:
    job = scaling.doubled("secret", 6)
    Job.objects.filter(pk=job.pk).update(group=JobGroup.objects.create(name="theirs"))
    page = alice.go(f"/policy-lab?job={job.pk}")
    expect(page.locator("#lab-message")).to_contain_text(f"There is no job {job.pk}, or you may not see it")
    expect(page.get_by_label("Job")).not_to_contain_text("secret")
    assert not Replay.objects.exists()


@LOOKS
def test_the_lab_is_accessible(visit: Visit, people: None, theme: str, screen: dict[str, int]) -> None:
    window = visit(viewport=screen)
    window.sign_in("alice", path=f"/?theme={theme}")
    page = open_lab(window, f"model=nexmark-q5&theme={theme}&live=0")
    expect(page.locator("#list-lab-nexmark table")).to_be_visible(timeout=WORKING_MS)
    page.wait_for_timeout(300)
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
