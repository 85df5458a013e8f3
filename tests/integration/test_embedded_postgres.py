"""An embedded PostgreSQL keeps its data, recovers from what killed runs leave, and lets no stranger in."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.services import fresh_environment, state_directory
from tests.support.waiting import eventually
from webapp.ops.embedded import EmbeddedPostgres, StartError, Watchdog
from webapp.ops.embedded.placement import find_place
from webapp.ops.embedded.processes import is_running
from webapp.ops.embedded.watchdog import CHECKOUT

KILLED_RUN = """
import os, sys
from pathlib import Path
from webapp.ops.embedded import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]))
server.start()
print(server.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with state_directory() as path:
        yield path


@pytest.fixture
def watchdog() -> Iterator[Watchdog]:
    with Watchdog() as one:
        yield one


@pytest.fixture
def postgres(home: Path, watchdog: Watchdog) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(home, watchdog=watchdog)
    yield server
    server.stop()


def remember(url: str, word: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE note (word text)")
        connection.execute("INSERT INTO note VALUES (%s)", [word])


def recall(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT word FROM note").fetchone()
    assert row
    return str(row[0])


def data_of(home: Path) -> Path:
    return find_place(home).root / "postgres" / "data"


def test_data_address_and_password_survive_a_restart(postgres: EmbeddedPostgres) -> None:
    first = postgres.start()
    remember(first, "kept")
    postgres.stop()
    assert postgres.start() == first
    assert recall(first) == "kept"


def test_the_server_does_not_run_as_root_and_listens_on_loopback_only(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    assert postgres.process
    uid = subprocess.run(
        ["ps", "-o", "uid=", "-p", str(postgres.process.pid)], capture_output=True, text=True, check=True
    )
    assert int(uid.stdout) != 0
    with psycopg.connect(url) as connection:
        assert connection.execute("SHOW listen_addresses").fetchone() == ("127.0.0.1",)
        assert connection.execute("SHOW timezone").fetchone() == ("UTC",)
        superuser = connection.execute(
            "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert superuser == (False,)


@pytest.mark.parametrize("user", ["weir", "postgres"])
def test_a_stranger_with_a_wrong_password_or_none_is_refused(postgres: EmbeddedPostgres, user: str) -> None:
    postgres.start()
    for password in ("wrong", ""):
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(
                host="127.0.0.1", port=postgres.port, user=user, dbname="postgres", password=password
            )


def test_passwords_and_data_are_private(home: Path, postgres: EmbeddedPostgres) -> None:
    postgres.start()
    for name in ("postgres-postgres.password", "postgres-weir.password"):
        assert (home / name).stat().st_mode & 0o777 == 0o600
    assert data_of(home).stat().st_mode & 0o777 == 0o700


def test_a_second_start_on_the_same_directory_says_who_has_it(home: Path, postgres: EmbeddedPostgres) -> None:
    postgres.start()
    with pytest.raises(StartError, match=f"already runs on {home} \\(process {os.getpid()}\\)"):
        EmbeddedPostgres(home).start()
    assert postgres.process
    assert postgres.process.poll() is None


def test_a_server_killed_outright_starts_again_on_its_data(postgres: EmbeddedPostgres) -> None:
    url = postgres.start()
    remember(url, "committed")
    assert postgres.process
    postgres.process.send_signal(signal.SIGKILL)
    postgres.process.wait()
    assert recall(postgres.restart()) == "committed"


def test_a_pid_file_whose_pid_now_belongs_to_another_process_is_no_obstacle(
    home: Path, postgres: EmbeddedPostgres
) -> None:
    postgres.start()
    assert postgres.process
    postgres.process.send_signal(signal.SIGKILL)
    postgres.process.wait()
    pid_file = data_of(home) / "postmaster.pid"
    stranger = subprocess.Popen(["/bin/sleep", "60"], **find_place(home).user.popen())
    try:
        pid_file.write_text("\n".join([str(stranger.pid), *pid_file.read_text().splitlines()[1:]]) + "\n")
        postgres.restart()
        assert stranger.poll() is None, "the stranger must be left alone"
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", "rubbish\n"])
def test_a_pid_file_written_half_is_no_obstacle(home: Path, postgres: EmbeddedPostgres, content: str) -> None:
    postgres.start()
    postgres.stop()
    (data_of(home) / "postmaster.pid").write_text(content)
    postgres.start()


def test_a_server_left_by_a_killed_weir_is_taken_over(home: Path, postgres: EmbeddedPostgres) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED_RUN, str(home)],
        cwd=CHECKOUT, env=fresh_environment(home), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == -signal.SIGKILL, run.stderr
    orphan = int(run.stdout)
    assert is_running(orphan)
    postgres.start()
    eventually(lambda: not is_running(orphan), "the orphan stops")


def test_an_initialisation_cut_short_is_done_again(home: Path, postgres: EmbeddedPostgres) -> None:
    place = find_place(home)
    (place.server_dir("postgres") / "data.new" / "base").mkdir(parents=True)
    (place.server_dir("postgres") / "data").mkdir()
    remember(postgres.start(), "fresh")


def test_an_incomplete_data_directory_is_set_aside_not_deleted(home: Path, watchdog: Watchdog) -> None:
    root = find_place(home).server_dir("postgres")
    (root / "data" / "global").mkdir(parents=True)
    (root / "data" / "PG_VERSION").write_text("18\n")
    said: list[str] = []
    with EmbeddedPostgres(home, watchdog=watchdog, notice=said.append):
        assert (root / "data.incomplete-1" / "PG_VERSION").exists()
    assert any("data.incomplete-1" in line for line in said)


def test_data_of_another_major_version_is_left_alone(home: Path, postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    (data_of(home) / "PG_VERSION").write_text("17\n")
    with pytest.raises(StartError, match="made by PostgreSQL 17"):
        postgres.start()


def test_a_taken_port_is_left_to_its_owner(postgres: EmbeddedPostgres) -> None:
    remember(postgres.start(), "moved")
    old = postgres.port
    postgres.stop()
    with socket.socket() as owner:
        owner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        owner.bind(("127.0.0.1", old))
        owner.listen()
        url = postgres.start()
    assert postgres.port != old
    assert recall(url) == "moved"


def test_a_lost_password_is_told_in_one_line(home: Path, postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    (home / "postgres-postgres.password").unlink()
    with pytest.raises(StartError, match="refuses the password in") as caught:
        postgres.start()
    assert "\n" not in str(caught.value)
    assert postgres.process is None
