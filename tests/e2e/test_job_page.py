"""What limits a job, live."""

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support import seed
from tests.support.browser import Visitor
from webapp.jobs.models import Job

pytestmark = pytest.mark.browser


def open_limits(visitor: Visitor, job: Job, query: str = "") -> Page:
    page = visitor.go(f"/jobs/{job.pk}{query}")
    expect(page.locator("#list-activity table")).to_be_visible()
    return page


def windows_shown(page: Page) -> int:
    found = re.match(r"([\d,]+) window", page.locator("#completeness").inner_text())
    return int(found[1].replace(",", "")) if found else -1


def test_the_first_line_says_what_limits_the_job_and_by_how_much(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job)
    said = r"count \(processing\) limits ad-events: \d\d % of critical paths in the last 15 min"
    expect(page.locator("#sentence")).to_have_text(re.compile(said + r" \(profile says \d+ %\)\."))
    expect(page.locator("#completeness")).to_contain_text("Unknown:")


def test_the_four_summaries_answer_their_questions(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job)
    for key in ("activity", "worker", "operator", "channel"):
        expect(page.locator(f"#chart-{key} .main-svg").first).to_be_visible()
        expect(page.locator(f"#list-{key} tbody tr").first).to_be_visible()
    expect(page.locator("#list-activity tbody tr").first).to_contain_text("processing")
    expect(page.locator("#list-worker tbody tr").first).to_contain_text("executor 1 core 0")
    expect(page.locator("#under-operator")).to_contain_text("processing only, per worker (SnailTrail)")
    page.click("#operators-all")
    expect(page.locator("#under-operator")).to_contain_text("all types")
    assert "operators=all" in page.url
    assert "processing" in (page.locator("#frame-activity").get_attribute("aria-label") or "")


def test_the_shares_of_the_page_are_those_of_the_selectors(job: Job, alice: Visitor) -> None:
    from webapp.analysis import selectors

    page = open_limits(alice, job, "?live=0")
    now_ns = time.time_ns()
    shares = selectors.limits(job, now_ns - 900 * 10**9, now_ns).activities
    top = max(share.cp for share in shares)
    shown = float(page.locator("#list-activity tbody tr").first.locator("td").first.inner_text())
    assert shown == pytest.approx(100 * top, rel=0.01)


def test_new_windows_appear_by_themselves_and_stop_when_paused(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job)
    before = windows_shown(page)
    page.evaluate("window.stillHere = true")
    page.evaluate("window.scrollTo(0, 100)")
    last = seed_more(job, 0)
    wait_for_more(page, before)
    assert page.evaluate("window.stillHere") is True
    assert page.evaluate("window.scrollY") == 100
    page.click("#pause")
    expect(page.locator("#stamp")).to_contain_text("paused")
    assert "live=0" in page.url
    page.wait_for_timeout(500)
    before = windows_shown(page)
    seed_more(job, last)
    page.wait_for_timeout(5000)
    assert windows_shown(page) == before
    page.click("#pause")
    wait_for_more(page, before)


def seed_more(job: Job, after_s: int) -> int:
    job.refresh_from_db()
    start = -(-(job.last_ns or 0) // 10**9)
    seed.stream(job, start, 5)
    return start + 5


def wait_for_more(page: Page, before: int) -> None:
    for _ in range(60):
        if windows_shown(page) > before:
            return
        page.wait_for_timeout(250)
    raise AssertionError(f"still {windows_shown(page)} windows after 15 s")


def test_a_copied_link_shows_a_colleague_the_same_view(
    job: Job, alice: Visitor, visit: Callable[..., Visitor]
) -> None:
    page = open_limits(alice, job)
    page.click("#range-picker summary")
    page.get_by_role("button", name="Last 1 h").click()
    page.click("#theme")
    page.click("#operators-all")
    expect(page.locator("#under-operator")).to_contain_text("in the last 1 h")
    bob = visit(color_scheme="light")
    bob.sign_in("bob", path=page.url.removeprefix(alice.address))
    expect(bob.page.locator("#under-operator")).to_contain_text("all types")
    expect(bob.page.locator("#under-operator")).to_contain_text("in the last 1 h")
    expect(bob.page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")


def test_a_fixed_range_is_written_in_the_address_and_back_returns(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job)
    page.click("#range-picker summary")
    page.fill("#range-from", "2026-01-02 10:00:00")
    page.fill("#range-to", "2026-01-02 09:00:00")
    page.get_by_role("button", name="Show this range").click()
    expect(page.locator("#range-error")).to_have_text("The range ends before it starts.")
    page.fill("#range-to", "2026-01-02 11:00:00")
    page.get_by_role("button", name="Show this range").click()
    expect(page.locator("#sentence")).to_contain_text(
        "it has no window from 2026-01-02 10:00:00 to 11:00:00 UTC"
    )
    expect(page.locator("#stamp")).to_contain_text("fixed range")
    page.click("#show-newest")
    expect(page.locator("#sentence")).to_contain_text("limits ad-events")
    page.go_back()
    page.go_back()
    expect(page.locator("#sentence")).to_contain_text("in the last 15 min")


def test_dragging_over_a_chart_sets_the_range_of_the_page(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job, "?range=5m")
    area = page.locator("#chart-activity .nsewdrag").first
    box = area.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 44, steps=8)
    page.mouse.up()
    page.wait_for_url("**from=**")
    expect(page.locator("#under-worker")).to_contain_text(" to ")


def test_what_is_drawn_can_be_taken_away(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job, "?live=0")
    with page.expect_download() as download:
        page.locator("#panel-activity [data-act=csv]").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("from,")
    assert "processing" in lines[0]
    assert len(lines) > 100
    with page.expect_download() as picture:
        page.locator("#panel-activity [data-act=png]").click()
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")
    page.locator("#panel-activity [data-act=table]").click()
    expect(page.locator("#chart-activity")).to_be_hidden()
    expect(page.locator("#list-activity table")).to_be_visible()


def test_a_job_that_never_reported_is_no_error(alice: Visitor) -> None:
    empty = seed.make_job("empty")
    alice.go(f"/jobs/{empty.pk}")
    expect(alice.page.locator("#sentence")).to_contain_text("it has not reported anything yet")


def test_a_server_that_does_not_answer_is_said_and_forgotten_when_it_does(job: Job, alice: Visitor) -> None:
    page = open_limits(alice, job)
    callbacks = re.compile("_dash-update-component")
    page.route(callbacks, lambda route: route.fulfill(status=500, body="no"))
    expect(page.locator("#banner")).to_contain_text("could not be refreshed")
    page.unroute(callbacks)
    expect(page.locator("#banner")).to_be_hidden()
    alice.complaints.clear()  # Dash reports the failed callbacks on the console, as it should
