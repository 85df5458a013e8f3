"""The whole loop on a real Flink, through the running product: what holds a job back is scaled, and it comes true;
then somebody makes it worse, Weir says so, and takes it back.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser
from psycopg.rows import dict_row

from tests.support.browser import PASSWORD, Visitor
from tests.support.flink_demo import FlinkDemo, flink_demo
from tests.support.waiting import eventually
from tests.support.whole import Weir, whole_weir
from webapp.ops.embedded.watchdog import CHECKOUT
from workers.flink_demo import job

pytestmark = [pytest.mark.flink, pytest.mark.browser, pytest.mark.timeout(1500)]

PROPOSED_WITHIN_S = 240
APPLIED_WITHIN_S = 60
JUDGED_WITHIN_S = 300
TOLERANCE = 0.03


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


class Record:
    """What Weir has written down, read from its database, and how long each step took."""

    def __init__(self, weir: Weir) -> None:
        url = json.loads((weir.home / "services.json").read_text())["DATABASE_URL"]
        self._connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        self._began = time.monotonic()
        self.told: list[str] = []

    def close(self) -> None:
        self._connection.close()

    def proposals(self, **having: Any) -> list[dict[str, Any]]:
        wanted = " AND ".join(f"{name} = %({name})s" for name in having) or "true"
        asked = f"SELECT * FROM reconfigurations_proposal WHERE {wanted} ORDER BY id DESC"
        return self._connection.execute(asked, having).fetchall()  # type: ignore[arg-type, call-overload]

    def attempt(self, proposal: int) -> dict[str, Any]:
        asked = "SELECT * FROM reconfigurations_attempt WHERE proposal_id = %s"
        found = self._connection.execute(asked, [proposal]).fetchone()
        assert found is not None
        return found  # type: ignore[return-value]

    def until(self, proposal: int, states: tuple[str, ...], within_s: float) -> dict[str, Any]:
        """The proposal once it is in one of these states."""

        def now() -> dict[str, Any] | None:
            row = self.proposals(id=proposal)[0]
            return row if row["state"] in states else None

        row = eventually(now, f"proposal {proposal} is {' or '.join(states)}", within_s, every_s=0.5)
        self.tell(f"proposal {proposal} {row['state']}: {row['state_reason']}")
        return row

    def tell(self, what: str) -> None:
        self.told.append(f"{time.monotonic() - self._began:5.0f} s  {what}")


@pytest.fixture
def record(weir: Weir, demo: FlinkDemo, request: pytest.FixtureRequest) -> Iterator[Record]:
    """At the end the report says what was measured."""
    kept = Record(weir)
    yield kept
    kept.close()
    writer = request.config.get_terminal_writer()
    for line in ("", *kept.told):
        writer.line(line)


@pytest.fixture
def bob(weir: Weir, browser: Browser) -> Iterator[Visitor]:
    """Another administrator: nobody may approve what they proposed by hand."""
    command = [
        sys.executable,
        "manage.py",
        "createsuperuser",
        "--noinput",
        "--username",
        "bob",
        "--email",
        "bob@example.org",
    ]
    environment = weir.environment | {"DJANGO_SUPERUSER_PASSWORD": PASSWORD}
    subprocess.run(command, cwd=CHECKOUT, env=environment, check=True, capture_output=True)
    window = Visitor.arrive(browser, weir.address)
    window.sign_in("bob")
    yield window
    window.context.close()


@pytest.fixture
def admin(weir: Weir, browser: Browser) -> Iterator[Visitor]:
    window = Visitor.arrive(browser, weir.address)
    window.sign_in("admin", weir.password)
    yield window
    window.context.close()


def test_what_holds_a_job_back_is_scaled_and_comes_true_and_what_makes_it_worse_is_taken_back(
    weir: Weir, demo: FlinkDemo, record: Record, admin: Visitor, bob: Visitor
) -> None:
    advised = approve_what_is_advised(admin, record)
    verified = record.until(advised, ("verified", "inconclusive", "regressed"), JUDGED_WITHIN_S)
    assert verified["state"] == "verified", verified["verdict"]
    engine_job = verified["binding"]["engine_job_id"]
    scaled = demo.parallelism(engine_job)
    assert scaled["lookup"] >= 5
    assert record.attempt(advised)["rescale"], "Flink's own record of the rescale is kept"
    rate = next(item for item in verified["verdict"]["findings"] if item["what"] == "source_rate_per_s")
    record.tell(f"target {job.VIEWS_PER_S:g}/s, before {rate['before']:.1f}, after {rate['after']:.1f}")
    assert rate["before"] < 0.5 * job.VIEWS_PER_S
    assert abs(rate["after"] / job.VIEWS_PER_S - 1) <= TOLERANCE

    lookup = next(item["id"] for item in verified["binding"]["operators"] if item["name"] == "lookup")
    worse = propose_by_hand(weir, lookup, 2)
    approve(bob, worse, "to see that it does harm")
    regressed = record.until(worse, ("verified", "inconclusive", "regressed"), JUDGED_WITHIN_S)
    assert regressed["state"] == "regressed", regressed["verdict"]
    assert demo.parallelism(engine_job)["lookup"] == 2

    back = record.proposals(undoes_id=worse)[0]
    approve(admin, back["id"])
    record.until(worse, ("reverted", "revert_failed"), APPLIED_WITHIN_S)
    assert record.proposals(id=worse)[0]["state"] == "reverted"
    assert demo.parallelism(engine_job) == scaled
    assert (admin.complaints, bob.complaints) == ([], [])


def approve_what_is_advised(person: Visitor, record: Record) -> int:
    """Approve the policy's proposal; if rates have just made it another one, that one."""
    found = eventually(
        lambda: record.proposals(state="proposed", policy="ds2"), "DS2 proposes", PROPOSED_WITHIN_S
    )
    record.tell(f"proposal {found[0]['id']}: {found[0]['change']}, {found[0]['prediction']}")
    for _ in range(3):
        newest = record.proposals(state="proposed", policy="ds2")[0]["id"]
        approve(person, newest)
        if record.proposals(id=newest)[0]["state"] != "superseded":
            record.until(newest, ("applied", "apply_failed"), APPLIED_WITHIN_S)
            assert record.proposals(id=newest)[0]["state"] == "applied"
            return int(newest)
    raise AssertionError("each proposal was superseded before it could be approved")


def approve(person: Visitor, proposal: int, reason: str = "") -> None:
    """Press the buttons."""
    page = person.go(f"/proposals/{proposal}")
    page.locator("#proposal-approve").click()
    page.fill("#decide-reason", reason)
    page.locator("#decide-yes:not([disabled])").click()
    answers = page.locator("#decided-said, #decide-error")
    answers.filter(has_text="Approved").or_(answers.filter(has_text="Not done")).first.wait_for()


def propose_by_hand(weir: Weir, operator: str, count: int) -> int:
    """What the administrator thinks of, and cannot approve alone."""
    code = (
        "from webapp.accounts.models import User; from webapp.jobs.models import Job;"
        "from webapp.reconfigurations.proposing import propose_by_hand;"
        "admin, job = User.objects.get(username='admin'), Job.objects.get(name='page-views');"
        f"print('made', propose_by_hand(admin, job, {{{operator!r}: {count}}}, 'two should do').pk)"
    )
    command = [sys.executable, "manage.py", "shell", "-c", code]
    said = subprocess.run(
        command, cwd=CHECKOUT, env=weir.environment, check=True, capture_output=True, text=True
    )
    return int(said.stdout.split("made")[-1])


def test_nothing_of_flink_is_left_when_the_demo_is_killed(demo: FlinkDemo) -> None:
    assert len(demo.machines()) == 2
    demo.process.kill()
    eventually(lambda: not demo.machines(), "the watchdog has stopped Flink", 15)
