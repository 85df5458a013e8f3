"""The web server and the OTLP server as ``make run`` starts them, on servers of the test's choice."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.support.waiting import eventually
from webapp.ops import plan
from webapp.ops.embedded.watchdog import CHECKOUT


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Web:
    """A Weir without workers: its database is migrated; ``start`` and ``kill`` the server as often as needed."""

    home: Path
    database_url: str
    redis_url: str
    more: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    otlp_port: int = field(default_factory=free_port)
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "WEIR_HOME": str(self.home),
            "DATABASE_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "WEIR_PORT": str(self.port),
            "WEIR_OTLP_PORT": str(self.otlp_port),
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            **self.more,
        }

    def manage(self, *arguments: str) -> str:
        """Run a management command; its standard output."""
        done = subprocess.run(
            [sys.executable, str(CHECKOUT / "manage.py"), *arguments],
            env=self.environment, cwd=CHECKOUT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def token(self, *scopes: str, jobs: tuple[str, ...] = ()) -> str:
        """The secret of a new token of the administrator."""
        wanted = [word for scope in scopes for word in ("--scope", scope)]
        limits = [word for job in jobs for word in ("--job", job)]
        return self.manage("create_token", "--name", "test", *wanted, *limits)

    def start(self, name: str = "web") -> None:
        """Start ``web`` or ``otlp`` and wait until it listens."""
        specs = {spec.name: spec for spec in plan.children(plan.read_settings(self.environment))}
        with (self.home / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                specs[name].command, env=self.environment, cwd=CHECKOUT, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        eventually(lambda: self._listens(name), f"{name} listens\n{self.log(name)}", 60)

    def kill(self, name: str = "web", sign: signal.Signals = signal.SIGKILL) -> None:
        """End a server with all its processes."""
        process = self.processes.pop(name)
        os.killpg(process.pid, sign)
        process.wait(30)
        eventually(lambda: not self._listens(name), f"all of {name} has ended", 30)

    def _listens(self, name: str) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port if name == "web" else self.otlp_port)) == 0

    def log(self, name: str = "web") -> str:
        return (self.home / f"{name}.log").read_text()[-4000:]

    def client(self, token: str) -> httpx.Client:
        return httpx.Client(
            base_url=self.address, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
        )


@contextmanager
def web_on(home: Path, database_url: str, redis_url: str, **more: str) -> Iterator[Web]:
    """Migrate the database; whatever was started is ended."""
    web = Web(home, database_url, redis_url, more)
    web.manage("migrate", "--no-input", "--verbosity", "0")
    web.manage("bootstrap")
    try:
        yield web
    finally:
        for name in list(web.processes):
            web.kill(name)
