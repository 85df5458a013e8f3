"""Every page in both themes, on a desk and on a phone, held to WCAG 2.2 AA by axe."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import LOOKS, PHONE, Visitor, accessibility_faults
from webapp.jobs.models import Job

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("timeline_worker")]
Visit = Callable[..., Visitor]
BOTH = pytest.mark.parametrize("theme", ["light", "dark"])


def check(page: Page, width: int) -> None:
    page.wait_for_timeout(300)
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@BOTH
def test_sign_in_is_accessible(visit: Visit, theme: str) -> None:
    window = visit(viewport=PHONE)
    window.go(f"/?theme={theme}")
    check(window.page, PHONE["width"])


@LOOKS
def test_all_pages_are_accessible(
    visit: Visit, people: None, job: Job, theme: str, screen: dict[str, int]
) -> None:
    window = visit(viewport=screen)
    page = window.sign_in("alice", path=f"/?theme={theme}")
    expect(page.locator("#jobs .ag-row")).to_have_count(1)
    check(page, screen["width"])
    page.click("#range-picker summary")
    check(page, screen["width"])
    window.go(f"/jobs/{job.pk}?theme={theme}")
    expect(page.locator("#list-channel table")).to_be_visible()
    check(page, screen["width"])
    window.go(f"/jobs/{job.pk}?theme={theme}&tab=timeline")
    expect(page.locator("#side")).to_contain_text("Critical path:", timeout=30_000)
    check(page, screen["width"])
    window.go(f"/jobs/999999?theme={theme}")
    expect(page.locator("#not-found")).to_be_visible()
    check(page, screen["width"])


def test_the_theme_is_kept_for_the_next_visit(alice: Visitor) -> None:
    page = alice.page
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    alice.go("/")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    assert "theme=dark" in page.url


def test_the_keys_are_listed_on_a_question_mark(alice: Visitor) -> None:
    alice.page.keyboard.press("?")
    expect(alice.page.get_by_role("dialog")).to_contain_text("next, previous critical segment")
    alice.page.wait_for_timeout(400)
    assert accessibility_faults(alice.page) == []
    alice.page.keyboard.press("Escape")
    expect(alice.page.get_by_role("dialog")).to_be_hidden()


def test_on_a_phone_the_pages_fold_into_a_button(alice: Visitor) -> None:
    page = alice.page
    page.set_viewport_size(PHONE)
    bursts = page.get_by_role("link", name="Bursts")
    expect(page.get_by_role("link", name="Inbox")).to_be_visible()
    expect(bursts).to_be_hidden()
    page.click("#pages")
    expect(bursts).to_be_visible()
    check(page, PHONE["width"])
    page.keyboard.press("Escape")
    expect(bursts).to_be_hidden()
    expect(page.locator("#pages")).to_be_focused()
    page.keyboard.press("Enter")
    bursts.click()
    expect(page.get_by_role("heading", name="Bursts", level=1)).to_be_visible()
    expect(page.locator("#pages")).to_have_attribute("aria-expanded", "false")
    expect(bursts).to_be_hidden()
