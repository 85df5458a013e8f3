"""Setting up says in one line what is missing, and does nothing when there is nothing to do."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from webapp.ops.embedded.watchdog import CHECKOUT

TOOLS = ("bash", "env", "dirname", "cmp", "cp", "rm", "id", "sh")


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with a shell and no Python, apt or Chromium."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (folder / tool).symlink_to(found)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone that was never set up."""
    folder = tmp_path / "clone"
    (folder / ".ci").mkdir(parents=True)
    for script in ("setup", "browser"):
        shutil.copy(CHECKOUT / ".ci" / script, folder / ".ci" / script)
    (folder / "requirements.lock").write_text("# empty\n")
    return folder


def run(script: Path, path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(script)], env={"PATH": str(path)} | more, capture_output=True, text=True, check=False
    )


def program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_without_python_one_line_says_what_to_install(checkout: Path, bare_path: Path) -> None:
    done = run(checkout / ".ci" / "setup", bare_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Weir needs Python 3.11 or newer")
    assert len(done.stderr.splitlines()) == 1


def test_a_python_that_is_too_old_is_passed_over(checkout: Path, bare_path: Path) -> None:
    program(bare_path / "python3", "exit 1")  # what a Python 3.9 answers to the version question
    done = run(checkout / ".ci" / "setup", bare_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Weir needs Python 3.11 or newer")


def test_a_python_without_venv_is_told_with_the_package_to_install(checkout: Path, bare_path: Path) -> None:
    program(bare_path / "python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    done = run(checkout / ".ci" / "setup", bare_path)
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_nothing_is_done_when_the_lock_has_not_changed(checkout: Path, bare_path: Path) -> None:
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    program(binaries / "python", "exit 0")
    shutil.copy(checkout / "requirements.lock", checkout / ".venv" / "requirements.lock.installed")
    done = run(checkout / ".ci" / "setup", bare_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_changed_lock_is_installed_with_hashes_required(checkout: Path, bare_path: Path) -> None:
    program(bare_path / "python3", "exit 0")
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    program(binaries / "python", f'echo "$@" >> {checkout}/calls')
    done = run(checkout / ".ci" / "setup", bare_path)
    assert done.returncode == 0, done.stderr
    assert "--require-hashes -r requirements.lock" in (checkout / "calls").read_text()
    assert (checkout / ".venv" / "requirements.lock.installed").exists()


def test_a_missing_chromium_that_cannot_be_installed_fails_loudly(checkout: Path, bare_path: Path) -> None:
    done = run(checkout / ".ci" / "browser", bare_path, CHROMIUM="/nowhere/chromium")
    assert done.returncode == 1
    assert done.stderr.startswith("The browser tests need Chromium")


def test_a_user_who_is_not_root_is_given_the_exact_command(checkout: Path, bare_path: Path) -> None:
    program(bare_path / "apt-get", "exit 0")
    (bare_path / "id").unlink()
    program(bare_path / "id", "echo 1000")
    done = run(checkout / ".ci" / "browser", bare_path, CHROMIUM="/nowhere/chromium")
    assert done.returncode == 1
    assert "sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends chromium" in done.stderr


def test_make_help_explains_every_command() -> None:
    done = subprocess.run(["make", "help"], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    for target in ("setup", "run", "test", "lint", "types", "fmt", "bench", "browser", "clean"):
        assert f"  make {target} " in done.stdout
