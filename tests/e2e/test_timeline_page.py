"""One window in detail."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import Visitor, at_rest, hold_first
from webapp.analysis import timelines
from webapp.analysis.models import Timeline, TimelineState
from webapp.jobs.models import Job
from webapp.telemetry.models import Annotation

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("timeline_worker")]


def open_timeline(visitor: Visitor, job: Job) -> Page:
    page = visitor.go(f"/jobs/{job.pk}")
    expect(page.locator("#list-activity table")).to_be_visible()
    page.click("#tab-timeline")
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=30_000)
    at_rest(page)
    return page


def test_a_timeline_shows_every_worker_and_its_critical_path(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    expect(page.locator("#under-lanes")).to_contain_text("outlined: the critical path")
    for name in ("driver", "executor 1 core 0", "executor 1 core 3"):
        expect(page.locator("#chart-lanes .ytick text", has_text=name)).to_have_count(1)
    assert "window=" in page.url
    expect(page.locator("#frame-lanes .js-plotly-plot")).to_have_count(1)
    expect(page.locator("#frame-lanes .dash-graph")).to_have_count(0)  # it would draw over the lanes


def test_n_and_p_step_along_the_critical_path(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    page.keyboard.press("n")
    expect(page.locator("#side dl")).to_contain_text("segment 1 of")
    assert "segment=" in page.url
    page.click("#go-next")
    expect(page.locator("#side dl")).to_contain_text("segment 2 of")
    page.keyboard.press("p")
    expect(page.locator("#side dl")).to_contain_text("segment 1 of")
    page.keyboard.press("Escape")
    expect(page.locator("#side")).to_contain_text("Critical path:")


def test_hovering_names_the_operator_and_a_click_opens_the_segment(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    bar = page.locator("#chart-lanes .barlayer .trace").last.locator(".point path").first
    box = bar.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    hover = page.locator("#chart-lanes .hoverlayer .hovertext")
    expect(hover).to_contain_text("CP")
    expect(hover).to_contain_text("ms")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator("#side dl")).to_contain_text("Duration")
    expect(page.locator("#side dl")).to_contain_text("CP")


def test_a_change_within_the_window_is_marked_where_it_happened(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    start = int(re.search(r"window=(\d+)", page.url)[1])  # type: ignore[index]
    at_ns = start + 400_000_000
    Annotation.objects.create(
        job=job, kind="reconfiguration", key="7", start_ns=at_ns, end_ns=at_ns, label="split 1 → 5"
    )
    page.reload()
    expect(page.locator("#chart-lanes .annotation")).to_contain_text("7")
    at_rest(page)
    mark = page.evaluate("document.querySelector('#chart-lanes').layout.annotations[0]")
    assert (mark["x"], mark["hovertext"][:26]) == (400, "Proposal 7: split 1 → 5, u")
    expect(page.locator("#frame-lanes")).to_have_attribute("aria-label", re.compile("1 change marked"))


def test_neighbouring_windows_are_one_step_away(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    first = page.locator("#under-strip").inner_text()
    page.click("#go-window-previous")
    expect(page.locator("#under-strip")).not_to_have_text(first)
    at_rest(page)
    page.keyboard.press("]")
    expect(page.locator("#under-strip")).to_have_text(first)


def test_a_click_on_a_chart_opens_the_window_of_that_time(job: Job, alice: Visitor) -> None:
    page = alice.go(f"/jobs/{job.pk}?range=5m&live=0")
    expect(page.locator("#list-activity table")).to_be_visible()
    area = page.locator("#chart-activity .nsewdrag").first
    box = area.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 60)
    page.wait_for_timeout(300)
    page.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + 60)
    page.wait_for_url("**tab=timeline**")
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=30_000)


def test_a_link_to_a_segment_shows_a_colleague_the_same(
    job: Job, alice: Visitor, visit: Callable[..., Visitor]
) -> None:
    page = open_timeline(alice, job)
    page.keyboard.press("n")
    expect(page.locator("#side dl")).to_contain_text("segment 1 of")
    bob = visit()
    bob.sign_in("bob", path=page.url.removeprefix(alice.address))
    expect(bob.page.locator("#side dl")).to_contain_text("segment 1 of", timeout=30_000)
    expect(page.locator("#under-strip")).to_contain_text("UTC")
    expect(bob.page.locator("#under-strip")).to_have_text(page.locator("#under-strip").inner_text())
    assert bob.page.locator("#side dl").inner_text() == page.locator("#side dl").inner_text()


def test_a_timeline_that_failed_says_why_and_can_be_tried_again(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    row = Timeline.objects.get()
    timelines.fail(row.pk, row.run_id, "the segments are gone")
    Timeline.objects.update(state=TimelineState.FAILED)
    expect(page.locator("#timeline-message")).to_contain_text("the segments are gone")
    page.click("#timeline-retry")
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=30_000)
    expect(page.locator("#timeline-body")).to_be_visible()


def test_an_answer_to_a_tab_left_meanwhile_disturbs_nothing(job: Job, alice: Visitor) -> None:
    page = open_timeline(alice, job)
    held = hold_first(page, "lanes-figure.data")
    page.keyboard.press("n")
    page.wait_for_url("**segment=**")
    page.wait_for_function("() => weir.isBusy()")
    page.click("#tab-limits")
    expect(page.locator("#list-activity table")).to_be_visible()
    assert held, "the step was asked for"
    for route in held:
        route.continue_()
    page.wait_for_timeout(1000)
    page.go_back()
    expect(page.locator("#side dl")).to_contain_text("segment 1 of")
    expect(page.locator("#chart-lanes .ytick text", has_text="driver")).to_have_count(1)
    page.keyboard.press("n")
    expect(page.locator("#side dl")).to_contain_text("segment 2 of")
