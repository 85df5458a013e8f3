"""What the supervisor makes of the answers of /healthz and /readyz, asked of a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from webapp.ops import readiness

ANSWERS: dict[str, tuple[int, str]] = {}


class Scripted(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS.get(self.path, (404, ""))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Tests stay quiet."""


@pytest.fixture
def port() -> Iterator[int]:
    ANSWERS.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_web_app_that_does_not_listen_is_waited_for(port: int) -> None:
    assert readiness.ask(1) == readiness.Readiness(up=False, waiting_for=("web",))


def test_everything_in_order_is_ready(port: int) -> None:
    ANSWERS["/healthz"] = (200, "{}")
    ANSWERS["/readyz"] = (
        200,
        json.dumps({"status": "ready", "checks": {"database": {"ok": True, "detail": ""}}}),
    )
    assert readiness.ask(port).ready


def test_each_missing_part_is_named_with_its_own_words(port: int) -> None:
    checks = {"spark": {"ok": False, "detail": "warming up"}, "beat": {"ok": False}, "broker": {"ok": True}}
    ANSWERS["/healthz"] = (200, "{}")
    ANSWERS["/readyz"] = (503, json.dumps({"status": "not ready", "checks": checks}))
    found = readiness.ask(port)
    assert found.up
    assert not found.ready
    assert found.waiting_for == ("beat", "spark (warming up)")


def test_an_error_page_is_not_ready(port: int) -> None:
    ANSWERS["/healthz"] = (200, "{}")
    ANSWERS["/readyz"] = (500, "<h1>Server Error</h1>")
    assert readiness.ask(port).waiting_for == ("/readyz (it says 500)",)
