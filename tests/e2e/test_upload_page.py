"""Uploading a trace in a browser, from the file to what limits its job."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.test import override_settings
from playwright.sync_api import Page, expect

from tests.support import seed, uploads
from tests.support.browser import LOOKS, Visitor, accessibility_faults
from webapp.jobs.models import Job
from webapp.telemetry.uploads import files
from webapp.telemetry.uploads.models import Upload

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]


@pytest.fixture(autouse=True)
def _empty_folder() -> Iterator[None]:
    yield
    for path in files.folder().iterdir():
        path.unlink()


def choose(page: Page, path: Path, guessed: str) -> None:
    page.set_input_files("#upload-file", path)
    expect(page.locator("#upload-guess")).to_contain_text(guessed)


def send(page: Page) -> None:
    page.click("#upload-send")
    page.wait_for_url(re.compile(r"/upload/\d+"))


@pytest.fixture
def chrome(tmp_path: Path) -> Path:
    path = tmp_path / "resize.json"
    path.write_bytes(uploads.chrome_trace())
    return path


def test_alice_uploads_a_chrome_trace_and_sees_what_limited_it(alice: Visitor, chrome: Path) -> None:
    page = alice.page
    page.get_by_role("link", name="Upload", exact=True).click()
    expect(page.locator("#uploads-list")).to_contain_text("Nothing has been uploaded yet")
    choose(page, chrome, "Looks like Chrome trace")
    expect(page.locator("#upload-format")).to_have_value("chrome")
    expect(page.locator("#upload-job")).to_have_value("resize")
    send(page)
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("440 records, 4 workers and 4 operators over 4 s")
    expect(page.locator("#upload-found")).to_contain_text("control message")
    expect(page.locator("#upload-found")).to_contain_text("2020-09-13 12:26:40")
    assert Job.objects.count() == 0
    page.fill("#store-job", "thumbnails")
    expect(page.locator("#store-note")).to_contain_text("A new job is made")
    page.get_by_role("button", name="Store as thumbnails").click()
    expect(page.locator("#upload-says")).to_contain_text("Being stored as thumbnails")
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("Its windows are being analysed")
    seed.analyse()
    page.click("#upload-job-link")
    expect(page.locator("#sentence")).to_contain_text("resize (processing) limits thumbnails")
    assert "from=2020-09-13T12%3A26%3A40.000Z" in page.url
    page.go_back()
    expect(page.locator("#upload-says")).to_contain_text("Stored 440 records as thumbnails")
    page.get_by_role("link", name="All uploads").click()
    row = page.locator("#uploads-list tbody tr")
    expect(row).to_contain_text("✓ stored")
    expect(row.get_by_role("link", name="thumbnails")).to_be_visible()


def test_a_spark_event_log_names_its_job_and_shows_its_limits(alice: Visitor) -> None:
    page = alice.go("/upload")
    choose(page, uploads.SPARK_LOG, "Looks like Spark event log")
    page.fill("#upload-job", "")
    send(page)
    uploads.work()
    expect(page.locator("#store-job")).to_have_value("troubled")
    page.get_by_role("button", name="Store as troubled").click()
    expect(page.locator("#upload-says")).to_contain_text("Being stored")
    uploads.work()
    seed.analyse()
    page.click("#upload-job-link")
    expect(page.locator("#sentence")).to_contain_text("of critical paths from 2026-11-21")
    expect(page.locator("#list-worker table")).to_be_visible()


def test_a_file_that_is_no_trace_says_why_and_can_be_read_as_another_format(
    alice: Visitor, tmp_path: Path
) -> None:
    path = tmp_path / "photo.png"
    path.write_bytes(b"\x89PNG\r\n" + bytes(range(256)) * 20)
    page = alice.go("/upload")
    choose(page, path, "Cannot tell what kind of file this is")
    expect(page.locator("#upload-send")).to_be_disabled()
    page.select_option("#upload-format", "chrome")
    send(page)
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("It cannot be used as Chrome trace")
    expect(page.locator("#upload-store")).to_be_hidden()
    page.get_by_role("button", name="Parquet").click()
    expect(page.locator("#upload-says")).to_contain_text("waits for a worker")
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("It cannot be used as Parquet")
    page.get_by_role("button", name="Discard").locator("visible=true").click()
    expect(page.locator("#upload-says")).to_contain_text("This upload was discarded")
    assert list(files.folder().iterdir()) == []


def test_a_file_that_is_too_large_is_not_sent(alice: Visitor, chrome: Path) -> None:
    with override_settings(WEIR_UPLOAD_MAX_BYTES=1000):
        page = alice.go("/upload")
        page.set_input_files("#upload-file", chrome)
        expect(page.locator("#upload-error")).to_contain_text("larger than 1.0 kB, the limit")
        expect(page.locator("#upload-send")).to_be_disabled()


def test_a_transfer_that_is_cancelled_leaves_nothing(alice: Visitor, tmp_path: Path) -> None:
    path = tmp_path / "large.ndjson"
    path.write_bytes(uploads.activity_lines(300_000))
    page = alice.go("/upload")
    slow = alice.context.new_cdp_session(page)
    slow.send("Network.enable")
    choose(page, path, "Looks like Activities")
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 2_000_000}
    slow.send("Network.emulateNetworkConditions", conditions)
    page.click("#upload-send")
    expect(page.locator("#upload-sent")).to_contain_text(re.compile(r"[1-9]\d? %"))
    assert 0 < page.locator("#upload-bar").evaluate("bar => bar.value") < 100
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#upload-error")).to_have_text("Cancelled; nothing was kept.")
    expect(page.locator("#upload-transfer")).to_be_hidden()
    expect(page.locator("#upload-send")).to_be_enabled()
    for _ in range(100):
        if not list(files.folder().iterdir()):
            break
        page.wait_for_timeout(100)
    assert list(files.folder().iterdir()) == []
    assert not Upload.objects.exists()


def test_what_the_server_refuses_is_told_in_its_words(
    alice: Visitor, chrome: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = alice.go("/upload")
    choose(page, chrome, "Looks like")
    monkeypatch.setattr(files, "KEEP_FREE_BYTES", 1 << 60)
    page.click("#upload-send")
    expect(page.locator("#upload-error")).to_contain_text("There is not enough room on Weir's disk")
    monkeypatch.undo()
    alice.context.clear_cookies(name="sessionid")
    page.click("#upload-send")
    page.wait_for_url("**/sign-in**")  # or the message, which the next refresh leads away from


def test_a_file_can_be_dropped(alice: Visitor) -> None:
    page = alice.go("/upload")
    page.wait_for_selector("#upload-file")
    page.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(['{"traceEvents": []}'], "dropped.json"));
            const drop = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
            document.querySelector("#upload-drop label").dispatchEvent(drop);
        }"""
    )
    expect(page.locator("#upload-chosen")).to_contain_text("dropped.json")
    expect(page.locator("#upload-format")).to_have_value("chrome")


def test_bob_can_neither_see_nor_store_what_alice_uploaded(
    alice: Visitor, visit: Visit, chrome: Path
) -> None:
    page = alice.go("/upload")
    choose(page, chrome, "Looks like")
    send(page)
    uploads.work()
    row = Upload.objects.get()
    bob = visit()
    bob.sign_in("bob", path=f"/upload/{row.pk}")
    expect(bob.page.locator("#not-found")).to_contain_text("you may not see it")
    bob.go("/upload")
    expect(bob.page.locator("#uploads-list")).to_contain_text("Nothing has been uploaded yet")


def test_a_stranger_is_asked_to_sign_in(visit: Visit, people: None) -> None:
    stranger = visit()
    stranger.go("/upload")
    assert "/sign-in" in stranger.page.url


@LOOKS
def test_the_pages_are_accessible(
    visit: Visit, people: None, tmp_path: Path, theme: str, screen: dict[str, int]
) -> None:
    path = tmp_path / "a-trace-with-a-rather-long-name-of-the-4th-of-july.ndjson"
    path.write_bytes(b"oops\n" + uploads.activity_lines(100))
    window = visit(viewport=screen)
    page = window.sign_in("alice", path=f"/upload?theme={theme}")

    def check(name: str) -> None:
        page.wait_for_timeout(300)
        assert accessibility_faults(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"], name

    expect(page.locator("#uploads-list")).to_contain_text("Nothing has been uploaded yet")
    check("empty")
    choose(page, path, "Looks like Activities")
    check("chosen")
    send(page)
    check("waiting")
    uploads.work()
    expect(page.locator("#upload-found")).to_contain_text("What was odd")
    check("understood")
    page.locator("#store-do").click()
    expect(page.locator("#upload-says")).to_contain_text("Being stored")
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("Its windows are being analysed")
    check("stored")
    path.write_bytes(b"garbage")
    window.go(f"/upload?theme={theme}")
    choose(page, path, "Looks like Activities")
    send(page)
    uploads.work()
    expect(page.locator("#upload-says")).to_contain_text("It cannot be used")
    check("refused")
    window.go(f"/upload?theme={theme}")
    expect(page.locator("#uploads-list")).to_contain_text("✓ stored")
    check("list")
