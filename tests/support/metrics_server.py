"""An endpoint on loopback that exposes metrics as Flink's Prometheus reporter did, or misbehaves."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "flink"


def taskmanager() -> bytes:
    """What a TaskManager with a running job exposed."""
    return gzip.decompress((GOLDEN / "prometheus_taskmanager.txt.gz").read_bytes())


@dataclass
class Endpoint:
    """What is answered now; ``pause_s`` is waited between two parts of the body."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause_s: float = 0.0
    parts: int = 1
    asked: int = 0
    accepted: str = ""


@contextmanager
def exposing(body: bytes) -> Iterator[tuple[str, Endpoint]]:
    """The endpoint's address, and what steers it."""
    endpoint = Endpoint(body)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            endpoint.asked += 1
            endpoint.accepted = self.headers.get("Accept-Encoding", "")
            self.send_response(endpoint.status)
            for name, value in ({"Content-Type": "text/plain; version=0.0.4"} | endpoint.headers).items():
                self.send_header(name, value)
            self.end_headers()
            length = -(-len(endpoint.body) // endpoint.parts)
            try:
                for at in range(0, len(endpoint.body), max(1, length)):
                    self.wfile.write(endpoint.body[at : at + length])
                    self.wfile.flush()
                    time.sleep(endpoint.pause_s)
            except OSError:
                return  # whoever asked has heard enough

        def log_message(self, *_: object) -> None:
            """Nothing: a test's output is for its failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/metrics", endpoint
    finally:
        server.shutdown()
        server.server_close()
