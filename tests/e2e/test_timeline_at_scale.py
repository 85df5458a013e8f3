"""100,000 activities of 200 workers in one window: what is merged is said, and zooming brings it out."""

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support import dense, seed
from tests.support.browser import Visitor, at_rest, hold_first
from webapp.jobs.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("timeline_worker")]


@pytest.fixture
def dense_job(live_server: object) -> Job:
    """A finished job with one window of that size."""
    made = seed.make_job("dense")
    dense.stream(made, int(time.time()) - 60)
    return made


def open_dense(visitor: Visitor, job: Job, more: str = "") -> Page:
    page = visitor.go(f"/jobs/{job.pk}?tab=timeline&live=0{more}")
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=30_000)
    expect(page.locator("#chart-lanes .barlayer .point").first).to_be_attached()
    expect(page).to_have_url(re.compile("window="))
    at_rest(page)
    return page


def words(page: Page) -> str:
    return page.locator("#under-lanes").inner_text()


def merged(page: Page) -> int:
    found = re.search(r"([\d,]+) short segments? merged", words(page))
    return int(found[1].replace(",", "")) if found else 0


def shown_range(page: Page) -> list[float]:
    page.wait_for_function("() => document.querySelector('#chart-lanes').layout?.xaxis?.range")
    return [float(end) for end in page.evaluate("document.querySelector('#chart-lanes').layout.xaxis.range")]


def turn_wheel(page: Page, times: int) -> None:
    box = page.locator("#chart-lanes .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 150)
    for _ in range(times):
        before = page.url
        page.mouse.wheel(0, -240)
        expect(page).not_to_have_url(before)
        page.wait_for_timeout(200)


def test_a_dense_window_says_what_is_merged_and_zooming_with_the_wheel_brings_it_out(
    dense_job: Job, alice: Visitor, visit: Callable[..., Visitor]
) -> None:
    page = open_dense(alice, dense_job)
    expect(page.locator("#under-lanes")).to_contain_text("160 of 200 workers not shown, with")
    whole = merged(page)
    assert whole > 10_000
    turn_wheel(page, 4)
    expect(page.locator("#under-lanes")).not_to_contain_text(f"{whole:,} short")
    expect(page).to_have_url(re.compile(r"zoom=\d+-\d+"))
    page.wait_for_timeout(1000)
    assert 0 < merged(page) < whole
    first, last = shown_range(page)
    assert 0 < first < last < 1000

    bob = visit(color_scheme="light")
    bob.sign_in("bob", path=page.url.removeprefix(alice.address))
    expect(bob.page.locator("#under-lanes")).to_have_text(words(page), timeout=30_000)
    assert shown_range(bob.page) == pytest.approx([first, last], rel=1e-3)

    page.mouse.dblclick(*_middle(page))
    expect(page).not_to_have_url(re.compile("zoom="))
    expect(page.locator("#under-lanes")).to_contain_text(f"{whole:,} short")


WATCH = """() => {
  const chart = document.querySelector('#chart-lanes');
  window.drawings = [];
  chart.addEventListener('wheel', () => (window.turnedAt = performance.now()), { capture: true, passive: true });
  chart.on('plotly_afterplot', () => window.drawings.push(performance.now() - window.turnedAt));
}"""
OFF_PX = """() => {
  const chart = document.querySelector('#chart-lanes');
  const bar = chart.querySelector('.barlayer .trace:last-child .point path').getBoundingClientRect();
  const { base, x } = chart.data.findLast((trace) => trace.type === 'bar');
  const left = chart.querySelector('.nsewdrag').getBoundingClientRect().left;
  const at = (ms) => left + chart._fullLayout.xaxis.d2p(ms);
  return Math.max(Math.abs(bar.left - at(base[0])), Math.abs(bar.right - at(base[0] + x[0])));
}"""
"""How far the first bar of the last trace is from where it belongs."""


def test_the_wheel_draws_the_lanes_once_and_they_lie_true_even_if_the_answer_is_late(
    dense_job: Job, alice: Visitor
) -> None:
    page = open_dense(alice, dense_job)
    page.evaluate(WATCH)
    held = hold_first(page, "lanes-figure.data")
    whole = words(page)
    turn_wheel(page, 1)
    page.wait_for_function("() => window.drawings.length")
    assert held, "the detail was asked for"
    assert page.evaluate("window.drawings[0]") > 500, "nothing is drawn in the way of the answer"
    assert page.evaluate(OFF_PX) < 2
    assert words(page) == whole
    held[0].continue_()
    expect(page.locator("#under-lanes")).not_to_have_text(whole)
    page.wait_for_function("() => window.drawings.length === 2")
    page.wait_for_timeout(1000)
    assert page.evaluate("window.drawings.length") == 2
    assert page.evaluate(OFF_PX) < 2
    first, last = shown_range(page)
    assert 0 < first < last < 1000


def _middle(page: Page) -> tuple[float, float]:
    box = page.locator("#chart-lanes .nsewdrag").first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + 150


def test_zoomed_in_far_enough_nothing_is_merged(dense_job: Job, alice: Visitor) -> None:
    page = open_dense(alice, dense_job, "&zoom=400000000-402000000&lanes=all")
    expect(page.locator("#under-lanes")).not_to_contain_text("merged")
    expect(page.locator("#under-lanes")).not_to_contain_text("not shown")
    assert shown_range(page) == [400, 402]


def test_the_next_critical_segment_comes_into_view_wherever_it_is(dense_job: Job, alice: Visitor) -> None:
    page = open_dense(alice, dense_job, "&zoom=0-20000000")
    frame = "document.querySelector('#chart-lanes').data[0].y.length"
    for _ in range(30):  # from lane to lane, past the twenty milliseconds that are visible, over hidden lanes
        before = page.url
        page.keyboard.press("n")
        expect(page).not_to_have_url(before)
    expect(page.locator("#side dl")).to_contain_text("segment 30 of")
    page.wait_for_function(f"() => {frame} > 0")
    chosen = page.evaluate("document.querySelector('#chart-lanes').data[0].x")
    first, last = shown_range(page)
    assert last - first == pytest.approx(20, rel=1e-6)
    assert first > 0
    assert first <= min(chosen)
    assert max(chosen) <= last
    page.keyboard.press("p")
    expect(page.locator("#side dl")).to_contain_text("segment 29 of")


def test_lanes_are_found_sorted_and_all_shown(dense_job: Job, alice: Visitor) -> None:
    page = open_dense(alice, dense_job)
    expect(page.locator("#chart-lanes .ytick text", has_text="host-")).not_to_have_count(0)
    page.click("#order-cp")
    expect(page.locator("#chart-lanes .ytick text", has_text="host-")).to_have_count(0)
    titles = page.locator("#chart-lanes .ytick text").all_text_contents()
    shares = [float(title.split(" · ")[1].removesuffix(" %")) for title in titles]
    assert shares == sorted(shares, reverse=True)
    page.fill("#find-lanes", "host-25")
    expect(page.locator("#under-lanes")).to_contain_text("192 of 200 workers not shown")
    expect(page.locator("#chart-lanes .ytick text")).to_have_count(8)
    page.fill("#find-lanes", "nobody")
    expect(page.locator("#under-lanes")).to_contain_text("No worker fits: 200 of 200 workers not shown")
    page.fill("#find-lanes", "")
    page.click("#only-critical")
    page.click("#lanes-all")
    expect(page.locator("#only-critical")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#under-lanes")).to_contain_text(re.compile(r"1[0-9]{2} of 200 workers not shown"))
    page.click("#only-default")
    expect(page.locator("#under-lanes")).not_to_contain_text("not shown")


def test_dragging_over_the_minimap_shows_that_part(dense_job: Job, alice: Visitor) -> None:
    page = open_dense(alice, dense_job)
    box = page.locator("#minimap").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 20, steps=4)
    page.mouse.up()
    expect(page).to_have_url(re.compile("zoom="))
    page.wait_for_function("() => document.querySelector('#chart-lanes').layout.xaxis.range[0] > 0")
    assert shown_range(page) == pytest.approx([250, 500], abs=5)
    mark = page.locator("#minimap .mark").bounding_box()
    assert mark is not None
    assert mark["width"] == pytest.approx(box["width"] / 4, abs=6)
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#chart-lanes').layout.xaxis.range[0] > 300")
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom="))


def test_hovering_merged_segments_tells_how_many_and_whose(dense_job: Job, alice: Visitor) -> None:
    page = open_dense(alice, dense_job, "&lanes=all")
    x, y = _middle(page)
    for step in range(40):
        page.mouse.move(x + step, y + step)
        if page.locator("#merged-tip").is_visible():
            break
    expect(page.locator("#merged-tip")).to_contain_text(
        re.compile(r"segments? merged, mostly|1 short segment")
    )
    expect(page.locator("#merged-tip")).to_contain_text(re.compile(r"executor \d+ core \d on host-\d+"))
