"""The tabs of a job's page that answer questions, with a real worker behind them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.support import seed
from tests.support.browser import LOOKS, Visitor, accessibility_faults
from webapp.analysis import questions
from webapp.analysis.models import Question, QuestionKind, TimelineState, Window
from webapp.jobs.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("timeline_worker")]
Visit = Callable[..., Visitor]
TABS = ("why", "what-if", "compare", "together", "trust")
WORKING_MS = 30_000


def open_tab(visitor: Visitor, job: Job, tab: str, query: str = "") -> Page:
    page = visitor.go(f"/jobs/{job.pk}?tab={tab}{query}")
    answered(page, tab)
    return page


def answered(page: Page, tab: str) -> None:
    expect(page.locator(f"#{tab}-basis")).to_contain_text("computed at", timeout=WORKING_MS)


def halves(job: Job) -> str:
    """A comparison of the first half of a job's windows with the second, as it stands in an address."""
    from frontend.state import iso

    job.refresh_from_db()
    first, last = job.first_ns or 0, job.last_ns or 0
    middle = first + (last - first) // 2 // job.window_ns * job.window_ns
    return f"&a_from={iso(first)}&a_to={iso(middle)}&b_from={iso(middle)}&b_to={iso(last)}"


def test_the_tabs_are_reached_from_the_job_and_say_what_would_be_saved(job: Job, alice: Visitor) -> None:
    page = alice.go(f"/jobs/{job.pk}")
    expect(page.locator("#list-activity table")).to_be_visible()
    page.click("#tab-what-if")
    expect(page.locator("#what-if-sentence")).to_have_text(
        re.compile(r"Making .+ 2× faster would save \d+ % of the time of these windows"), timeout=WORKING_MS
    )
    assert "tab=what-if" in page.url
    for part in ("rank", "windows", "then", "paths"):
        expect(page.locator(f"#chart-what-if-{part} .main-svg").first).to_be_visible()
        expect(page.locator(f"#list-what-if-{part} tbody tr").first).to_be_visible()
        assert "Loading" not in (
            page.locator(f"#frame-what-if-{part}").get_attribute("aria-label") or "Loading"
        )
    page.click("#tab-limits")
    expect(page.locator("#sentence")).to_contain_text(re.compile(r"Making it 2× faster would save \d+ %"))


def test_what_is_made_faster_and_how_much_is_chosen_and_stands_in_the_address(
    job: Job, alice: Visitor, visit: Visit
) -> None:
    page = open_tab(alice, job, "what-if")
    page.locator("#what-if-controls select").select_option("operator:split")
    expect(page.locator("#what-if-sentence")).to_contain_text("Making split 2× faster", timeout=WORKING_MS)
    page.get_by_role("button", name="∞×").click()
    expect(page.locator("#what-if-sentence")).to_contain_text("If split took no time", timeout=WORKING_MS)
    assert "target=operator%3Asplit" in page.url
    assert "factor=infinite" in page.url
    expect(page.locator("#what-if-factor")).to_have_value("∞")
    page.fill("#what-if-factor", "half")
    page.keyboard.press("Enter")
    expect(page.locator("#what-if-message")).to_contain_text("a number of at least 1")
    page.fill("#what-if-factor", "3.7")
    page.keyboard.press("Enter")
    expect(page.locator("#what-if-sentence")).to_contain_text("Making split 3.7× faster", timeout=WORKING_MS)
    assert "factor=3.7" in page.url
    said = page.locator("#what-if-sentence").inner_text()
    bob = visit()
    bob.sign_in("bob", path=page.url.removeprefix(alice.address))
    expect(bob.page.locator("#what-if-sentence")).to_have_text(said, timeout=WORKING_MS)
    expect(bob.page.locator("#what-if-controls select")).to_have_value("operator:split")
    expect(bob.page.locator("#what-if-factor")).to_have_value("3.7")
    page.go_back()
    page.go_back()
    expect(page.locator("#what-if-sentence")).to_contain_text("If split took no time")


def shows_a_segment(page: Page) -> None:
    """The timeline is open with one segment selected, and framed where it is drawn."""
    expect(page.locator("#side dl")).to_contain_text("Duration", timeout=WORKING_MS)
    page.wait_for_function("() => document.querySelector('#chart-lanes').data[0].x.length > 0")
    assert "tab=timeline" in page.url


def test_the_path_of_a_window_stands_above_the_one_it_would_have_and_leads_to_its_segments(
    job: Job, alice: Visitor
) -> None:
    page = open_tab(alice, job, "what-if", "&live=0&factor=3")
    row = page.locator("#list-what-if-windows tbody tr").nth(1)
    at = row.locator(".link").first.inner_text()
    row.locator(".link").nth(1).click()
    page.wait_for_url("**window=*")
    listed = page.locator("#list-what-if-paths tbody tr")
    under = page.locator("#under-what-if-paths")
    expect(under).to_contain_text(
        re.compile(rf"window of {at} UTC: .+ saved by .+ at 3×"), timeout=WORKING_MS
    )
    start = int(re.search(r"window=(\d+)", page.url)[1])  # type: ignore[index]
    asked = Question.objects.filter(kind=QuestionKind.WHAT_IF, params__window_ns=start).get()
    answer = questions.answer_of(asked)
    assert listed.count() == len(answer.now) + len(answer.window.path)  # type: ignore[union-attr]
    expect(listed.filter(has_text="as it is")).to_have_count(len(answer.now))  # type: ignore[union-attr]
    name = listed.first.locator("th").inner_text()
    listed.first.locator(".link").click()
    shows_a_segment(page)
    kind = re.split(" of | on | from ", name)[0]
    expect(page.locator("#side h2").first).to_have_text(re.compile(kind, re.I))
    assert "segment=at." in page.url
    page.keyboard.press("n")
    page.wait_for_url(re.compile(r"segment=\d+(&|$)"))
    expect(page.locator("#side dl")).to_contain_text(re.compile(r"segment \d+ of"))
    page.locator("#side").get_by_role("button", name="What if it were faster?").click()
    expect(under).to_contain_text("click: the segment", timeout=WORKING_MS)
    assert f"window={start}" in page.url
    page.go_back()
    shows_a_segment(page)
    with page.expect_download() as trace:
        page.locator("#save-trace").click()
    events = json.loads(Path(trace.value.path()).read_bytes())["traceEvents"]
    assert {"Workers", "Critical path"} <= {event.get("args", {}).get("name") for event in events}


TAKEN = ("limits", "timeline", *TABS)


def test_every_chart_is_told_in_words_and_taken_away_as_table_and_picture(job: Job, alice: Visitor) -> None:
    page = alice.page
    for tab in TAKEN:
        more = halves(job) if tab == "compare" else ""
        page = alice.go(f"/jobs/{job.pk}?tab={tab}&live=0{more}")
        if tab in TABS:
            answered(page, tab)
        panels = page.locator(".panel[data-file]")
        expect(panels.first).to_be_visible()
        for i in range(panels.count()):
            panel = panels.nth(i)
            what = f"{tab}: {panel.get_attribute('id')}"
            chart = panel.locator(".chart")
            if chart.count():
                expect(chart).to_have_attribute("role", "img")
                expect(chart).not_to_have_attribute("aria-label", re.compile("Loading|Computing|…$"))
                expect(panel.locator(".main-svg").first).to_be_attached()
                with page.expect_download() as picture:
                    panel.locator("[data-act=png]").click()
                assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG"), what
            with page.expect_download() as table:
                panel.locator("[data-act=csv]").click()
            lines = Path(table.value.path()).read_text().splitlines()
            assert len(lines) > 1, what
            assert lines[1].strip(","), what


def test_the_shown_savings_are_those_of_the_answer(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "what-if", "&live=0")
    row = Question.objects.get(kind=QuestionKind.RANKING)
    answer = questions.answer_of(row)
    first = answer.rows[0]  # type: ignore[union-attr]
    shown = float(page.locator("#list-what-if-rank tbody tr").first.locator("td").first.inner_text())
    share = first.saved_ns[1] / answer.length_ns  # type: ignore[union-attr]
    assert shown == pytest.approx(100 * share, rel=0.02)
    assert page.locator("#list-what-if-rank tbody tr").count() == len(answer.rows)  # type: ignore[union-attr]


def test_a_saving_leads_to_the_window_behind_it(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "what-if", "&live=0")
    page.locator("#list-what-if-windows tbody tr .link").nth(2).click()
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=WORKING_MS)
    assert "tab=timeline" in page.url


def test_a_bar_of_the_ranking_chooses_what_is_made_faster(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "what-if", "&live=0")
    bar = page.locator("#chart-what-if-rank .barlayer .trace").nth(2).locator(".point path").nth(2)
    box = bar.bounding_box()
    assert box is not None
    at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(*at)
    expect(page.locator("#chart-what-if-rank .hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(*at)
    page.wait_for_url("**target=**")


def test_why_a_chosen_wait_was_waiting_is_one_click_from_the_timeline(job: Job, alice: Visitor) -> None:
    import numpy as np

    from analytics.critical_path import window_edges
    from analytics.model.activity import ActivityType
    from analytics.model.results import Windows
    from workers import records

    start = Window.objects.filter(job=job).order_by("start_ns")[20].start_ns
    job.refresh_from_db()
    loaded = records.load(job, start, start + job.window_ns)
    windows = Windows(job.window_ns, start // job.window_ns, 1)
    edges = window_edges(*loaded[:3], windows, bounds_ns=loaded.bounds_ns, horizon_ns=job.gap_horizon_ns)[1]
    wait = int(np.flatnonzero(edges.type == int(ActivityType.WAITING))[0])
    page = alice.go(f"/jobs/{job.pk}?tab=timeline&window={start}&segment={wait}")
    page.locator("#side").get_by_role("button", name="Why did it wait?").click(timeout=WORKING_MS)
    answered(page, "why")
    expect(page.locator("#why-sentence")).to_contain_text(re.compile(r"waited \d.* most of all for"))
    assert "at=" in page.url
    expect(page.locator("#list-why-chain tbody tr").first).to_contain_text("message")
    page.get_by_role("button", name="all waits of this worker").click()
    expect(page.locator("#why-sentence")).to_contain_text(re.compile(r"in \d+ waits"), timeout=WORKING_MS)


def test_all_waits_are_told_by_hop_and_weighed_as_one_likes(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "why", "&live=0")
    expect(page.locator("#why-sentence")).to_have_text(re.compile(r"The workers waited .+ in \d+ waits"))
    chart = page.locator("#chart-why-chain")
    expect(chart.locator(".ytick text", has_text="hop 1")).to_have_count(1)
    page.get_by_role("button", name="Count", exact=True).click()
    expect(page.locator("#under-why-chain")).to_contain_text("number of")
    page.locator("#why-controls select").select_option("driver")
    expect(page.locator("#why-sentence")).to_contain_text("driver waited", timeout=WORKING_MS)
    page.locator("#list-why-chain .link").first.click()
    shows_a_segment(page)


def test_two_ranges_are_compared_and_lead_to_their_limits(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "compare", halves(job) + "&live=0")
    expect(page.locator("#compare-basis")).to_contain_text("Before: 60 windows")
    expect(page.locator("#list-compare-changes tbody tr").first).to_be_visible()
    page.get_by_role("button", name="limits before").click()
    expect(page.locator("#completeness")).to_contain_text("60 windows with a result")


def test_without_a_range_before_the_windows_there_are_can_be_compared(job: Job, alice: Visitor) -> None:
    page = alice.go(f"/jobs/{job.pk}?tab=compare")
    expect(page.locator("#compare-message")).to_contain_text("No window from")
    page.get_by_role("button", name="Compare the first half").click()
    answered(page, "compare")
    page.fill("#moment-a_from", "2026-01-02 10:00:00")
    page.keyboard.press("Tab")
    page.wait_for_url("**a_from=2026-01-02+10*")


def test_who_belongs_together_is_proposed(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "together")
    expect(page.locator("#together-sentence")).to_contain_text(re.compile(r"Put .+ beside .+: removes up to"))
    expect(page.locator("#together-notes")).to_contain_text("upper bound")
    page.get_by_role("button", name="All channels between workers").click()
    expect(page.locator("#list-channel table")).to_be_visible()


def test_whether_the_trace_can_be_trusted_comes_first(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "trust")
    expect(page.locator("#trust-sentence")).to_have_text("The trace can be trusted: 7 of 7 checks pass.")
    page.fill("#limit-longest_message_ms", "5")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.locator("#trust-sentence")).to_contain_text("1 of 8 checks fails", timeout=WORKING_MS)
    assert "longest_message_ms=5" in page.url
    row = page.locator("#list-trust-checks tbody tr").first
    expect(row).to_contain_text("Message, from sent to received")
    row.locator(".link").first.click()
    shows_a_segment(page)


def test_numbers_and_charts_can_be_taken_away(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "what-if", "&live=0")
    with page.expect_download() as download:
        page.locator("#panel-what-if-rank [data-act=csv]").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("What,")
    assert len(lines) == 1 + page.locator("#list-what-if-rank tbody tr").count()
    assert re.match(r"[^,]+,0\.\d+,", lines[1]), "full numbers, not rounded ones"
    with page.expect_download() as picture:
        page.locator("#panel-what-if-rank [data-act=png]").click()
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")
    page.locator("#panel-what-if-rank [data-act=table]").click()
    expect(page.locator("#chart-what-if-rank")).to_be_hidden()
    assert "table=what-if-rank" in page.url
    page.reload()
    expect(page.locator("#panel-what-if-rank [data-act=table]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#chart-what-if-rank")).to_be_hidden()
    page.locator("#panel-what-if-rank [data-act=table]").click()
    expect(page.locator("#chart-what-if-rank")).to_be_visible()
    assert "table=" not in page.url


def test_a_question_that_failed_says_why_and_can_be_tried_again(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "trust", "&live=0")
    row = Question.objects.get()
    questions.fail(row.pk, row.requested_at, "the segments are gone")
    page.reload()
    expect(page.locator("#trust-message")).to_contain_text("the segments are gone")
    expect(page.locator("#trust-message")).to_contain_text("the answer of before")
    page.click("#trust-retry")
    expect(page.locator("#trust-message")).to_be_empty(timeout=WORKING_MS)
    Question.objects.update(state=TimelineState.FAILED, payload=None, answered_at=None, error="no memory")
    page.reload()
    expect(page.locator("#trust-sentence")).to_have_text("There is no answer.")
    expect(page.locator("#trust-body")).to_be_hidden()


def test_an_answer_that_is_computed_again_stands_meanwhile(job: Job, alice: Visitor) -> None:
    page = open_tab(alice, job, "trust", "&live=0")
    row = Question.objects.get()
    from django.utils import timezone

    Question.objects.update(state=TimelineState.QUEUED, requested_at=timezone.now())
    page.reload()
    expect(page.locator("#trust-basis")).to_contain_text("computing again")
    expect(page.locator("#trust-sentence")).to_contain_text("The trace can be trusted")
    row.refresh_from_db()
    questions.store(row.pk, row.requested_at, questions.answer_of(row))  # type: ignore[arg-type]
    expect(page.locator("#trust-basis")).not_to_contain_text("computing again")


@pytest.mark.parametrize("tab", TABS)
def test_a_job_without_windows_says_so_and_asks_nobody(alice: Visitor, tab: str) -> None:
    empty = seed.make_job("empty")
    page = alice.go(f"/jobs/{empty.pk}?tab={tab}")
    expect(page.locator(f"#{tab}-message")).to_contain_text("No window")
    expect(page.locator(f"#{tab}-body")).to_be_hidden()
    assert not Question.objects.exists()


def test_what_the_job_does_not_have_is_no_error(job: Job, alice: Visitor) -> None:
    page = alice.go(f"/jobs/{job.pk}?tab=what-if&target=operator:nope")
    expect(page.locator("#what-if-message")).to_contain_text("no operator, worker or activity type")
    page.locator("#what-if-controls select").select_option("operator:count")
    expect(page.locator("#what-if-sentence")).to_contain_text("Making count 2× faster", timeout=WORKING_MS)
    alice.go(f"/jobs/{job.pk}?tab=why&worker=nobody")
    expect(page.locator("#why-message")).to_contain_text("no worker “nobody”")


def test_a_stranger_gets_no_answer(job: Job, alice: Visitor, visit: Visit) -> None:
    page = open_tab(alice, job, "trust", "&live=0")
    with page.expect_request(lambda sent: "trust-sentence" in (sent.post_data or "")) as asked:
        page.reload()
    body = asked.value.post_data
    stranger = visit()
    stranger.go(f"/jobs/{job.pk}?tab=trust")
    expect(stranger.page.locator("#id_username")).to_be_visible()
    token = {cookie["name"]: cookie["value"] for cookie in stranger.context.cookies()}["csrftoken"]
    Question.objects.all().delete()
    answer = stranger.context.request.post(
        f"{stranger.address}/_dash-update-component",
        data=body,
        headers={"Content-Type": "application/json", "X-CSRFToken": token, "Referer": stranger.address},
    )
    assert answer.status == 401
    assert not Question.objects.exists()


@LOOKS
def test_all_questions_are_accessible(
    visit: Visit, people: None, job: Job, theme: str, screen: dict[str, int]
) -> None:
    window = visit(viewport=screen)
    window.sign_in("alice", path=f"/?theme={theme}")
    expect(window.page.locator("#jobs .ag-row")).to_have_count(1)
    for tab in TABS:
        more = halves(job) if tab == "compare" else ""
        page = open_tab(window, job, tab, f"&theme={theme}&live=0{more}")
        page.wait_for_timeout(300)
        assert accessibility_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
