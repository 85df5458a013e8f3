"""The whole loop on a real Flink, through the running product: what holds a job back is scaled, and it comes true;
then somebody makes it worse, Weir says so, and takes it back.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser

from tests.support.browser import PASSWORD, Visitor
from tests.support.flink_demo import FlinkDemo, flink_demo
from tests.support.waiting import eventually
from tests.support.whole import Weir, whole_weir
from webapp.ops.embedded.watchdog import CHECKOUT
from workers.flink_demo import job

pytestmark = [pytest.mark.flink, pytest.mark.browser, pytest.mark.timeout(1500)]

PROPOSED_WITHIN_S = 300
APPLIED_WITHIN_S = 90
JUDGED_WITHIN_S = 300
CLICKED_WITHIN_MS = 90_000
"""Flink, Spark and two browser windows share the machine."""

TOLERANCE = 0.03
JUDGED = ("verified", "inconclusive", "regressed")


@pytest.fixture(scope="module")
def weir() -> Iterator[Weir]:
    with whole_weir(WEIR_DEMO="0") as running:
        yield running


@pytest.fixture(scope="module")
def demo(weir: Weir) -> Iterator[FlinkDemo]:
    """Started while Weir starts; each waits for the other."""
    with flink_demo(weir) as running:
        running.wait("Flink runs: ")
        weir.wait()
        running.wait("Weir follows it")
        yield running


class Program:
    """A program with a token of the administrator, which proposes and looks, and notes what happened when."""

    def __init__(self, weir: Weir) -> None:
        made = manage(weir, "create_token", "--name", "loop", "--scope", "read", "--scope", "decide")
        headers = {"Authorization": f"Bearer {made.strip()}"}
        self._client = httpx.Client(base_url=f"{weir.address}/api/v1", headers=headers, timeout=30)
        self._began = time.monotonic()
        self.told: list[str] = []

    def close(self) -> None:
        self._client.close()

    def proposals(self, **having: str) -> list[dict[str, Any]]:
        """Newest first."""
        found: list[dict[str, Any]] = self._ask("GET", "/proposals", params=having)["items"]
        return found

    def proposal(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("GET", f"/proposals/{number}")
        return found

    def propose(self, job_id: int, parallelism: dict[str, int]) -> int:
        body = {"job": job_id, "parallelism": parallelism, "reason": "two should do"}
        return int(self._ask("POST", "/proposals", json=body)["id"])

    def until(self, number: int, states: tuple[str, ...], within_s: float) -> dict[str, Any]:
        """The proposal once it is in one of these states."""

        def now() -> dict[str, Any] | None:
            found = self.proposal(number)
            return found if found["state"] in states else None

        found = eventually(now, f"proposal {number} is {' or '.join(states)}", within_s, every_s=1)
        self.tell(f"proposal {number} {found['state']}: {found['state_reason']}")
        return found

    def tell(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:5.0f} s  {what}")

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        answer = self._client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json()


def manage(weir: Weir, *arguments: str, **more: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=CHECKOUT, env=weir.environment | more, check=True,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def program(weir: Weir, demo: FlinkDemo, request: pytest.FixtureRequest) -> Iterator[Program]:
    """At the end the report says what was measured."""
    running = Program(weir)
    yield running
    running.close()
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        sys.stdout.write("\n".join(("", *running.told, "")))


@contextmanager
def signed_in(browser: Browser, weir: Weir, name: str, password: str) -> Iterator[Visitor]:
    """A person's own window."""
    window = Visitor.arrive(browser, weir.address)
    window.context.set_default_timeout(CLICKED_WITHIN_MS)
    window.sign_in(name, password)
    yield window
    window.context.close()


@pytest.fixture
def admin(weir: Weir, browser: Browser) -> Iterator[Visitor]:
    with signed_in(browser, weir, "admin", weir.password) as window:
        yield window


@pytest.fixture
def bob(weir: Weir, browser: Browser) -> Iterator[Visitor]:
    """Another administrator: nobody may approve what they proposed by hand."""
    who = ("--username", "bob", "--email", "bob@example.org")
    manage(weir, "createsuperuser", "--noinput", *who, DJANGO_SUPERUSER_PASSWORD=PASSWORD)
    with signed_in(browser, weir, "bob", PASSWORD) as window:
        yield window


def test_what_holds_a_job_back_is_scaled_and_comes_true_and_what_makes_it_worse_is_taken_back(
    demo: FlinkDemo, program: Program, admin: Visitor, bob: Visitor
) -> None:
    advised = approve_what_is_advised(admin, program)
    verified = program.until(advised, JUDGED, JUDGED_WITHIN_S)
    assert verified["state"] == "verified", verified["verdict"]
    assert verified["attempt"]["rescale"], "Flink's own record of the rescale is kept"
    engine_job = verified["binding"]["engine_job_id"]
    scaled = demo.parallelism(engine_job)
    assert scaled["lookup"] >= 5
    rate = next(item for item in verified["verdict"]["findings"] if item["what"] == "source_rate_per_s")
    program.tell(
        f"source: target {job.VIEWS_PER_S:g}/s, before {rate['before']:.1f}, after {rate['after']:.1f}"
    )
    assert rate["before"] < 0.5 * job.VIEWS_PER_S
    assert abs(rate["after"] / job.VIEWS_PER_S - 1) <= TOLERANCE
    admin.page.get_by_text("verified").first.wait_for()

    lookup = next(item["id"] for item in verified["binding"]["operators"] if item["name"] == "lookup")
    worse = program.propose(verified["job"]["id"], {lookup: 2})
    approve(bob, worse, "to see that it does harm")
    regressed = program.until(worse, JUDGED, JUDGED_WITHIN_S)
    assert regressed["state"] == "regressed", regressed["verdict"]
    assert demo.parallelism(engine_job)["lookup"] == 2

    back = next(item for item in program.proposals(state="proposed") if item["undoes_id"] == worse)
    approve(admin, back["id"])
    assert program.until(worse, ("reverted", "revert_failed"), APPLIED_WITHIN_S)["state"] == "reverted"
    assert demo.parallelism(engine_job) == scaled
    assert (admin.complaints, bob.complaints) == ([], [])


def approve_what_is_advised(person: Visitor, program: Program) -> int:
    """Approve the policy's proposal; if rates have just made it another one, that one."""
    advised = {"state": "proposed", "policy": "ds2"}
    found = eventually(lambda: program.proposals(**advised), "DS2 proposes", PROPOSED_WITHIN_S, every_s=1)
    program.tell(f"proposal {found[0]['id']}: {found[0]['described']}, predicted {found[0]['prediction']}")
    for _ in range(3):
        newest = program.proposals(**advised)[0]["id"]
        approve(person, newest)
        if program.proposal(newest)["state"] != "superseded":
            done = program.until(newest, ("applied", "apply_failed"), APPLIED_WITHIN_S)
            assert done["state"] == "applied", done["attempt"]
            return int(newest)
    raise AssertionError("each proposal was superseded before it could be approved")


def approve(person: Visitor, proposal: int, reason: str = "") -> None:
    """Press the buttons; a refusal is an answer too."""
    page = person.go(f"/proposals/{proposal}")
    page.locator("#proposal-approve").click()
    page.fill("#decide-reason", reason)
    page.locator("#decide-yes:not([disabled])").click()
    answers = page.locator("#decided-said, #decide-error")
    answers.filter(has_text="Approved").or_(answers.filter(has_text="Not done")).first.wait_for()


def test_nothing_of_flink_is_left_when_the_demo_is_killed(demo: FlinkDemo) -> None:
    assert len(demo.machines()) == 2
    demo.process.kill()
    eventually(lambda: not demo.machines(), "the watchdog has stopped Flink", 15)
