"""Where Spark puts event logs, and reading them while they grow.

A log is one file (``app-1``, ``app-1.zstd``, with ``.inprogress`` while the application runs) or a rolling
directory ``eventlog_v2_<app>`` of ``events_<n>_<app>[.codec]`` with a zero-byte ``appstatus_<app>`` beside
them (``.inprogress`` is on *it*). The newest file may end in the middle of a line or of a zstd frame: the
rest is left for the next read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

IN_PROGRESS = ".inprogress"
COMPACT = ".compact"
ZSTD_SUFFIXES = (".zstd", ".zst")
UNSUPPORTED_SUFFIXES = (".lz4", ".snappy", ".lzf")

_ROLLING = "eventlog_v2_"
_PART = re.compile(r"events_(\d+)_")
_FIRST_EVENT = b'{"Event":"SparkListenerLogStart"'


class UnreadableLogError(Exception):
    """The log cannot be read; the message is one line for people."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a log. ``number`` is its n, 0 for a log that is a single file."""

    number: int
    path: Path
    compact: bool = False

    @property
    def compressed(self) -> bool:
        """Whether it is zstd.

        Raises
        ------
        UnreadableLogError
            If it is compressed with anything else.
        """
        suffix = _codec(self.path)
        if suffix in UNSUPPORTED_SUFFIXES:
            raise UnreadableLogError(
                f"{self.path}: {suffix[1:]} compression is not supported; "
                "set spark.eventLog.compression.codec=zstd"
            )
        return suffix in ZSTD_SUFFIXES


def is_rolling(path: Path) -> bool:
    """Whether this is the directory of a rolling event log."""
    return path.name.startswith(_ROLLING) and path.is_dir()


def log_parts(path: Path) -> list[Part]:
    """The log's files by number; a compacted file comes before the original of the same number.

    A single file is found by its name with or without ``.inprogress``, which Spark takes away at the end.

    Raises
    ------
    UnreadableLogError
        If there is no such log.
    """
    if path.is_dir():
        if not is_rolling(path):
            raise UnreadableLogError(f"{path}: a directory, but not one of an event log ({_ROLLING}…)")
        return _rolling_parts(path)
    for candidate in (path, path.with_name(path.name + IN_PROGRESS), _finished_name(path)):
        if candidate.is_file():
            return [Part(0, candidate)]
    raise UnreadableLogError(f"{path}: no such file")


def is_finished(path: Path) -> bool:
    """Whether Spark has marked the log as complete (it does not when the application was killed)."""
    if is_rolling(path):
        return any(not item.name.endswith(IN_PROGRESS) for item in path.glob("appstatus_*"))
    return _finished_name(path).is_file()


def find_logs(directory: Path) -> list[Path]:
    """The event logs directly under a directory, by name; single files by their name without ``.inprogress``.

    Raises
    ------
    UnreadableLogError
        If the directory cannot be listed.
    """
    try:
        entries = sorted(item for item in directory.iterdir() if not item.name.startswith("."))
    except OSError as error:
        raise UnreadableLogError(f"{directory}: {error.strerror}") from error
    rolling = [item for item in entries if is_rolling(item)]
    single = {_finished_name(item) for item in entries if item.is_file() and _is_single_log(item)}
    return sorted([*rolling, *single])


def from_the_start(parts: list[Part]) -> list[Part]:
    """What to read of these when nothing has been read: a compacted file stands for all up to its number."""
    last = max((part.number for part in parts if part.compact), default=-1)
    return [part for part in parts if part.number > last or (part.compact and part.number == last)]


def _rolling_parts(directory: Path) -> list[Part]:
    parts = [
        Part(int(match[1]), item, item.name.endswith(COMPACT))
        for item in directory.iterdir()
        if (match := _PART.match(item.name))
    ]
    return sorted(parts, key=lambda part: (part.number, not part.compact))


def _finished_name(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(IN_PROGRESS))


def _codec(path: Path) -> str:
    return Path(path.name.removesuffix(IN_PROGRESS).removesuffix(COMPACT)).suffix


def _is_single_log(path: Path) -> bool:
    """By its content: other files may lie beside the logs."""
    if _codec(path) in (*ZSTD_SUFFIXES, *UNSUPPORTED_SUFFIXES):
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_FIRST_EVENT)) == _FIRST_EVENT
    except OSError:
        return False
