"""A server on loopback that answers as Flink 2.3 was recorded to, and can be stopped in the middle of an answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "flink_engine"
JOB_ID = "6f401b19aaf3b35a621ba5ff55a2bbcc"


def recorded(name: str) -> Any:
    """A recorded body, or a recorded request with its answer."""
    return json.loads((GOLDEN / f"{name}.json").read_bytes())


class FlinkServer:
    """One job on one cluster. ``puts`` are the bodies that arrived, in their order.

    ``stall`` names the stage at which answers are withheld: ``observe`` (the requirements), ``put`` (before it has
    an effect), ``put_done`` (after it had), ``poll`` (the job's page once something was put), ``history``.
    ``stalled`` is set as soon as a request waits there. ``polls`` are answered in the job's place once something
    was put, bytes as they are; ``details`` is what is told of a rescale.
    """

    def __init__(self) -> None:
        self.job = recorded("job")
        self.asked: dict[str, Any] = recorded("requirements")
        self.config = recorded("jobmanager_config")["response"]
        self.next_put: dict[str, Any] | None = None
        self.requirements_answer: dict[str, Any] | None = None
        self.polls: list[tuple[int, Any]] = []
        self.details: Any = recorded("rescales_details")
        self.slots = 10
        self.takes_s = 0.3
        self.down = False
        self.puts: list[Any] = []
        self.stall = ""
        self.stalled = threading.Event()
        self._go_on = threading.Event()
        self._rescaled_at_ms = 0
        self._dropped = False
        self._lock = threading.Lock()
        self.url = ""

    def release(self) -> None:
        """Let withheld requests go on (their askers may be gone)."""
        self.stall = ""
        self._go_on.set()
        self._go_on = threading.Event()
        self.stalled.clear()

    def drop(self) -> None:
        """Withheld requests never take effect."""
        self._dropped = True
        self.release()

    def set_parallelism(self, **counts: int) -> None:
        """Somebody else changes the job: operators by name."""
        for vertex in self.job["vertices"]:
            if vertex["name"] in counts:
                vertex["parallelism"] = counts[vertex["name"]]
                self.asked[vertex["id"]]["parallelism"]["upperBound"] = counts[vertex["name"]]

    def setting(self, key: str, value: str) -> None:
        """Configure the JobManager."""
        self.config = [*self.config, {"key": key, "value": value}]

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and body for a request."""
        here = f"/jobs/{self.job['jid']}"
        if path == here:
            self._wait("poll" if self.puts else "")
            return self.polls.pop(0) if self.puts and self.polls else (200, self.job)
        if path == f"{here}/resource-requirements":
            return self._put(body) if method == "PUT" else self._requirements()
        if path == f"{here}/jobmanager/config":
            return 200, self.config
        if path == f"{here}/config":
            return 200, recorded("job_config")["response"]
        if path == f"{here}/rescales/history":
            self._wait("history")
            history = recorded("rescales_history")
            history[0]["startTimestampInMillis"] = self._rescaled_at_ms
            return 200, history if self._rescaled_at_ms else history[1:]
        if path.startswith(f"{here}/rescales/details/"):
            return 200, self.details
        told = recorded("unknown_job")
        return told["status"], told["response"]

    def _requirements(self) -> tuple[int, Any]:
        self._wait("observe")
        if self.requirements_answer is not None:
            return self.requirements_answer["status"], self.requirements_answer["response"]
        return 200, self.asked

    def _put(self, body: Any) -> tuple[int, Any]:
        stalled = self._wait("put")
        if stalled and self._dropped:
            return 500, {"errors": ["dropped"]}
        with self._lock:
            self.puts.append(body)
            if self.next_put is not None:
                told, self.next_put = self.next_put, None
                return told["status"], told["response"]
            if body.keys() != self.asked.keys():
                told = recorded("put_missing_vertex")
                return told["status"], told["response"]
            changes = body != self.asked
            self.asked = body
        if changes:
            threading.Timer(self.takes_s, self._rescale).start()
        self._wait("put_done")
        return 200, {}

    def _rescale(self) -> None:
        for vertex in self.job["vertices"]:
            wanted = self.asked[vertex["id"]]["parallelism"]["upperBound"]
            vertex["parallelism"] = min(wanted, self.slots)
        self._rescaled_at_ms = int(time.time() * 1_000)
        self.job["timestamps"]["RUNNING"] = self._rescaled_at_ms

    def _wait(self, stage: str) -> bool:
        """Whether the request was withheld here."""
        if not stage or self.stall != stage:
            return False
        go_on = self._go_on
        self.stalled.set()
        return go_on.wait(60)


@contextmanager
def flink_server(flink: FlinkServer | None = None) -> Iterator[FlinkServer]:
    """The server, listening on a free port of loopback."""
    flink = flink or FlinkServer()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            if flink.down:
                self.close_connection = True
                return
            status, told = flink.answer(self.command, self.path, body)
            data = told if isinstance(told, bytes) else json.dumps(told).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # the asker was killed meanwhile, which is what some tests are about

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: tests read what arrived from the server itself."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    flink.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield flink
    finally:
        flink.release()
        server.shutdown()
        server.server_close()
        thread.join()
