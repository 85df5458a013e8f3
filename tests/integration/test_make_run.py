"""What ``make run`` promises: within a minute of "ready", a person sees what limits a real, live Spark job."""

from __future__ import annotations

import re
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Visitor
from tests.support.waiting import eventually
from tests.support.whole import Weir, whole_weir

pytestmark = [pytest.mark.spark, pytest.mark.browser, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def weir() -> Iterator[Weir]:
    with whole_weir(WEIR_DEMO="1") as running:
        running.wait()
        yield running


def test_the_live_job_appears_within_a_minute_and_its_summaries_and_timeline_follow(
    weir: Weir, browser: Browser
) -> None:
    began = time.monotonic()
    person = Visitor.arrive(browser, weir.address)
    page = person.sign_in("admin", weir.password)
    page.get_by_role("link", name="ad-events").wait_for(timeout=60_000)
    page.get_by_role("link", name="ad-events").click()
    page.get_by_text("of critical paths").first.wait_for(timeout=60_000)
    assert time.monotonic() - began < 60
    before = _windows(page.inner_text("body"))
    eventually(lambda: _windows(page.inner_text("body")) > before, "a new window without a reload", 30)
    page.get_by_text("Timeline", exact=True).first.click()
    page.get_by_text("Critical path:").wait_for(timeout=30_000)
    person.context.close()
    assert person.complaints == []


def _windows(text: str) -> int:
    found = re.search(r"([\d,]+) windows with a result", text)
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.parametrize("path", ["/_dash-layout", "/_dash-dependencies"])
def test_a_stranger_gets_nothing_from_the_live_server(weir: Weir, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(weir.address + path)
    assert refused.value.code == 401
