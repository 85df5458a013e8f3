"""Getting in, staying out, and getting out again."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.support.browser import PHONE, Visitor

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]


def status_of(url: str, body: bytes | None = None) -> int:
    """The status of an answer to somebody without a cookie."""
    request = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_stranger_who_opens_a_page_is_asked_to_sign_in_and_then_sees_that_page(
    visit: Visit, people: None
) -> None:
    stranger = visit()
    page = stranger.go("/?range=1h&theme=dark")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert "/sign-in" in page.url
    stranger.sign_in("alice", path="/?range=1h&theme=dark")
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    assert "range=1h" in page.url
    assert "theme=dark" in page.url


@pytest.mark.parametrize(
    "path", ["_dash-layout", "_dash-dependencies", "_dash-component-suites/dash/deps/react.js"]
)
def test_a_stranger_gets_no_part_of_the_app(live_server: object, path: str) -> None:
    assert status_of(f"{live_server}/{path}") == 401


def test_a_stranger_cannot_call_a_callback(live_server: object) -> None:
    body = json.dumps({"output": "page.children", "inputs": [], "changedPropIds": []}).encode()
    assert status_of(f"{live_server}/_dash-update-component", body) in (401, 403)


def test_a_signed_in_person_cannot_call_a_callback_without_the_token(alice: Visitor) -> None:
    answer = alice.context.request.post(
        f"{alice.address}/_dash-update-component", data={"output": "page.children"}
    )
    assert answer.status == 403


@pytest.mark.parametrize(
    "body",
    ["no json", "[]", "{}", '{"output": "nothing.here"}', '{"output": "page.children", "inputs": [1]}'],
)
def test_a_malformed_callback_is_refused_as_the_callers_fault(alice: Visitor, body: str) -> None:
    token = next(cookie["value"] for cookie in alice.context.cookies() if cookie["name"] == "csrftoken")
    answer = alice.context.request.post(
        f"{alice.address}/_dash-update-component", data=body,
        headers={"X-CSRFToken": token, "Content-Type": "application/json"},
    )  # fmt: skip
    assert answer.status == 400


def test_a_wrong_password_is_said_and_lets_nobody_in(visit: Visit, people: None) -> None:
    person = visit(viewport=PHONE)
    page = person.sign_in("alice", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("do not belong together")
    assert "/sign-in" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_alice_signs_out_and_can_see_nothing_any_more(alice: Visitor) -> None:
    page = alice.page
    page.click("#person summary")
    page.click("#sign-out")
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    alice.go("/")
    assert "/sign-in" in page.url


def test_an_open_page_leads_to_sign_in_when_the_session_has_ended(alice: Visitor) -> None:
    alice.context.clear_cookies(name="sessionid")
    alice.page.wait_for_url("**/sign-in**", timeout=15_000)


def test_a_page_may_run_no_script_but_its_own(alice: Visitor) -> None:
    answer = alice.context.request.get(f"{alice.address}/")
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self' 'sha256-" in policy
    scripts = next(part for part in policy.split(";") if "script-src" in part)
    assert "unsafe" not in scripts
