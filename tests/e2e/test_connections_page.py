"""The Connections page: sources, tokens and what was refused, by people who may and who may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browser import LOOKS, Visitor, accessibility_faults
from tests.support.flink import series
from tests.support.flink_server import Replay, replaying
from webapp.accounts.models import Token, User
from webapp.accounts.services import InvalidTokenError, create_token, token_of
from webapp.jobs.models import Job
from webapp.telemetry.models import Refused, Source
from workers.tasks import flink as tasks

pytestmark = pytest.mark.browser
Visit = Callable[..., Visitor]


@pytest.fixture
def cluster() -> Iterator[tuple[str, Replay]]:
    with replaying(series("two_stage_ds2_series_before")) as found:
        yield found
    tasks._cluster.cache_clear()


@pytest.fixture
def root(people: None, visit: Visit) -> Visitor:
    """Alice, who is an administrator, on the page."""
    User.objects.filter(username="alice").update(is_staff=True)
    window = visit(color_scheme="light")
    window.sign_in("alice", path="/connections")
    expect(window.page.get_by_role("heading", name="Connections")).to_be_visible()
    return window


def check(page: Page, width: int) -> None:
    page.wait_for_timeout(300)
    assert accessibility_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    heights = page.locator(".source .where").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert all(height <= 80 for height in heights), "an address stands upright"


def test_a_cluster_is_added_connects_gives_its_job_breaks_and_is_removed(
    root: Visitor, cluster: tuple[str, Replay]
) -> None:
    page, (address, replay) = root.page, cluster
    expect(page.locator("#sources-list")).to_contain_text("No source yet")
    page.get_by_label("Address of its REST API").fill(f" {address}/ ")
    page.keyboard.press("Enter")
    row = page.locator(".source")
    expect(row).to_contain_text("waiting for the first answer")
    expect(row).to_contain_text(address)
    expect(page.locator("#source-location")).to_have_value("")
    source = Source.objects.get()
    tasks.poll_cluster(source.pk)
    expect(row).to_contain_text("● connected")
    expect(row.get_by_role("link", name="bottleneck")).to_be_visible()
    expect(page.locator("#connections-said")).to_have_text("1 of 1 source connected, none failing.")

    replay.failing = True
    tasks.poll_cluster(source.pk)
    expect(row).to_contain_text("✕ cannot be read")
    expect(row).to_contain_text("answered with 503")
    expect(row).to_contain_text("Failed 1 time; next try at")
    replay.failing = False
    row.get_by_role("button", name="Ask now").click()
    expect(page.locator("#sources-done")).to_contain_text("is asked within seconds")
    tasks.poll_cluster(source.pk)
    expect(row).to_contain_text("● connected")

    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("dialog")).to_contain_text("all they reported stay")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(row).to_have_count(1)
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)
    assert Job.objects.filter(name="bottleneck").exists()


def test_a_mistake_is_said_beside_the_form_and_nothing_typed_is_lost(root: Visitor) -> None:
    page = root.page
    page.get_by_role("button", name="OpenMetrics endpoint").click()
    assert "kind=openmetrics" in page.url
    page.get_by_label("Address of the endpoint").fill("http://ann:secret@tm:9249")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("#source-said")).to_contain_text("Address: leave out the name and password")
    expect(page.locator("#source-said")).to_contain_text("Job: name the job")
    expect(page.locator("#source-location")).to_have_value("http://ann:secret@tm:9249")
    page.get_by_label("Address of the endpoint").fill("http://tm:9249/metrics")
    page.get_by_label("Job", exact=True).fill("orders")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".source")).to_contain_text("every 15 s")
    assert Source.objects.get().job == Job.objects.get(name="orders")
    page.reload()
    expect(page.get_by_label("Address of the endpoint")).to_be_visible()


def test_focus_stays_where_it_is_while_the_list_is_read_again(root: Visitor) -> None:
    page = root.page
    page.get_by_label("Address of its REST API").fill("http://127.0.0.1:9")
    page.keyboard.press("Enter")
    button = page.locator(".source").get_by_role("button", name="Pause")
    button.focus()
    Source.objects.update(error="it cannot be reached")
    expect(page.locator(".source")).to_contain_text("it cannot be reached")
    expect(button).to_be_focused()


def test_somebody_who_is_no_administrator_looks_and_cannot_change(alice: Visitor) -> None:
    Source.objects.create(kind="flink", location="http://jobmanager:8081")
    alice.go("/connections")
    page = alice.page
    expect(page.locator(".source")).to_contain_text("http://jobmanager:8081")
    expect(page.get_by_text("Only administrators can add")).to_be_visible()
    assert page.locator("[data-do], #source-add").count() == 0
    page.evaluate("dash_clientside.set_props('sources-do', {data: {do: 'remove', id: 1, sent: 1}})")
    page.wait_for_timeout(1500)
    assert Source.objects.get().removed_at is None


def test_a_link_changes_nothing(root: Visitor) -> None:
    source = Source.objects.create(kind="flink", location="http://jobmanager:8081")
    token, _ = create_token(User.objects.get(username="alice"), "collector", ["ingest"])
    root.go(f"/connections?do=remove&id={source.pk}")
    expect(root.page.locator(".source")).to_have_count(1)
    root.go(f"/connections?tab=tokens&do=revoke&id={token.pk}")
    expect(root.page.locator(".tokens tbody tr")).to_have_count(1)
    assert Source.objects.get().removed_at is None
    assert Token.objects.get().revoked_at is None


def test_a_token_is_made_its_secret_seen_once_and_revoked(root: Visitor) -> None:
    page = root.page
    page.get_by_role("button", name="Tokens").click()
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#token-said")).to_contain_text("Name: a name of 1 to 100 characters is needed")
    page.get_by_label("Name").fill("collector")
    page.get_by_label("Only these jobs").fill("orders\n\nad-events")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#secret")).to_contain_text("weir_")
    secret = page.locator("#secret").inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("#secret-copied")).to_contain_text("op")
    token = token_of(secret)
    assert (token.scopes, token.jobs, token.owner.username) == (["ingest"], ["ad-events", "orders"], "alice")
    assert token.expires_at is not None
    row = page.locator(".tokens tbody tr")
    expect(row).to_contain_text("● live")
    expect(row).to_contain_text("ad-events, orders")
    page.reload()
    expect(row).to_contain_text("collector")
    assert page.locator("#secret").count() == 0
    assert secret not in page.content()
    row.get_by_role("button", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    with pytest.raises(InvalidTokenError, match="revoked"):
        token_of(secret)


def test_a_person_sees_what_was_refused_to_their_own_tokens_only(root: Visitor) -> None:
    mine, theirs = (User.objects.get(username=name) for name in ("alice", "bob"))
    common = {
        "token_name": "collector (weir_x…)",
        "kind": "otlp-traces",
        "code": "unreadable",
        "size_bytes": 9,
    }
    Refused.objects.create(owner=mine, reason="it is no protobuf", first_bytes=b"\x00\xffabc", **common)
    Refused.objects.create(owner=theirs, reason="bob's secret", first_bytes=b"{}", **common)
    page = root.page
    page.get_by_role("button", name="Refused").click()
    assert "tab=refused" in page.url
    row = page.locator(".source")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("it is no protobuf")
    row.locator("summary").click()
    expect(row.locator("pre")).to_contain_text("00 ff 61 62 63")
    Refused.objects.create(owner=mine, reason="one more", first_bytes=b"", **common)
    expect(row).to_have_count(2)
    expect(row.locator("pre")).to_be_visible()
    for number in range(60):
        Refused.objects.create(owner=mine, reason=f"number {number}", first_bytes=b"", **common)
    expect(row).to_have_count(50)
    page.get_by_role("button", name="Older").click()
    expect(row).to_have_count(12)
    expect(row.last).to_contain_text("it is no protobuf")
    page.go_back()
    expect(row).to_have_count(50)


@LOOKS
def test_all_parts_are_accessible(visit: Visit, people: None, theme: str, screen: dict[str, int]) -> None:
    alice = User.objects.get(username="alice")
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    Source.objects.create(
        kind="flink", location="http://a-rather-long-name-of-a-cluster.example.internal:8081/proxy/flink",
        error="http://a-rather-long-name: cannot be reached",
        state={"failures": 3, "not_before": "2026-11-21T16:00:00+00:00"},
    )  # fmt: skip
    Source.objects.create(kind="openmetrics", location="http://tm:9249", paused=True, interval_s=15)
    create_token(alice, "collector of the whole cluster", ["ingest", "read"], jobs=["orders"])
    Refused.objects.create(
        owner=alice, token_name="collector (weir_x…)", kind="remote-write", code="too_many_series",
        reason="job orders has 20000 series, as many as it may", first_bytes=bytes(range(64)), size_bytes=9000,
    )  # fmt: skip
    window = visit(viewport=screen)
    page = window.sign_in("alice", path=f"/connections?theme={theme}")
    expect(page.locator(".source")).to_have_count(2)
    check(page, screen["width"])
    page.locator(".source").first.get_by_role("button", name="Remove").click()
    check(page, screen["width"])
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Tokens").click()
    expect(page.locator(".tokens tbody tr")).to_have_count(1)
    page.get_by_label("Name").fill("one more")
    page.get_by_role("button", name="Make the token").click()
    expect(page.locator("#secret")).to_be_visible()
    check(page, screen["width"])
    page.get_by_role("button", name="Refused").click()
    page.locator(".source summary").click()
    check(page, screen["width"])
