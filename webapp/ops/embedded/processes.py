"""Looking at and ending whole sessions of processes, on Linux and macOS.

Everything Weir starts is the leader of its own session. A child may open process groups of its own (Spark's
Python daemon does) but stays in the session, so the session is what is counted and ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

PROC = Path("/proc")


def session_members(session: int) -> list[int]:
    """Pids of the processes in a session that still run; zombies do not count."""
    return [pid for pid in _running() if _session_of(pid) == session]


def find_by_argument(text: str) -> list[tuple[int, str]]:
    """Pids and command lines of the processes that have ``text`` in it, this process excepted."""
    return [(pid, command) for pid, command in _command_lines() if text in command and pid != os.getpid()]


def is_running(pid: int) -> bool:
    """Whether a process exists and is more than a zombie."""
    return pid in set(_running())


def send(pid: int, sign: signal.Signals) -> None:
    """Signal one process; one that is already gone is what we wanted."""
    try:
        os.kill(pid, sign)
    except ProcessLookupError:
        return


def in_no_hurry() -> bool:
    """The default for ``hurry``: the grace is granted in full."""
    return False


def end_session(
    session: int, sign: signal.Signals, grace_s: float, hurry: Callable[[], bool] = in_no_hurry
) -> bool:
    """Ask the leader to stop, wait for its whole session to be gone, then kill what is left.

    ``hurry`` is asked all the time and ends the grace early. Returns whether nothing had to be killed.
    """
    if session in session_members(session):
        send(session, sign)
    return wait_or_kill([session], grace_s, hurry)


def wait_or_kill(sessions: list[int], grace_s: float, hurry: Callable[[], bool] = in_no_hurry) -> bool:
    """Wait for sessions that were asked to stop; after ``grace_s`` seconds kill all their members."""
    if _gone_in_time(sessions, grace_s, hurry):
        return True
    # A killed parent may have forked in between: look again until nobody is left.
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        left = [pid for session in sessions for pid in session_members(session)]
        if not left:
            break
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(0.05)
    return False


def _gone_in_time(sessions: list[int], timeout_s: float, hurry: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + timeout_s
    while any(session_members(session) for session in sessions):
        if time.monotonic() >= deadline or hurry():
            return False
        time.sleep(0.05)
    return True


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _running() -> Iterator[int]:
    if not (PROC / "self/stat").exists():
        yield from (pid for pid, state, _ in _ps() if not state.startswith("Z"))
        return
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except (OSError, IndexError):
                continue  # gone while we looked
            if state not in "ZX":
                yield int(entry.name)


def _command_lines() -> Iterator[tuple[int, str]]:
    if not (PROC / "self/stat").exists():
        yield from ((pid, command) for pid, _, command in _ps())
        return
    for pid in _running():
        try:
            yield (
                pid,
                (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"),
            )
        except OSError:
            continue  # gone while we looked


def _ps() -> Iterator[tuple[int, str, str]]:
    # Where there is no /proc (macOS). argv[0] is searched for in PATH: ps is part of every Unix.
    listing = subprocess.run(
        ["ps", "-axwwo", "pid=,stat=,command="],  # noqa: S607
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    for line in listing.stdout.splitlines():
        pid, state, command = (*line.split(None, 2), "", "")[:3]
        if pid.isdigit():
            yield int(pid), state, command
