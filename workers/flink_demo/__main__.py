"""``make demo-flink``: a real Flink with a job that is held back, beside ``make run``, until interrupted.

Whichever of the two is started first waits for the other. If this process is killed, the watchdog stops Flink.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import FrameType

from webapp.ops import plan, readiness
from webapp.ops.console import Console
from webapp.ops.embedded import StartError, Watchdog
from webapp.ops.embedded.watchdog import CHECKOUT
from webapp.ops.plan import RunSettings
from webapp.ops.supervisor import StopRequestedError
from workers.flink_demo import job, release
from workers.flink_demo.cluster import DemoCluster

LOOK_EVERY_S = 2.0


@dataclass
class Stopping:
    """Whether somebody wants the demo to stop: a signal came, or the parent went away."""

    parent: int | None
    asked: bool = field(default=False)

    def listen(self) -> None:
        """Take signals as a wish."""
        for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(sign, self._on_signal)

    def check(self) -> None:
        """Raise ``StopRequestedError`` if it is time."""
        if self.asked or (self.parent is not None and os.getppid() != self.parent):
            raise StopRequestedError

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.asked = True


def run(settings: RunSettings, console: Console, stopping: Stopping) -> int:
    """Start Flink and its job, connect Weir as soon as it runs, stop when told to. Returns the exit status."""
    stopping.listen()
    try:
        with Watchdog() as watchdog:
            with console.step("finding Flink and a Java compiler (a download of 330 MB the first time)"):
                jars, jdk = release.jars(), release.jdk()
            cluster = DemoCluster(settings.home / "flink", jars, jdk, watchdog)
            try:
                _start(cluster, console, stopping)
                _watch(cluster, settings, watchdog, console, stopping)
            finally:
                console.line("\nStopping Flink")
                cluster.stop()
    except StopRequestedError:
        return 0
    except StartError as error:
        console.line(f"\nThe Flink demo ends: {error}")
        return 1
    return 0


def _start(cluster: DemoCluster, console: Console, stopping: Stopping) -> None:
    with console.step("starting Flink (10 slots, adaptive scheduler)") as step:
        cluster.start(stopping.check)
        step.detail = cluster.address
    with console.step(f"compiling and submitting {job.NAME}") as step:
        jar = job.compiled(cluster.jars, cluster.jdk, cluster.home)
        stopping.check()
        step.detail = f"job {job.submit(cluster.address, jar)}"
    console.line(
        f"\nFlink runs: {cluster.address}, job {job.NAME}, held below its target of {job.VIEWS_PER_S:g}/s."
    )


def _watch(
    cluster: DemoCluster, settings: RunSettings, watchdog: Watchdog, console: Console, stopping: Stopping
) -> None:
    """Until told to stop: see that Flink lives, and have Weir follow it each time it comes up."""
    told, was_up = False, False
    while True:
        up = readiness.ask(settings.port).up
        if up and not was_up:
            up = _connect(cluster.address)
            if up:
                console.line(f"Weir follows it: {settings.address}/ proposes to scale it in two minutes.")
        elif not up and not told:
            console.line("Weir does not run yet: start it with make run in another terminal.")
            told = True
        was_up = up
        stopping.check()
        watchdog.revive()
        cluster.check()
        time.sleep(LOOK_EVERY_S)


def _connect(address: str) -> bool:
    """Whether Weir took it."""
    command = [sys.executable, "-m", "workers.flink_demo.connect", address]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=False).returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo on the state directory of ``make run``."""
    parser = argparse.ArgumentParser(prog="python -m workers.flink_demo", description=__doc__)
    parser.add_argument("--stop-with-parent", action="store_true", help="stop when the starting process ends")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        settings = plan.read_settings(os.environ)
    except StartError as error:
        console.line(f"The Flink demo cannot start: {error}")
        return 1
    return run(settings, console, Stopping(os.getppid() if options.stop_with_parent else None))


if __name__ == "__main__":
    sys.exit(main())
