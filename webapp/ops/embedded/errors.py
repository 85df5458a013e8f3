"""What a person is told when something cannot start: one line that says what to do."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StartError(Exception):
    """Something Weir needs could not be started. ``str(error)`` is one line meant for a person."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


@contextmanager
def explained(doing: str, path: Path) -> Iterator[None]:
    """Turn an ``OSError`` of the block into a ``StartError`` that names the directory and the way out."""
    try:
        yield
    except OSError as error:
        raise StartError(explain(doing, path, error)) from error


def explain(doing: str, path: Path, error: OSError) -> str:
    """One line for an ``OSError`` met while ``doing`` something under ``path``."""
    place = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"No space left {doing}: make room on the disk of {path}, or set WEIR_HOME to another one."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"No permission {doing}: {place} ({error.strerror}). Make it readable and writable "
            f"for this user, or set WEIR_HOME to a directory of your own."
        )
    return f"Failed {doing}: {place}: {error.strerror or error}."


def last_words(log: Path, limit_bytes: int = 20_000) -> str:
    """The line of a server's log that says best why it stopped: its last fatal line, else its last line."""
    lines = [line.strip() for line in tail(log, 200, limit_bytes) if line.strip()]
    for mark in ("No space left on device", "PANIC:", "FATAL:", "error:", "Fatal"):
        for line in reversed(lines):
            if mark in line:
                return line
    return lines[-1] if lines else "it said nothing"


def tail(log: Path, count: int, limit_bytes: int = 20_000) -> list[str]:
    """The last ``count`` lines of a text file, looking at no more than its last ``limit_bytes``."""
    try:
        with log.open("rb") as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - limit_bytes))
            return stream.read().decode("utf-8", "replace").splitlines()[-count:]
    except OSError as error:
        return [f"({log} cannot be read: {error.strerror})"]
