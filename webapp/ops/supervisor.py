"""What ``make run`` executes: brings up everything, watches over it, and takes all of it down again.

Start: port check, state lock, PostgreSQL, Valkey, Java, preparations, children, ready. Stop: children,
Valkey, PostgreSQL. Signals only set a flag that every waiting loop looks at, so no step is torn apart
half-way. If this process is killed outright, the watchdog does the stopping.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

from webapp.ops import plan, readiness
from webapp.ops.backends import Backends, find_java
from webapp.ops.children import Child, ChildSpec
from webapp.ops.console import Console, Step
from webapp.ops.embedded import StartError, Watchdog
from webapp.ops.embedded.errors import last_words, tail
from webapp.ops.embedded.processes import send, wait_or_kill
from webapp.ops.embedded.state import StateLock
from webapp.ops.plan import RunSettings

TICK_S = 0.2
APPLICATION_GRACE_S = 7.0
READY_TIMEOUT_S = 600.0
REMIND_EVERY_S = 15.0
SECOND_SIGNAL_AFTER_S = 1.0


class StopRequestedError(Exception):
    """Somebody wants Weir to stop: a signal came, or the parent went away."""


@dataclass(frozen=True)
class Work:
    """What a supervisor runs; tests bring their own."""

    preparations: Sequence[tuple[str, ChildSpec]]
    children: Sequence[ChildSpec]
    wait_until_ready: bool = True
    java: bool = True


class Supervisor:
    """Runs PostgreSQL, Valkey and the children of a ``Work`` until told to stop."""

    def __init__(
        self, settings: RunSettings, work: Work, console: Console, *, stop_with_parent: bool = False
    ) -> None:
        self._settings = settings
        self._work = work
        self._console = console
        self._children: list[Child] = []
        self._parent = os.getppid() if stop_with_parent else None
        self._first_signal_at: float | None = None
        self._killing = False

    def run(self) -> int:
        """Start, watch, stop. Returns the exit status: 0 after an orderly stop, 1 after a failure."""
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, self._on_signal)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(signal.SIGHUP, self._on_signal)
        lock = StateLock(self._settings.home / "weir.lock", self._settings.home)
        try:
            check_port(self._settings.port)
            lock.acquire()
            with Watchdog() as watchdog:
                return self._run_guarded(watchdog)
        except StartError as error:
            self._console.line(f"\nWeir cannot start: {error}")
            return 1
        finally:
            lock.release()

    def _run_guarded(self, watchdog: Watchdog) -> int:
        backends = Backends(self._settings, watchdog, self._console)
        try:
            self._start(backends, watchdog)
            self._watch(backends, watchdog)
        except StopRequestedError:
            return 0
        except StartError as error:
            self._console.line(f"\nWeir stops: {error}")
            return 1
        finally:
            self._stop(backends)
        return 0

    def _start(self, backends: Backends, watchdog: Watchdog) -> None:
        self._console.line(
            f"Weir starts. Its state is in {self._settings.home}, logs in {self._settings.log_dir}."
        )
        environment = dict(os.environ) | backends.start(self._check_stop)
        if self._work.java:
            with self._console.step("looking for Java") as step:
                environment["JAVA_HOME"] = step.detail = find_java(self._settings.home, environment)
        for doing, spec in self._work.preparations:
            self._check_stop()
            with self._console.step(doing):
                self._run_to_the_end(Child(spec, self._settings.log_dir, environment, watchdog))
        for spec in self._work.children:
            self._check_stop()
            child = Child(spec, self._settings.log_dir, environment, watchdog)
            self._children.append(child)
            child.start()
        self._console.line(f"  ok  started {', '.join(spec.name for spec in self._work.children)}")
        if self._work.wait_until_ready:
            with self._console.step(
                "waiting until everything is ready (a cold Spark takes a minute)"
            ) as step:
                self._wait_until_ready(step, backends, watchdog)
        self._greet()

    def _run_to_the_end(self, child: Child) -> None:
        child.start(again=True)
        process = child.process
        while process is not None and process.poll() is None:
            self._pause()
        child.clear()
        if process is not None and process.returncode != 0:
            self._console.lines(tail(child.log_path, 5))
            raise StartError(
                f"{' '.join(child.spec.command[1:])}: {last_words(child.log_path)} ({child.log_path})"
            )

    def _wait_until_ready(self, step: Step, backends: Backends, watchdog: Watchdog) -> None:
        began = said_at = time.monotonic()
        said: tuple[str, ...] = ()
        while not (now := readiness.ask(self._settings.port)).ready:
            if now.waiting_for != said or time.monotonic() - said_at > REMIND_EVERY_S:
                step.note(
                    f"{time.monotonic() - began:3.0f} s, still waiting for: {', '.join(now.waiting_for)}"
                )
                said, said_at = now.waiting_for, time.monotonic()
            if time.monotonic() - began > READY_TIMEOUT_S:
                raise StartError(
                    f"not ready after {READY_TIMEOUT_S:.0f} s: read the logs in {self._settings.log_dir}"
                )
            for _ in range(5):
                self._look_after(backends, watchdog)

    def _greet(self) -> None:
        password = self._settings.home / "admin-password"
        self._console.line("\nWeir is ready.\n")
        self._console.line(f"    address   {self._settings.address}/")
        self._console.line(
            f"    OTLP      {self._settings.address}/v1/traces, gRPC 127.0.0.1:{self._settings.otlp_port}"
        )
        if password.exists():
            self._console.line("    user      admin")
            self._console.line(
                f"    password  {password.read_text().strip()}   (as first set; kept in {password})"
            )
        self._console.line("\nCtrl-C stops everything.")

    def _watch(self, backends: Backends, watchdog: Watchdog) -> None:
        while True:
            self._look_after(backends, watchdog)

    def _look_after(self, backends: Backends, watchdog: Watchdog) -> None:
        self._pause()
        if watchdog.revive():
            self._console.line("  !!  the watchdog was killed; started another")
        backends.look_after()
        for child in self._children:
            if news := child.death():
                self._console.line(
                    f"  !!  {news}; starting it again in {child.backoff_s:.0f} s. Its last words:"
                )
                self._console.lines(tail(child.log_path, 12))
            elif child.process is None and time.monotonic() >= child.due:
                child.start(again=True)

    def _stop(self, backends: Backends) -> None:
        self._console.line("\nStopping (Ctrl-C again kills)")
        running = [child for child in self._children if child.process is not None]
        for child in running:
            if child.process is not None and child.process.poll() is None:
                send(child.process.pid, child.spec.stop_signal)
        sessions = [child.process.pid for child in running if child.process is not None]
        orderly = wait_or_kill(sessions, APPLICATION_GRACE_S, self._in_a_hurry)
        for child in running:
            child.clear()
        backends.stop(self._in_a_hurry)
        self._console.line("Stopped." if orderly else "Stopped; some children had to be killed.")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # One Ctrl-C may arrive more than once: from the terminal, and passed on by make or timeout.
        now = time.monotonic()
        if self._first_signal_at is None:
            self._first_signal_at = now
        elif now - self._first_signal_at > SECOND_SIGNAL_AFTER_S:
            self._killing = True

    def _in_a_hurry(self) -> bool:
        return self._killing

    def _check_stop(self) -> None:
        if self._first_signal_at is not None:
            raise StopRequestedError
        if self._parent is not None and os.getppid() != self._parent:
            raise StopRequestedError

    def _pause(self) -> None:
        self._check_stop()
        time.sleep(TICK_S)
        self._check_stop()


def check_port(port: int) -> None:
    """Raise ``StartError`` unless the web app could listen on the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise StartError(
                    f"port {port} is taken: stop what listens there, or set WEIR_PORT."
                ) from error
            raise StartError(f"may not listen on port {port} ({error.strerror}): set WEIR_PORT.") from error


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Run Weir as the environment says."""
    parser = argparse.ArgumentParser(prog="python -m webapp.ops.supervisor", description=__doc__)
    parser.add_argument("--stop-with-parent", action="store_true", help="stop when the starting process ends")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        settings = plan.read_settings(environment)
    except StartError as error:
        console.line(f"Weir cannot start: {error}")
        return 1
    work = Work(plan.preparations(settings), plan.children(settings), java=plan.needs_java(settings))
    return Supervisor(settings, work, console, stop_with_parent=options.stop_with_parent).run()


if __name__ == "__main__":
    sys.exit(main())
