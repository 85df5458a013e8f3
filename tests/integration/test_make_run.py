"""What ``make run`` promises: within a minute of "ready", a person sees what limits a real, live Spark job."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.support.browser import Visitor
from tests.support.services import fresh_environment, state_directory
from tests.support.waiting import eventually
from webapp.ops.embedded.watchdog import CHECKOUT

pytestmark = [pytest.mark.spark, pytest.mark.browser, pytest.mark.timeout(900)]

READY_WITHIN_S = 600
"""A machine that has never run Weir compiles the analyses first, on as many cores as it has left."""


@dataclass
class Running:
    """A whole Weir with its demo stream."""

    address: str
    password: str


@pytest.fixture(scope="module")
def weir() -> Iterator[Running]:
    with state_directory() as home, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        output = home.with_name(f"{home.name}.output")
        environment = fresh_environment(home, WEIR_PORT=str(port), WEIR_DEMO="1")
        with output.open("wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "webapp.ops.supervisor"],
                cwd=CHECKOUT,
                env=environment,
                stdout=file,
                stderr=file,
            )
        try:
            eventually(lambda: _ready(process, output), "ready", READY_WITHIN_S, every_s=0.5)
            yield Running(f"http://127.0.0.1:{port}", (home / "admin-password").read_text().strip())
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, output.read_text()[-3000:]
            output.unlink()


def _ready(process: subprocess.Popen[bytes], output: Path) -> bool:
    text = output.read_text()
    assert process.poll() is None, text[-3000:]
    return "Weir is ready" in text


def test_the_live_job_appears_within_a_minute_and_its_summaries_and_timeline_follow(
    weir: Running, browser: Browser
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
def test_a_stranger_gets_nothing_from_the_live_server(weir: Running, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(weir.address + path)
    assert refused.value.code == 401
