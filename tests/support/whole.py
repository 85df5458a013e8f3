"""The whole of Weir, as ``make run`` starts it, in a process of its own on a fresh state directory."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.services import fresh_environment, state_directory
from tests.support.waiting import eventually
from webapp.ops.embedded.watchdog import CHECKOUT

READY_WITHIN_S = 600
"""A machine that has never run Weir compiles the analyses first, on as many cores as it has left."""


@dataclass
class Weir:
    """A running Weir, and how to sign in as its first administrator."""

    address: str
    home: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes]
    output: Path

    @property
    def password(self) -> str:
        """The administrator's."""
        return (self.home / "admin-password").read_text().strip()

    def wait(self) -> None:
        """Until it says that it is ready."""
        eventually(self._ready, "ready", READY_WITHIN_S, every_s=0.5)

    def _ready(self) -> bool:
        text = self.output.read_text()
        assert self.process.poll() is None, text[-3000:]
        return "Weir is ready" in text


@contextmanager
def whole_weir(**more: str) -> Iterator[Weir]:
    """Weir while it starts (``wait`` for it); at the end it must stop in an orderly way."""
    with state_directory() as home, socket.socket() as probe, socket.socket() as second:
        probe.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        port, otlp = probe.getsockname()[1], second.getsockname()[1]
        probe.close()
        second.close()
        output = home.with_name(f"{home.name}.output")
        environment = fresh_environment(home, WEIR_PORT=str(port), WEIR_OTLP_PORT=str(otlp), **more)
        command = [sys.executable, "-m", "webapp.ops.supervisor", "--stop-with-parent"]
        with output.open("wb") as file:
            process = subprocess.Popen(command, cwd=CHECKOUT, env=environment, stdout=file, stderr=file)
        try:
            yield Weir(f"http://127.0.0.1:{port}", home, environment, process, output)
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, output.read_text()[-3000:]
            output.unlink()
