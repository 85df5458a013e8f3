"""Following a growing event log: every complete line once, over rollovers, restarts and half-written ends.

A position says which file of the log, and how many *decompressed* bytes of it have been given. It is a JSON
value; whoever stores it together with what became of the lines loses none and sees none twice.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TypedDict

import zstandard

from analytics.decode.batch import Oddities
from analytics.decode.event_log_files import Part, UnreadableLogError, from_the_start, log_parts
from analytics.model.diagnostics import Diagnostic

CHUNK_BYTES = 1 << 18
LEAST_BYTES = 1 << 12
DEFAULT_LIMIT_BYTES = 8 << 20
MAX_LINE_BYTES = 64 << 20
HEAD_BYTES = 4_096


class LogReplacedError(UnreadableLogError):
    """The log is not the one this position belongs to: it shrank, or begins differently."""


class Position(TypedDict):
    """Place in a log: which file, decompressed offset in it, and a checksum of how that file begins."""

    file: int
    compact: bool
    offset: int
    head_bytes: int
    head_crc: int


START: Position = {"file": -1, "compact": False, "offset": 0, "head_bytes": 0, "head_crc": 0}


def read_new(
    path: Path, position: Position | None = None, limit_bytes: int = DEFAULT_LIMIT_BYTES
) -> tuple[list[bytes], Position, tuple[Diagnostic, ...]]:
    """The complete lines after a position, and the position after them.

    Reads at least one line if there is one, then stops after about ``limit_bytes``. To poll often, keep a
    :class:`Follower`: this decompresses the current file from its start each time.
    """
    follower = Follower(path, position)
    lines = follower.read(limit_bytes)
    diagnostics = follower.take_diagnostics()
    follower.close()
    return lines, follower.position, diagnostics


class Follower:
    """Reads one log from a position on, keeping the file and its decompressor open between reads.

    Attributes
    ----------
    position
        Place after the last line given.
    unfinished_line
        What has been read of a line that has no end yet.
    """

    def __init__(self, path: Path, position: Position | None = None) -> None:
        self.path = path
        self.position: Position = position or START
        self.unfinished_line = b""
        self._oddities = Oddities()
        self._file: _OpenPart | None = None
        self._head = b""

    def read(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> list[bytes]:
        """The next complete lines, without their ends; an empty list when there are none yet.

        Raises
        ------
        LogReplacedError
            If the log shrank or is another one now.
        UnreadableLogError
            If it is missing, unreadable, damaged, has a line above 64 MiB or an unsupported codec.
        """
        lines: list[bytes] = []
        taken = 0
        try:
            while taken < limit_bytes and self._ready():
                chunk = self._next_chunk(min(CHUNK_BYTES, max(limit_bytes - taken, LEAST_BYTES)))
                if chunk is None:
                    break
                complete = self._split(chunk)
                lines += complete
                taken += sum(map(len, complete)) + len(complete)
        except (OSError, zstandard.ZstdError, UnreadableLogError) as error:
            self.close()
            if not lines:  # else give the good lines now; the next call meets the error again
                raise _readable(self.path, error) from error
        return lines

    def remaining(self) -> Iterator[bytes]:
        """All further lines; at the end also one whose line end is missing."""
        while lines := self.read():
            yield from lines
        if self.unfinished_line:
            yield self.unfinished_line

    def take_diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was odd since the last call."""
        found, self._oddities = self._oddities.diagnostics(), Oddities()
        return found

    def close(self) -> None:
        """Close the file; reading again opens it at the position."""
        if self._file is not None:
            self._file.close()
        self._file, self.unfinished_line = None, b""

    def _ready(self) -> bool:
        """Have the right file open; False if the log has none yet."""
        if self._file is not None:
            return True
        place, parts = self.position, log_parts(self.path)
        if place["file"] < 0:
            parts = from_the_start(parts)
            if parts:
                self._begin(parts[0])
            return bool(parts)
        for part in parts:
            if part.number == place["file"] and part.compact == place["compact"]:
                self._file = _OpenPart(part)
                self._skip(self._file, place)
                return True
        later = self._later(parts)
        if not later:
            raise LogReplacedError(f"{self.path}: file {place['file']} and all after it are gone")
        self._oddities.add(
            "log_file_missing", f"{self.path}: file {place['file']} was deleted while it was read"
        )
        self._begin(later[0])
        return True

    def _later(self, parts: list[Part]) -> list[Part]:
        """Files after the present one. A compacted one only repeats what was read before."""
        return [part for part in parts if part.number > self.position["file"] and not part.compact]

    def _begin(self, part: Part) -> None:
        if self.position["file"] >= 0 and part.number != self.position["file"] + 1:
            example = f"{self.path}: files between {self.position['file']} and {part.number} are gone"
            self._oddities.add("log_file_missing", example)
        if part.compact:
            self._oddities.add("log_compacted", f"{part.path.name}: Spark dropped events of finished jobs")
        self._file, self._head = _OpenPart(part), b""
        self.position = {**START, "file": part.number, "compact": part.compact}

    def _skip(self, file: _OpenPart, position: Position) -> None:
        """Read up to the position, making sure that it is still the same file."""
        self._head = b""
        left = position["head_bytes"] if file.seekable else position["offset"]
        while left > 0:
            chunk = file.read(min(CHUNK_BYTES, left))
            if not chunk:
                raise LogReplacedError(f"{self.path}: shorter than when it was last read")
            self._remember_head(chunk[:left])
            file.unread(chunk[left:])
            left -= len(chunk)
        if file.seekable and not file.seek(position["offset"]):
            raise LogReplacedError(f"{self.path}: shorter than when it was last read")
        if zlib.crc32(self._head[: position["head_bytes"]]) != position["head_crc"]:
            raise LogReplacedError(f"{self.path}: begins differently than when it was last read")

    def _next_chunk(self, size: int) -> bytes | None:
        """More bytes of the log, from the next file if there is one; None when there are none yet."""
        assert self._file is not None
        part = self._file.part
        # Look for a next file *before* reading to the end of this one: Spark closes a file before it opens
        # the next, so if there is one, what we read now is all.
        later = self._later(log_parts(self.path)) if part.number else []
        chunk = self._file.read(size)
        if chunk:
            return chunk
        if self._file.replaced():
            self.close()  # and read the file that is there now, if it begins with what we know
            return b""
        if not later:
            return None
        if self.unfinished_line:
            self._oddities.add("truncated_line", f"{part.path.name} ends in the middle of a line")
        self.close()
        self._begin(later[0])
        return b""

    def _split(self, chunk: bytes) -> list[bytes]:
        self._remember_head(chunk)
        *complete, rest = (self.unfinished_line + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise UnreadableLogError(f"{self.path}: a line of more than {MAX_LINE_BYTES >> 20} MiB")
        self.unfinished_line = rest
        offset = self.position["offset"] + sum(map(len, complete)) + len(complete)
        head = self._head[: min(HEAD_BYTES, offset)]
        self.position = {
            **self.position,
            "offset": offset,
            "head_bytes": len(head),
            "head_crc": zlib.crc32(head),
        }
        return complete

    def _remember_head(self, chunk: bytes) -> None:
        if len(self._head) < HEAD_BYTES:
            self._head += chunk[: HEAD_BYTES - len(self._head)]


def _readable(path: Path, error: Exception) -> UnreadableLogError:
    if isinstance(error, UnreadableLogError):
        return error
    reason = error.strerror if isinstance(error, OSError) else f"damaged zstd data ({error})"
    return UnreadableLogError(f"{path}: {reason}")


class _OpenPart:
    """One open file of the log, decompressed as far as it has been written."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self._unzip = _Unzip() if part.compressed else None
        self._raw: BinaryIO = part.path.open("rb")
        self._unread = b""
        self._pieces: Iterator[bytes] = iter(())

    def read(self, size: int) -> bytes:
        """About ``size`` further bytes; none at the present end of the file."""
        if self._unread:
            chunk, self._unread = self._unread, b""
            return chunk
        if self._unzip is None:
            return self._raw.read(size)
        while True:
            for piece in self._pieces:
                if piece:
                    return piece
            raw = self._raw.read(size)
            if not raw:
                return b""
            self._pieces = self._unzip.feed(raw)

    @property
    def seekable(self) -> bool:
        """Whether an offset can be gone to; a compressed file must be read up to it."""
        return self._unzip is None

    def seek(self, offset: int) -> bool:
        """Go to this offset; False if the file is shorter."""
        self._unread = b""
        return self._raw.seek(offset) <= os.fstat(self._raw.fileno()).st_size

    def unread(self, chunk: bytes) -> None:
        """Give this back first at the next read."""
        self._unread = chunk

    def replaced(self) -> bool:
        """Whether there is another file by this name now, or this one is shorter than what was read."""
        try:
            there = self.part.path.stat()
        except FileNotFoundError:
            return False  # Spark took .inprogress away, or deleted it after all was written
        return there.st_ino != os.fstat(self._raw.fileno()).st_ino or there.st_size < self._raw.tell()

    def close(self) -> None:
        self._raw.close()


class _Unzip:
    """zstd frames one after another, fed in pieces.

    A step of 1 KiB gives 33 MB at worst and some 30 KB on real logs, so memory stays bounded.
    """

    STEP_BYTES = 1_024

    def __init__(self) -> None:
        self._stream = zstandard.ZstdDecompressor().decompressobj(write_size=CHUNK_BYTES)

    def feed(self, raw: bytes) -> Iterator[bytes]:
        while raw:
            step, raw = raw[: self.STEP_BYTES], raw[self.STEP_BYTES :]
            yield self._stream.decompress(step)
            if self._stream.eof:
                raw = self._stream.unused_data + raw
                self._stream = zstandard.ZstdDecompressor().decompressobj(write_size=CHUNK_BYTES)
