"""An embedded Valkey keeps its queues, never evicts them, and answers to its password only."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.support.services import fresh_environment, state_directory
from tests.support.waiting import eventually
from webapp.ops.embedded import EmbeddedValkey, StartError, Watchdog
from webapp.ops.embedded.placement import find_place
from webapp.ops.embedded.processes import is_running
from webapp.ops.embedded.watchdog import CHECKOUT

KILLED_RUN = """
import os, sys
from pathlib import Path
from webapp.ops.embedded import EmbeddedValkey
server = EmbeddedValkey(Path(sys.argv[1]))
server.start()
print(server.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with state_directory() as path:
        yield path


@pytest.fixture
def valkey(home: Path) -> Iterator[EmbeddedValkey]:
    with Watchdog() as watchdog:
        server = EmbeddedValkey(home, watchdog=watchdog)
        yield server
        server.stop()


def test_what_was_queued_survives_a_restart(valkey: EmbeddedValkey) -> None:
    first = valkey.start()
    with redis.Redis.from_url(first) as client:
        client.rpush("queue", "a", "b")
    valkey.stop()
    assert valkey.start() == first
    with redis.Redis.from_url(first) as client:
        assert client.lrange("queue", 0, -1) == [b"a", b"b"]


def test_a_stranger_with_a_wrong_password_or_none_is_refused(valkey: EmbeddedValkey) -> None:
    valkey.start()
    with redis.Redis(port=valkey.port) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    with redis.Redis(port=valkey.port, password="wrong") as client, pytest.raises(redis.AuthenticationError):
        client.ping()


def test_queues_are_never_evicted_and_the_password_is_in_no_command_line(
    home: Path, valkey: EmbeddedValkey
) -> None:
    url = valkey.start()
    with redis.Redis.from_url(url) as client:
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("appendonly") == {"appendonly": "yes"}
    assert valkey.process
    shown = subprocess.run(
        ["ps", "-o", "uid=,command=", "-p", str(valkey.process.pid)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert int(shown.split()[0]) != 0
    password = (home / "valkey.password").read_text().strip()
    assert password
    assert password not in shown
    assert (find_place(home).root / "valkey" / "valkey.conf").stat().st_mode & 0o777 == 0o600


def test_a_second_start_on_the_same_directory_says_so(home: Path, valkey: EmbeddedValkey) -> None:
    valkey.start()
    with pytest.raises(StartError, match="already runs on"):
        EmbeddedValkey(home).start()


def test_a_server_left_by_a_killed_weir_is_taken_over(home: Path, valkey: EmbeddedValkey) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, str(home)],
        cwd=CHECKOUT, env=fresh_environment(home), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL, run.stderr
    orphan = int(run.stdout)
    assert is_running(orphan)
    valkey.start()
    eventually(lambda: not is_running(orphan), "the orphan stops")
