"""What the embedded servers have in common: the lock, the process, waiting for it, stopping it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from webapp.ops.embedded.errors import StartError, explained, last_words
from webapp.ops.embedded.placement import Place, find_place
from webapp.ops.embedded.processes import (
    end_session,
    find_by_argument,
    in_no_hurry,
    is_running,
    send,
    wait_or_kill,
)
from webapp.ops.embedded.state import StateLock, fresh_log, remembered_port
from webapp.ops.embedded.watchdog import STAGE_SERVICES, Watchdog

START_ATTEMPTS = 3
POLL_S = 0.03


def say_nothing(_: str) -> None:
    """The default for ``notice``."""


class EmbeddedServer(ABC):
    """One server with its data under a state directory. Use as a context manager, or ``start`` and ``stop``.

    ``notice`` is told, in a few words, about every step that takes a moment or that a person should know of.
    """

    title: ClassVar[str]
    name: ClassVar[str]
    stop_signal: ClassVar[signal.Signals]
    ready_timeout_s: ClassVar[float] = 60.0

    def __init__(
        self,
        state_dir: Path,
        *,
        watchdog: Watchdog | None = None,
        notice: Callable[[str], None] = say_nothing,
    ) -> None:
        self.state_dir = state_dir.absolute()
        self.log_path = self.state_dir / "logs" / f"{self.name}.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.port = 0
        self._watchdog = watchdog
        self._notice = notice
        self._lock: StateLock | None = None

    def start(self) -> str:
        """Start the server and return its URL, password included. Raises ``StartError``."""
        place = find_place(self.state_dir)
        lock = StateLock(self.state_dir / f"{self.name}.lock", self.state_dir)
        lock.acquire()
        self._lock = lock
        try:
            with explained(f"starting {self.title}", self.state_dir):
                self._prepare(place)
                self._launch(place)
                return self._open(place)
        except BaseException:
            self.stop()
            raise

    def stop(self, grace_s: float = 5.0, hurry: Callable[[], bool] = in_no_hurry) -> None:
        """Stop the server in an orderly way, by force after ``grace_s`` seconds; then free the directory."""
        if self.process:
            end_session(self.process.pid, self.stop_signal, grace_s, hurry)
            self.process.wait()
            self._forget()
        if self._lock:
            self._lock.release()
            self._lock = None

    def restart(self) -> str:
        """Start again after the process died by itself, on the same data."""
        self.stop()
        return self.start()

    @abstractmethod
    def _prepare(self, place: Place) -> None:
        """Make the data directory ready; the lock is held, so nobody else uses it."""

    @abstractmethod
    def _command(self, place: Place) -> Sequence[str]:
        """The command that runs the server in the foreground on ``self.port``."""

    @abstractmethod
    def _answers(self, place: Place) -> bool:
        """Whether the server accepts our password; False while it starts, StartError if it never will do."""

    @abstractmethod
    def _open(self, place: Place) -> str:
        """Last steps once the server answers; returns the URL."""

    def _launch(self, place: Place) -> None:
        for attempt in range(1, START_ATTEMPTS + 1):
            self.port = remembered_port(self.state_dir / f"{self.name}.port")
            log = fresh_log(self.log_path)
            try:
                self.process = subprocess.Popen(
                    self._command(place), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env=clean_environment(), start_new_session=True, **place.user.popen(),
                )  # fmt: skip
            finally:
                os.close(log)
            if self._watchdog:
                self._watchdog.guard(self.process.pid, self.stop_signal, STAGE_SERVICES)
            if self._wait_until_it_answers(place):
                return
            reason = last_words(self.log_path)
            self._forget()
            if (
                "ddress already in use" in self.log_path.read_text(errors="replace")
                and attempt < START_ATTEMPTS
            ):
                continue  # somebody took the port between our look and the server's
            raise StartError(self._why(reason))

    def _why(self, reason: str) -> str:
        if "No space left on device" in reason or "Disk quota exceeded" in reason:
            return f"No space left for {self.title}: make room on the disk of {self.state_dir} ({reason})."
        if "File too large" in reason:
            return f"{self.title} may not write files this large (ulimit -f): {reason}."
        return f"{self.title} did not start: {reason} (all of it: {self.log_path})."

    def _wait_until_it_answers(self, place: Place) -> bool:
        process = self.process
        if process is None:
            return False
        deadline = time.monotonic() + self.ready_timeout_s
        while process.poll() is None:
            if self._answers(place):
                return True
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.title} does not answer after {self.ready_timeout_s:.0f} s: see {self.log_path}."
                )
            time.sleep(POLL_S)
        return False

    def _forget(self) -> None:
        if self.process and self._watchdog:
            self._watchdog.forget(self.process.pid)
        self.process = None

    def _end_orphan(self, argument: Path) -> None:
        """Stop a server that a killed Weir left on our data; we hold the lock, so it is nobody else's."""
        for pid, command in find_by_argument(str(argument)):
            if self.name in command.split(" ", 1)[0]:
                self._notice(f"stopping the {self.title} that a killed Weir left behind (process {pid})")
                send(pid, self.stop_signal)
                wait_or_kill([pid], 15.0)
                deadline = time.monotonic() + 5
                while is_running(pid) and time.monotonic() < deadline:
                    time.sleep(POLL_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def clean_environment() -> dict[str, str]:
    """The environment for server programs."""
    # PGDATA, PGPORT and their like in a developer's shell must not steer our server.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PG")}
    return kept | {"LC_ALL": "C", "TZ": "UTC"}
