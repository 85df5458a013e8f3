"""How much of a file may be read, and the errors that say in one line why it could not be used.

A limit counts what has to be held: bytes *after* decompression, and records (lines, spans, events or rows). Files
that are read as one trace share one budget.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

_GZIP = b"\x1f\x8b"

MAX_LINE_BYTES = 1 << 20
"""Of a line. The longest that a decoder can use has a few names of some hundred characters."""


class UnreadableFileError(Exception):
    """The file cannot be used; the message is one line for people."""


class TooLargeError(UnreadableFileError):
    """The file has more bytes or records than the limits allow."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Most bytes (decompressed) and most records that are read."""

    max_bytes: int
    max_records: int


class Budget:
    """What is left of the limits while files are read."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.bytes_left = limits.max_bytes
        self.records_left = limits.max_records

    def take_bytes(self, count: int) -> None:
        """Use up bytes.

        Raises
        ------
        TooLargeError
            If so many are not left.
        """
        self.bytes_left -= count
        if self.bytes_left < 0:
            raise TooLargeError(f"more than {self._limits.max_bytes:,} bytes, the limit (max-bytes)")

    def take_records(self, count: int = 1) -> None:
        """Use up records.

        Raises
        ------
        TooLargeError
            If so many are not left.
        """
        self.records_left -= count
        if self.records_left < 0:
            raise TooLargeError(f"more than {self._limits.max_records:,} records, the limit (max-records)")


class LimitedFile:
    """A file whose bytes come out of a budget, so that no size it claims or has can exhaust the memory."""

    def __init__(self, file: BinaryIO, budget: Budget) -> None:
        self._file = file
        self._budget = budget
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, all if ``size`` is negative."""
        most = self._budget.bytes_left + 1
        return self._taken(self._file.read(most if size < 0 else min(size, most)))

    def lines(self) -> Iterator[bytes]:
        """The lines with their ends; each counts as a record.

        Of a line longer than ``MAX_LINE_BYTES`` only one byte more than these is given; its rest is passed over.
        """
        while line := self._piece():
            self._budget.take_records()
            yield line
            piece = line
            while len(piece) > MAX_LINE_BYTES and not piece.endswith(b"\n"):
                piece = self._piece()

    def _piece(self) -> bytes:
        """What is left of a line, or its next bytes."""
        most = min(self._budget.bytes_left, MAX_LINE_BYTES) + 1
        return self._taken(self._file.readline(most))

    def _taken(self, data: bytes) -> bytes:
        self._budget.take_bytes(len(data))
        self.position += len(data)
        return data


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Name the file in every error: those of the operating system and of gzip become ours.

    Raises
    ------
    UnreadableFileError
        With the path in front.
    """
    try:
        yield
    except UnreadableFileError as error:
        raise type(error)(f"{path}: {' '.join(str(error).split())}") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UnreadableFileError(f"{path}: damaged or cut short gzip: {error}") from error
    except OSError as error:
        raise UnreadableFileError(f"{path}: {error.strerror or error}") from error


@contextmanager
def opened(path: Path, budget: Budget) -> Iterator[LimitedFile]:
    """Open a file for reading within a budget, through gzip if it is compressed so; errors name it."""
    with about(path), path.open("rb") as file:
        if file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP:
            with gzip.open(file) as unpacked:
                yield LimitedFile(cast(BinaryIO, unpacked), budget)
        else:
            yield LimitedFile(file, budget)
