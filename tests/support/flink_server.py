"""A JobManager's REST API on loopback that answers with what a real one answered, poll by poll."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

Responses = dict[str, Any]


class Replay:
    """What the server answers now; ``failing`` answers 503 to everything."""

    def __init__(self, recorded: list[dict[str, Any]]) -> None:
        self.recorded = recorded
        self.at = 0
        self.failing = False
        self.asked: list[str] = []

    def answer(self, target: str) -> tuple[int, Any]:
        """Status and body of a request."""
        self.asked.append(target)
        if self.failing:
            return 503, {"errors": ["Service temporarily unavailable due to an ongoing leader election."]}
        responses: Responses = self.recorded[self.at]["responses"]
        pages = {path: body for path, body in responses.items() if "?" not in path}
        url = urlsplit(target)
        if url.path == "/jobs/overview":
            return 200, {"jobs": [_summary(body) for path, body in pages.items() if path.count("/") == 2]}
        if url.path in pages:
            return 200, pages[url.path]
        lists = [body for path, body in responses.items() if path.startswith(url.path + "?")]
        if not lists:
            return 404, {"errors": ["Not found."]}
        metrics = {item["id"]: item for body in lists for item in body}
        if not url.query:
            return 200, [{"id": name} for name in metrics]
        wanted = [unquote(name) for name in parse_qs(url.query)["get"][0].split(",")]
        return 200, [metrics[name] for name in wanted if name in metrics]


def _summary(page: dict[str, Any]) -> dict[str, Any]:
    return {key: page.get(key) for key in ("jid", "name", "state", "start-time")} | {
        "schedulerType": "Adaptive"
    }


@contextmanager
def replaying(recorded: list[dict[str, Any]]) -> Iterator[tuple[str, Replay]]:
    """The server's address, and what steers it."""
    replay = Replay(recorded)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = replay.answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is for its failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", replay
    finally:
        server.shutdown()
        server.server_close()
