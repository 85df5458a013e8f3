"""What JSON can say as bytes to store: numbers come back bit for bit, which a database's JSON does not promise."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import zstandard

MAX_BYTES = 256 << 20
"""Of one value, unpacked: no job has so many instances."""


class _Mine(threading.local):
    """zstd's own memory, a thread's: getting it anew for every value would take as long as the compression."""

    def __init__(self) -> None:
        self.writer = zstandard.ZstdCompressor(level=3)
        self.reader = zstandard.ZstdDecompressor()


_MINE = _Mine()


def pack(plain: Any) -> bytes:
    """Dicts, lists and scalars (`analytics.model.plain`) as JSON in a zstd frame."""
    return _MINE.writer.compress(orjson.dumps(plain))


def unpack(payload: bytes | memoryview) -> Any:
    """What `pack` was given.

    Raises
    ------
    ValueError
        If it is something else.
    """
    try:
        text = _MINE.reader.decompress(bytes(payload), max_output_size=MAX_BYTES)
    except zstandard.ZstdError as error:
        raise ValueError(f"no packed value: {error}") from error
    return orjson.loads(text)
