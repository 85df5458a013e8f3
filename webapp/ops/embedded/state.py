"""What the state directory remembers: who holds it, the passwords, the ports, the logs."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path

from webapp.ops.embedded.errors import StartError, explained

LOGS_KEPT = 3


class StateLock:
    """Held for as long as the state directory is in use; the kernel lets go of it when the process ends."""

    def __init__(self, path: Path, state_dir: Path) -> None:
        self._path = path
        self._state_dir = state_dir
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it."""
        with explained("opening the state directory", self._state_dir):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise StartError(
                f"Weir already runs on {self._state_dir} (process {holder}): "
                "stop it first, or set WEIR_HOME to another directory."
            ) from error
        self._handle = handle
        with explained("writing to the state directory", self._state_dir):
            os.ftruncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())

    def release(self) -> None:
        """Let go; a lock that is not held is left alone."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def write_private(path: Path, text: str, owner: tuple[int, int] | None = None) -> None:
    """Replace a file in one step by one that only its owner can read."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if owner:
        os.chown(fresh, *owner)
    fresh.replace(path)


def remembered_password(path: Path) -> str:
    """The password kept in a 0600 file; made up at random (192 bits, safe in a URL) the first time."""
    try:
        kept = path.read_text().strip()
    except FileNotFoundError:
        kept = ""
    if not kept:
        kept = secrets.token_urlsafe(24)
        write_private(path, kept + "\n")
    return kept


def remembered_port(path: Path) -> int:
    """The loopback port used the last time, or another free one if it was never chosen or is taken."""
    try:
        kept = int(path.read_text())
    except (FileNotFoundError, ValueError):
        kept = 0
    port = kept if 1024 <= kept <= 65535 and port_is_free(kept) else _any_free_port()
    if port != kept:
        write_private(path, f"{port}\n")
    return port


def port_is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _any_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def open_log(path: Path) -> int:
    """A file descriptor to append to a log with."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def fresh_log(path: Path) -> int:
    """Rotate a log (``x.log`` becomes ``x.log.1`` and so on), open a new one, return its descriptor."""
    for number in range(LOGS_KEPT, 0, -1):
        older = path.with_name(f"{path.name}.{number - 1}") if number > 1 else path
        if older.exists():
            older.replace(path.with_name(f"{path.name}.{number}"))
    return open_log(path)
