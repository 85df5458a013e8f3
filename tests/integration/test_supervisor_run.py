"""The supervisor stops everything it started, in order, and leaves nothing behind when it is killed itself."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
import redis

from tests.support.services import fresh_environment, state_directory
from tests.support.waiting import eventually
from webapp.ops.embedded.processes import find_by_argument, is_running, session_members
from webapp.ops.embedded.state import StateLock
from webapp.ops.embedded.watchdog import CHECKOUT

pytestmark = pytest.mark.chaos
SLEEPER = ["/bin/sleep", "600"]


@dataclass
class Run:
    """A supervisor in a process of its own, with its output in a file."""

    home: Path
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def output(self) -> Path:
        return self.home.with_name(f"{self.home.name}.output")

    def start(self, *, shell: bool = False, **children: list[str]) -> subprocess.Popen[bytes]:
        return self.start_with({}, children, shell=shell)

    def start_with(
        self, more: dict[str, str], children: dict[str, list[str]], *, shell: bool = False
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.support.supervised", json.dumps(children)]
        if shell:  # a parent such as make; "; true" keeps the shell from replacing itself
            command = ["/bin/sh", "-c", '"$@" --stop-with-parent; true', "sh", *command]
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=CHECKOUT, stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                env=fresh_environment(self.home, WEIR_PORT=str(self.port), **more),
            )  # fmt: skip
        self.processes.append(process)
        return process

    def text(self) -> str:
        return self.output.read_text()

    def until(self, words: str) -> None:
        eventually(lambda: words in self.text(), f"the supervisor says {words!r}", timeout_s=40)

    def started_processes(self) -> list[int]:
        """Pids of everything whose command line names this run's state directory."""
        return [
            pid
            for pid, command in find_by_argument(str(self.home))
            if "tests.support.supervised" not in command
        ]


@pytest.fixture
def run() -> Iterator[Run]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with state_directory() as home:
        one = Run(home, port)
        yield one
        for process in one.processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        eventually(lambda: not one.started_processes(), "the watchdog has cleaned up")
        one.output.unlink()


def family(run: Run) -> list[str]:
    return [sys.executable, "-m", "tests.support.family", str(run.home / "family")]


def family_pids(run: Run) -> list[int]:
    path = run.home / "family"
    eventually(path.exists, "the stubborn child and its own child run")
    return [int(word) for word in path.read_text().split()]


def test_nothing_is_left_ten_seconds_after_the_supervisor_is_killed(run: Run) -> None:
    supervisor = run.start(stubborn=family(run))
    run.until("Weir is ready")
    pids = family_pids(run)
    assert len(run.started_processes()) >= 4, "PostgreSQL, Valkey, the child and its child"
    supervisor.kill()
    killed_at = time.monotonic()
    eventually(
        lambda: not run.started_processes() and not any(map(is_running, pids)), "all gone", timeout_s=10
    )
    assert time.monotonic() - killed_at < 10
    postgres_log = (run.home / "logs" / "postgres.log").read_text()
    assert "database system is shut down" in postgres_log, "PostgreSQL was asked, not killed"


def test_a_killed_supervisor_can_be_started_again_at_once(run: Run) -> None:
    run.start(child=SLEEPER).kill()
    first = run.start(child=SLEEPER)
    run.until("Weir is ready")
    first.kill()
    run.start(child=SLEEPER)
    run.until("Weir is ready")


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_children_first_and_servers_last(run: Run, sign: signal.Signals) -> None:
    supervisor = run.start(child=SLEEPER)
    run.until("Weir is ready")
    children = [pid for pid, command in find_by_argument("/bin/sleep 600") if os.getsid(pid) == pid]
    supervisor.send_signal(sign)
    assert supervisor.wait(15) == 0
    assert run.started_processes() == []
    assert not any(session_members(pid) for pid in children)
    assert run.text().rstrip().endswith("Stopped.")
    assert not (run.home / "services.json").exists()


def test_a_signal_during_the_start_stops_it_too(run: Run) -> None:
    supervisor = run.start(child=SLEEPER)
    run.until("starting PostgreSQL")
    supervisor.send_signal(signal.SIGTERM)
    assert supervisor.wait(15) == 0
    assert run.started_processes() == []


def test_a_second_ctrl_c_kills_at_once(run: Run) -> None:
    supervisor = run.start(stubborn=family(run))
    run.until("Weir is ready")
    pids = family_pids(run)
    supervisor.send_signal(signal.SIGINT)
    time.sleep(1.5)
    assert supervisor.poll() is None, "the stubborn child is granted some seconds"
    supervisor.send_signal(signal.SIGINT)
    supervisor.wait(4)
    assert not any(map(is_running, pids))
    assert run.started_processes() == []


def test_weir_stops_when_the_process_that_started_it_is_killed(run: Run) -> None:
    shell = run.start(shell=True, child=SLEEPER)
    run.until("Weir is ready")
    shell.kill()
    run.until("Stopped.")
    eventually(lambda: not run.started_processes(), "all gone")


def test_a_child_that_dies_is_started_again(run: Run) -> None:
    once = (
        f"if [ -e {run.home}/tried ]; then exec sleep 600; fi; touch {run.home}/tried; echo I am ill; exit 3"
    )
    run.start(fragile=["/bin/sh", "-c", once])
    run.until("fragile died (exit status 3)")
    run.until("| I am ill")
    eventually(lambda: find_by_argument("sleep 600"), "the second start lives")


def test_a_child_that_keeps_dying_stops_everything_and_names_its_log(run: Run) -> None:
    supervisor = run.start(hopeless=["/bin/sh", "-c", "echo no chance; exit 1"])
    assert supervisor.wait(60) == 1
    assert f"hopeless died 5 times in a row (exit status 1): read {run.home}/logs/hopeless.log" in run.text()
    assert "Traceback" not in run.text()
    assert run.started_processes() == []


def test_a_database_that_dies_is_started_again_on_the_same_address(run: Run) -> None:
    run.start(child=SLEEPER)
    run.until("Weir is ready")
    url = json.loads((run.home / "services.json").read_text())["DATABASE_URL"]
    postmaster = next(
        pid for pid, command in find_by_argument(f"{run.home}/postgres/data") if os.getsid(pid) == pid
    )
    os.kill(postmaster, signal.SIGKILL)
    run.until("PostgreSQL died")

    def reachable() -> bool:
        try:
            psycopg.connect(url, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    eventually(reachable, "the database answers again")


def test_a_watchdog_that_is_killed_is_replaced(run: Run) -> None:
    supervisor = run.start(child=SLEEPER)
    run.until("Weir is ready")
    watchdog = next(
        pid
        for pid, _ in find_by_argument("webapp.ops.embedded.watchdog_process")
        if parent_of(pid) == supervisor.pid
    )
    os.kill(watchdog, signal.SIGKILL)
    run.until("the watchdog was killed")
    supervisor.kill()
    eventually(lambda: not run.started_processes(), "all gone", timeout_s=10)


def parent_of(pid: int) -> int:
    shown = subprocess.run(["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(shown.stdout)


def test_a_taken_port_is_told_before_anything_is_started(run: Run) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", run.port))
        owner.listen()
        assert run.start(child=SLEEPER).wait(20) == 1
    assert run.text().strip() == (
        f"Weir cannot start: port {run.port} is taken: stop what listens there, or set WEIR_PORT."
    )
    assert list(run.home.iterdir()) == []


def test_a_second_weir_on_the_same_state_is_refused_by_name(run: Run) -> None:
    lock = StateLock(run.home / "weir.lock", run.home)
    lock.acquire()
    assert run.start(child=SLEEPER).wait(20) == 1
    lock.release()
    assert f"Weir already runs on {run.home} (process {os.getpid()})" in run.text()


def test_a_state_directory_that_is_a_file_gives_one_line(run: Run) -> None:
    run.home.rmdir()
    run.home.write_text("in the way")
    try:
        assert run.start(child=SLEEPER).wait(20) == 1
        assert len(run.text().strip().splitlines()) == 1
        assert str(run.home) in run.text()
    finally:
        run.home.unlink()
        run.home.mkdir()


def test_configured_servers_are_used_and_none_is_brought(
    run: Run, postgres_url: str, valkey_url: str
) -> None:
    supervisor = run.start_with({"DATABASE_URL": postgres_url, "REDIS_URL": valkey_url}, {"child": SLEEPER})
    run.until("Weir is ready")
    assert not (run.home / "postgres").exists()
    assert not (run.home / "valkey").exists()
    supervisor.terminate()
    assert supervisor.wait(15) == 0
    with redis.Redis.from_url(valkey_url) as client:
        assert client.ping(), "a configured server is not ours to stop"


def test_a_configured_database_out_of_reach_gives_one_line(run: Run, valkey_url: str) -> None:
    nowhere = "postgresql://weir:secret@127.0.0.1:1/weir"
    assert run.start_with({"DATABASE_URL": nowhere, "REDIS_URL": valkey_url}, {}).wait(30) == 1
    assert "the database of DATABASE_URL cannot be reached" in run.text()
    assert "Traceback" not in run.text()
    assert "secret" not in run.text()


def test_a_wrong_port_number_is_named(run: Run) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "webapp.ops.supervisor"], cwd=CHECKOUT, capture_output=True, text=True, check=False,
        env=fresh_environment(run.home, WEIR_PORT="eighty"),
    )  # fmt: skip
    run.output.touch()
    assert done.returncode == 1
    assert done.stdout == "Weir cannot start: WEIR_PORT is 'eighty', expected a port number such as 8000.\n"
