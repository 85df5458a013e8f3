"""The list of jobs."""

import time

import pytest
from playwright.sync_api import expect

from tests.support import seed
from tests.support.browser import Visitor, at_rest
from webapp.jobs.models import Job
from webapp.telemetry.models import Source

pytestmark = pytest.mark.browser


def test_somebody_without_jobs_is_told_how_to_get_one(alice: Visitor) -> None:
    expect(alice.page.locator("#jobs-empty")).to_contain_text("No job has reported yet")
    expect(alice.page.locator("#jobs-empty")).to_contain_text("add_source")


def test_a_job_shows_what_limits_it_and_opens_on_a_click(job: Job, alice: Visitor) -> None:
    row = alice.page.locator("#jobs .ag-row", has_text="ad-events")
    expect(row).to_contain_text("count · processing")
    expect(row).to_contain_text("Spark")
    expect(row.locator("svg[role=img]")).to_be_visible()
    row.locator(".ag-cell").nth(3).click()
    expect(alice.page.get_by_role("heading", name="ad-events")).to_be_visible()
    alice.page.go_back()
    expect(alice.page.get_by_role("heading", name="Jobs")).to_be_visible()


def test_a_job_opens_with_the_keyboard_alone(job: Job, alice: Visitor) -> None:
    expect(alice.page.locator("#jobs .ag-row")).to_have_count(1)
    at_rest(alice.page)
    alice.page.keyboard.press("j")
    expect(alice.page.locator("#jobs .ag-row .ag-cell:focus")).to_have_count(1)
    alice.page.keyboard.press("Enter")
    expect(alice.page.get_by_role("heading", name="ad-events")).to_be_visible()
    alice.page.keyboard.press("g")
    alice.page.keyboard.press("o")
    expect(alice.page.get_by_role("heading", name="Jobs")).to_be_visible()


def test_search_and_tiles_filter_and_stand_in_the_address(job: Job, alice: Visitor) -> None:
    broken = seed.make_job("broken")
    Source.objects.create(kind="spark-event-log", location="/logs/x", job=broken, error="permission denied")
    rows = alice.page.locator("#jobs .ag-row")
    expect(rows).to_have_count(2, timeout=10_000)
    alice.page.keyboard.press("/")
    alice.page.keyboard.type("events")
    expect(rows).to_have_count(1)
    assert "search=events" in alice.page.url
    alice.page.reload()
    expect(rows).to_have_count(1)
    expect(alice.page.locator("#search")).to_have_value("events")
    alice.go("/")
    alice.page.click("#tile-error")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("source fails")
    assert "show=error" in alice.page.url


def test_a_job_that_stopped_reporting_says_so(alice: Visitor) -> None:
    quiet = seed.make_job("quiet")
    seed.stream(quiet, int(time.time()) - 60, 5)
    Job.objects.filter(pk=quiet.pk).update(last_received_at="2026-01-01T00:00:00Z")
    expect(alice.page.locator("#jobs .ag-row")).to_contain_text("silent for")


def test_an_unknown_address_and_an_unknown_job_lead_home(alice: Visitor) -> None:
    for path in ("/jobs/999999", "/no-such-page"):
        alice.go(path)
        expect(alice.page.locator("#not-found")).to_be_visible()
        expect(alice.page.locator("#stamp")).to_have_text("nothing to refresh")
        alice.page.click("#not-found a")
        expect(alice.page.get_by_role("heading", name="Jobs")).to_be_visible()
        expect(alice.page.locator("#stamp")).to_contain_text("live")


def test_more_jobs_than_fit_a_page_are_turned_and_sorted_over_all_pages(alice: Visitor) -> None:
    Job.objects.bulk_create(Job(name=f"job-{i:03}", engine="flink") for i in range(230))
    rows = alice.page.locator("#jobs .ag-center-cols-container .ag-row")
    pager = alice.page.locator("#pager")
    expect(pager).to_contain_text("1 to 100 of 230 jobs")
    pager.get_by_role("button", name="More rows").click()
    expect(pager).to_contain_text("101 to 200 of 230 jobs")
    expect(rows.first).to_contain_text("job-100")
    assert "page=2" in alice.page.url
    alice.page.locator(".ag-header-cell", has_text="Job").first.click()
    expect(pager).to_contain_text("1 to 100 of 230 jobs")
    assert "sort=name" in alice.page.url
    alice.page.locator(".ag-header-cell", has_text="Job").first.click()
    expect(rows.first).to_contain_text("job-229")
    alice.page.reload()
    expect(rows.first).to_contain_text("job-229")
    assert "sort=-name" in alice.page.url
