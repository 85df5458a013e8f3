"""A timeline of 100,000 activities and 200 workers in a real Chromium: first paint, and what a zoom takes.

First paint runs from the navigation to the address of a computed timeline (signed in, scripts cached) until the
lanes are painted. A zoom runs from the last turn of the wheel until the lanes are painted with the detail of the
new range.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

from tests.bench.setup import celery, weir
from tests.support.browser import PASSWORD, Visitor, chromium

ROUNDS = 7
PAINTED = """() => {
  const chart = document.querySelector('#chart-lanes.js-plotly-plot');
  const waits = !document.querySelector('#wait-lanes[hidden]');
  return Boolean(chart && chart.querySelector('.barlayer .point') && !waits);
}"""
WATCH = """() => {
  const chart = document.querySelector('#chart-lanes');
  let last = 0;
  window.weirZoom = null;
  const painted = () => (window.weirZoom = performance.now() - last);
  chart.addEventListener('wheel', () => (last = performance.now()), { capture: true, passive: true });
  chart.addEventListener('weir-drawn', () => requestAnimationFrame(() => setTimeout(painted)));
}"""


def measure(home: Path) -> dict[str, float]:
    """Medians in ms: the worker's computing, first paint (whole page; tab of an open page) and zoom."""
    from django.contrib.auth import get_user_model

    from tests.support import dense, seed

    job = seed.make_job("dense")
    dense.stream(job, int(time.time()) - 60)
    get_user_model().objects.create_user("bench", password=PASSWORD)
    found: dict[str, float] = {}
    worker = celery(home, "timelines", "worker", "-Q", "interactive", "-P", "solo")
    with worker, _web(home) as address, chromium() as browser:
        visitor = Visitor.arrive(browser, address)
        visitor.sign_in("bench")
        visitor.go(f"/jobs/{job.pk}?tab=timeline&live=0&theme=light")
        visitor.page.wait_for_function(PAINTED, timeout=60_000)
        where = visitor.page.url.removeprefix(address)
        found["first_paint_ms"] = _median(_first_paint(visitor, where) for _ in range(ROUNDS))
        found["tab_ms"] = _median(_tab(visitor, where) for _ in range(ROUNDS))
        found["zoom_ms"] = _median(_zoom(visitor, where) for _ in range(ROUNDS))
    found["compute_ms"] = _median(_compute(job) for _ in range(ROUNDS))
    return found


def _median(values: Iterator[float]) -> float:
    return float(np.median(list(values)))


def _painted(page: Page) -> float:
    """Now, by the page's clock, once the lanes are on the screen."""
    page.wait_for_function(PAINTED, polling="raf", timeout=60_000)
    return float(
        page.evaluate(
            "new Promise(r => requestAnimationFrame(() => setTimeout(() => r(performance.now()), 0)))"
        )
    )


def _first_paint(visitor: Visitor, where: str) -> float:
    visitor.go("/help")
    visitor.page.goto(visitor.address + where, wait_until="commit")
    return _painted(visitor.page)


def _tab(visitor: Visitor, where: str) -> float:
    page = visitor.go(where.replace("tab=timeline", "tab=limits"))
    page.wait_for_selector("#list-activity table")
    page.wait_for_timeout(500)
    began = page.evaluate("(document.querySelector('#tab-timeline').click(), performance.now())")
    return _painted(page) - float(began)


def _zoom(visitor: Visitor, where: str) -> float:
    page = visitor.go(where)
    _painted(page)
    page.wait_for_timeout(500)
    page.evaluate(WATCH)
    box = page.locator("#chart-lanes .nsewdrag").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 200)
    for _ in range(3):
        page.mouse.wheel(0, -200)
    page.wait_for_function("() => window.weirZoom", timeout=20_000)
    page.wait_for_timeout(1000)  # of a gesture with several drawings the last counts
    return float(page.evaluate("window.weirZoom"))


def _compute(job: object) -> float:
    from webapp.analysis.models import Timeline
    from workers.tasks import timeline

    row = Timeline.objects.get(job=job)
    began = time.perf_counter()
    timeline.compute(row.pk)
    return (time.perf_counter() - began) * 1e3


@contextmanager
def _web(home: Path) -> Iterator[str]:
    """The web server as ``make run`` starts it; gives its address."""
    from webapp.ops.plan import read_settings, web

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = read_settings({**os.environ, "WEIR_PORT": str(port)})
    with (home / "web.log").open("wb") as log:
        process = subprocess.Popen(web(settings), stdout=log, stderr=log)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield settings.address
    finally:
        process.terminate()
        process.wait(20)


if __name__ == "__main__":
    import json

    with weir() as home:
        json.dump(measure(home), sys.stdout, indent=1)
