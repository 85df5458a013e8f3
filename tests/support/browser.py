"""A real Chromium for the tests of pages, which also watches what pages must not do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
DESKTOP = {"width": 1440, "height": 900}
PHONE = {"width": 390, "height": 844}
LOOKS = pytest.mark.parametrize(
    ("screen", "theme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desk-light", "phone-dark"]
)
"""Both sizes and both themes in two visits: a fault of colour or of width shows in one of them."""
PASSWORD = "correct horse battery staple"
PATIENCE_MS = 20_000
"""For machines that do much else at the same time."""

EXPECTED = "Failed to load resource"
"""Chromium reports every refused request as an error; tests of refusals look at the answers instead."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; skips the test if none is installed (which CI turns into a failure)."""
    if not os.path.exists(CHROMIUM):  # noqa: PTH110
        pytest.skip(f"no Chromium at {CHROMIUM}: run make browser")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(ARGUMENTS))
        yield browser
        browser.close()


@dataclass
class Visitor:
    """A person's own browser window: pages, and everything that went wrong on them."""

    context: BrowserContext
    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    @staticmethod
    def arrive(
        browser: Browser, address: str, viewport: dict[str, int] | None = None, **more: object
    ) -> Visitor:
        """A new window without any cookie; it notes console errors and requests to other hosts."""
        context = browser.new_context(viewport=viewport or DESKTOP, accept_downloads=True, **more)  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        visitor = Visitor(context, context.new_page(), address)
        visitor.page.on(
            "console",
            lambda m: (
                visitor.complaints.append(f"{m.type}: {m.text}")
                if m.type == "error" and EXPECTED not in m.text
                else None
            ),
        )
        visitor.page.on("pageerror", lambda error: visitor.complaints.append(f"uncaught: {error}"))
        visitor.page.on("request", lambda request: visitor._check(request.url))
        return visitor

    def _check(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"request to another host: {url}")

    def go(self, path: str) -> Page:
        """Open an address of the app."""
        self.page.goto(self.address + path)
        return self.page

    def is_signed_in(self, name: str) -> None:
        """Let the window be that of somebody who has signed in before; for tests that run with the server."""
        from django.contrib.auth import get_user_model
        from django.test import Client

        client = Client()
        client.force_login(get_user_model().objects.get(username=name))
        key = client.cookies["sessionid"].value
        self.context.add_cookies([{"name": "sessionid", "value": key, "url": self.address}])

    def sign_in(self, name: str, password: str = PASSWORD, path: str = "/") -> Page:
        """Open a page as somebody not signed in, and sign in."""
        self.go(path)
        self.page.fill("#id_username", name)
        self.page.fill("#id_password", password)
        self.page.click("button[type=submit]")
        return self.page


def at_rest(page: Page) -> None:
    """Wait until every callback is answered: keys and clicks before that may meet what is not there yet."""
    page.wait_for_function("() => !weir.isBusy()")
    page.wait_for_timeout(100)


def hold_first(page: Page, output: str) -> list[Route]:
    """Hold back the next callback with this output; the list has it once it was asked."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if not held and output in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/_dash-update-component*", hold)
    return held


def accessibility_faults(page: Page) -> list[str]:
    """What axe finds against WCAG 2.2 AA, a line each."""
    options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{item['id']}: {node['html'][:200]} ({node['failureSummary'][:300]})"
        for item in found
        for node in item["nodes"]
    ]
