"""Every test run gets a real PostgreSQL and a real Valkey before Django reads its settings.

Where nothing may be skipped (``WEIR_REQUIRE_ALL=1`` or ``CI=true``) a browser or Spark test that skips fails.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack

import django
import hypothesis
import pytest
from django.conf import settings
from playwright.sync_api import Browser

from analytics.spark import sources
from tests.support import emptying
from tests.support.browser import chromium
from tests.support.services import Services, export, running_services

os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"

# Playwright runs an event loop in the test's thread; Django would refuse the ORM there.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
MUST_RUN = ("browser", "spark")
CHEAP = "django.contrib.auth.hashers.MD5PasswordHasher"
"""Hashing is slow on purpose, and nearly every test signs somebody in."""

_stack = ExitStack()
_services = pytest.StashKey[Services]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the services, then set Django up on them."""
    if nothing_may_be_skipped():
        hypothesis.settings.load_profile("ci")  # the same examples in every run of one commit
    services = _stack.enter_context(running_services())
    export(services)
    config.stash[_services] = services
    settings.PASSWORD_HASHERS = [CHEAP]
    django.setup()
    emptying.use()


def pytest_unconfigure() -> None:
    """Stop them. (If the run is killed instead, their watchdog does.)"""
    _stack.close()


@pytest.fixture(scope="session")
def services(pytestconfig: pytest.Config) -> Services:
    """The servers of this test run."""
    return pytestconfig.stash[_services]


@pytest.fixture(scope="session")
def postgres_url(services: Services) -> str:
    """URL of the test run's PostgreSQL (database ``weir``; pytest-django makes ``test_weir`` beside it)."""
    return services.postgres_url


@pytest.fixture(scope="session")
def valkey_url(services: Services) -> str:
    """URL of the test run's Valkey."""
    return services.valkey_url


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Analysing reads segments over connections of its own; no database can be dropped while they are open."""
    yield
    for connection in sources._connections.values():
        connection.close()
    sources._connections.clear()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests: a second one in the same thread is refused."""
    with chromium() as running:
        yield running


def nothing_may_be_skipped() -> bool:
    """Whether a skipped browser or Spark test is a failure here."""
    return os.environ.get("WEIR_REQUIRE_ALL") == "1" or os.environ.get("CI") == "true"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test that must run into a failure."""
    report = yield
    marked = [name for name in MUST_RUN if item.get_closest_marker(name)]
    if report.skipped and marked and not hasattr(report, "wasxfail") and nothing_may_be_skipped():
        report.outcome = "failed"
        report.longrepr = f"a {marked[0]} test was skipped, and nothing may be here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that skips itself hides its tests, whatever their marks."""
    report = yield
    if report.skipped and nothing_may_be_skipped():
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped as a whole: {report.longrepr}"
    return report
