"""One child of the supervisor: how it is started, and what happens when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from webapp.ops.embedded.errors import StartError, explained
from webapp.ops.embedded.processes import end_session
from webapp.ops.embedded.state import fresh_log, open_log
from webapp.ops.embedded.watchdog import CHECKOUT, STAGE_APPLICATION, Watchdog

QUICK_S = 15.0
"""A child that lived shorter than this died quickly: probably it will again."""
QUICK_DEATHS_ALLOWED = 4
LONGEST_BACKOFF_S = 30.0


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """What to run under which name, and the signal that asks it to stop."""

    name: str
    command: tuple[str, ...]
    stop_signal: signal.Signals = signal.SIGTERM


class Child:
    """A program kept running. It leads a session of its own, which the watchdog knows."""

    def __init__(
        self, spec: ChildSpec, log_dir: Path, environment: Mapping[str, str], watchdog: Watchdog
    ) -> None:
        self.spec = spec
        self.log_path = log_dir / f"{spec.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.quick_deaths = 0
        self.due = 0.0
        self._environment = dict(environment)
        self._watchdog = watchdog
        self._started = 0.0

    def start(self, *, again: bool = False) -> None:
        """Start it; the log is rotated, or continued if it is started ``again`` after a death."""
        with explained(f"starting {self.spec.name}", self.log_path.parent):
            log = open_log(self.log_path) if again else fresh_log(self.log_path)
            try:
                self.process = subprocess.Popen(
                    self.spec.command, cwd=CHECKOUT, env=self._environment, stdin=subprocess.DEVNULL,
                    stdout=log, stderr=log, start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(log)
        self._watchdog.guard(self.process.pid, self.spec.stop_signal, STAGE_APPLICATION)
        self._started = time.monotonic()

    def death(self) -> str | None:
        """How it died, once, if it did since the last call; then ``due`` is when to start it again.

        Raises ``StartError`` if it died quickly too often.
        """
        if self.process is None or (status := self.process.poll()) is None:
            return None
        lived_s = time.monotonic() - self._started
        self.clear()
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        self.quick_deaths = self.quick_deaths + 1 if lived_s < QUICK_S else 0
        if self.quick_deaths > QUICK_DEATHS_ALLOWED:
            raise StartError(
                f"{self.spec.name} died {self.quick_deaths} times in a row ({how}): read {self.log_path}"
            )
        self.due = time.monotonic() + self.backoff_s
        return f"{self.spec.name} died ({how}) after {lived_s:.0f} s"

    @property
    def backoff_s(self) -> float:
        """Seconds to wait before the next start."""
        return min(LONGEST_BACKOFF_S, 2.0 ** max(0, self.quick_deaths - 1))

    def clear(self) -> None:
        """Sweep what a dead leader left in its session, and forget the session."""
        if self.process is not None:
            end_session(self.process.pid, self.spec.stop_signal, 1.0)
            self.process.wait()
            self._watchdog.forget(self.process.pid)
            self.process = None
