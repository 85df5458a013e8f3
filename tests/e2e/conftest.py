"""Pages on a live server with the test run's real PostgreSQL and Valkey, and a real worker for timelines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest
from playwright.sync_api import Browser

from tests.support.browser import PASSWORD, Visitor
from tests.support.in_flight import InFlight

if TYPE_CHECKING:  # pytest may read this file before Django is set up
    from webapp.jobs.models import Job

HISTORY_S = 120


@pytest.fixture(autouse=True)
def _live(live_server: object) -> None:
    """Each test runs against a live server with a database of its own."""


@pytest.fixture(scope="session", autouse=True)
def _pages_loaded() -> None:
    """The first visitor does not wait for all pages to be imported."""
    import frontend.view  # noqa: F401


@pytest.fixture(scope="session")
def in_flight() -> InFlight:
    """Requests that the live server is at."""
    return InFlight()


@pytest.fixture
def visit(browser: Browser, live_server: object, in_flight: InFlight) -> Iterator[Callable[..., Visitor]]:
    """Opens windows of people; at the end none of them may have met an error or another host."""
    windows: list[Visitor] = []

    def arrive(**more: object) -> Visitor:
        windows.append(Visitor.arrive(browser, live_server.url, **more))  # type: ignore[attr-defined]
        return windows[-1]

    yield arrive
    complaints = [complaint for window in windows for complaint in window.complaints]
    for window in windows:
        window.context.close()
    in_flight.wait_for_none()
    assert complaints == []


@pytest.fixture
def people(django_user_model: type) -> None:
    """Alice and Bob have accounts."""
    for name in ("alice", "bob"):
        django_user_model.objects.create_user(name, password=PASSWORD)  # type: ignore[attr-defined]


@pytest.fixture
def alice(people: None, visit: Callable[..., Visitor]) -> Visitor:
    """Alice, signed in, on the overview in the light theme."""
    window = visit(color_scheme="light")
    window.is_signed_in("alice")
    window.go("/").wait_for_selector("h1:has-text('Jobs')")
    return window


@pytest.fixture
def job(live_server: object) -> Job:
    """A job with two minutes of analysed records, up to some seconds ago."""
    from tests.support import seed

    made = seed.make_job("ad-events")
    seed.stream(made, int(time.time()) - HISTORY_S - 5, HISTORY_S)
    return made


@pytest.fixture(scope="module")
def timeline_worker(django_db_setup: None, valkey_url: str) -> Iterator[None]:
    """A real Celery worker that computes timelines, on the tests' database.

    It ends with the module: other tests ask for work to see it wait.
    """
    from django.conf import settings

    name = settings.DATABASES["default"]["NAME"]
    url = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))
    command = [
        sys.executable,
        "-m",
        "celery",
        "-A",
        "workers.celery",
        "worker",
        "-Q",
        "interactive",
        "--pool",
        "solo",
    ]
    worker = subprocess.Popen(
        command, env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield
    worker.terminate()
    worker.wait(20)
