"""The database and the broker of one run: embedded, or the ones that are configured."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
import redis

from webapp.ops.console import Console
from webapp.ops.embedded import EmbeddedPostgres, EmbeddedValkey, StartError, Watchdog
from webapp.ops.embedded.errors import explained
from webapp.ops.embedded.server import EmbeddedServer
from webapp.ops.embedded.state import write_private
from webapp.ops.embedded.watchdog import CHECKOUT
from webapp.ops.plan import RunSettings

DEATHS_ALLOWED = 3
HEARTBEATS = "weir:heartbeat:*"
GRACE_S = {"valkey": 2.0, "postgres": 4.0}


class Backends:
    """Starts what is not configured, tells where everything is, restarts what dies."""

    def __init__(self, settings: RunSettings, watchdog: Watchdog, console: Console) -> None:
        self._settings = settings
        self._watchdog = watchdog
        self._console = console
        self._servers: list[EmbeddedServer] = []
        self._deaths = 0
        self._file = settings.home / "services.json"

    def start(self, check_stop: Callable[[], None]) -> dict[str, str]:
        """Bring up database and broker; returns what children need in their environment."""
        embedded: dict[str, str] = {}
        configured = self._settings.database_url
        if configured:
            self._try("the configured database", lambda: _reach_database(configured))
        else:
            embedded["DATABASE_URL"] = self._embed(EmbeddedPostgres)
        check_stop()
        if self._settings.redis_url:
            self._try("the configured broker", lambda: _reach_broker(self._settings.redis_url))
        else:
            embedded["REDIS_URL"] = self._embed(EmbeddedValkey)
        check_stop()
        with explained("writing to the state directory", self._settings.home):
            write_private(
                self._file, json.dumps(embedded) + "\n"
            )  # lets manage.py in another terminal find them
        _forget_heartbeats(embedded.get("REDIS_URL", self._settings.redis_url))
        return embedded | {
            "WEIR_HOME": str(self._settings.home),
            "WEIR_PORT": str(self._settings.port),
            "PYTHONUNBUFFERED": "1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        }

    def look_after(self) -> None:
        """Restart a server that died. Its address must stay the same, or the children would not find it."""
        for server in self._servers:
            if server.process is not None and server.process.poll() is not None:
                self._deaths += 1
                self._console.line(
                    f"  !!  {server.title} died (status {server.process.returncode}); starting it again"
                )
                if self._deaths > DEATHS_ALLOWED:
                    raise StartError(f"{server.title} keeps dying: read {server.log_path}.1")
                port = server.port
                server.restart()
                if server.port != port:
                    raise StartError(f"port {port} of {server.title} was taken meanwhile: start Weir again.")

    def stop(self, hurry: Callable[[], bool]) -> None:
        """Stop what was started, the broker before the database."""
        self._file.unlink(missing_ok=True)
        for server in reversed(self._servers):
            server.stop(GRACE_S[server.name], hurry)

    def _embed(self, kind: type[EmbeddedPostgres] | type[EmbeddedValkey]) -> str:
        with self._console.step(f"starting {kind.title}") as step:
            server = kind(self._settings.home, watchdog=self._watchdog, notice=step.note)
            url = server.start()
            self._servers.append(server)
            step.detail = f"127.0.0.1:{server.port}"
        return url

    def _try(self, what: str, reach: Callable[[], None]) -> None:
        with self._console.step(f"reaching {what}"):
            reach()


def _reach_database(url: str) -> None:
    try:
        psycopg.connect(url, connect_timeout=10).close()
    except psycopg.Error as error:
        raise StartError(f"the database of DATABASE_URL cannot be reached: {error}") from error


def _reach_broker(url: str) -> None:
    try:
        with redis.Redis.from_url(url, socket_timeout=10, socket_connect_timeout=10) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise StartError(f"the broker of REDIS_URL cannot be reached: {error}") from error


def _forget_heartbeats(url: str) -> None:
    # The broker keeps its data: signs of life of the run before would make this one look ready.
    with redis.Redis.from_url(url, socket_timeout=10) as client:
        for key in client.scan_iter(HEARTBEATS):
            client.delete(key)


def find_java(home: Path, environment: Mapping[str, str]) -> str:
    """JAVA_HOME for Spark. Asked of ``analytics.spark`` by running it: the web app does not import that."""
    answer = subprocess.run(
        [sys.executable, "-m", "analytics.spark.java", str(home)],
        cwd=CHECKOUT, env=dict(environment), capture_output=True, text=True, check=False,
    )  # fmt: skip
    path = answer.stdout.strip()
    if answer.returncode != 0 or not path:
        lines = [line for line in answer.stderr.splitlines() if line.strip()]
        raise StartError(lines[-1] if lines else f"looking for Java failed with status {answer.returncode}")
    return path
