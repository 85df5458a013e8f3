"""What the messages of an Arrow stream will need once unpacked, read without unpacking them.

A compressed buffer begins with its unpacked length, so a small file can ask for any amount of memory. pyarrow
cannot be told a limit; but it hands out messages unread, and their metadata is a FlatBuffer of which four fields
are needed (Apache Arrow, ``format/Message.fbs``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

FILE_MAGIC = b"ARROW1\0\0"

_HEADER_TYPE, _HEADER = 1, 2  # fields of Message
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3  # values of header_type
_DATA = 1  # field of DictionaryBatch
_LENGTH, _BUFFERS, _COMPRESSION = 0, 2, 3  # fields of RecordBatch


def unpacked_sizes(file: Any) -> Iterator[tuple[int | None, int]]:
    """``(rows, bytes)`` of every whole message with a body; ``rows`` is None for a dictionary.

    Ends where the stream ends or stops making sense.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the stream does not even begin with a message.
    """
    reader = pa.ipc.MessageReader.open_stream(file)
    number = 0
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        except (pa.ArrowInvalid, OSError):
            if number == 0:
                raise
            return
        number += 1
        if message.type in ("record batch", "dictionary"):
            yield _sizes(message.metadata.to_pybytes(), message.body)


def _sizes(metadata: bytes, body: pa.Buffer) -> tuple[int | None, int]:
    try:
        message = _indirect(metadata, 0)
        type_at, header_at = _field(metadata, message, _HEADER_TYPE), _field(metadata, message, _HEADER)
        is_dictionary = metadata[type_at] == _DICTIONARY_BATCH
        batch = _indirect(metadata, header_at)
        if is_dictionary:
            batch = _indirect(metadata, _field(metadata, batch, _DATA))
        length_at = _field(metadata, batch, _LENGTH)
        rows = struct.unpack_from("<q", metadata, length_at)[0] if length_at else 0
        if rows < 0:
            raise pa.ArrowInvalid("a batch of negative length")
        compressed = bool(_field(metadata, batch, _COMPRESSION))
        needed = _declared(metadata, batch, body) if compressed else body.size
    except (struct.error, IndexError) as error:
        raise pa.ArrowInvalid("a message whose metadata makes no sense") from error
    return (None if is_dictionary else rows), needed


def _declared(metadata: bytes, batch: int, body: pa.Buffer) -> int:
    """Sum of the unpacked lengths its compressed buffers declare (-1: stored as it is)."""
    vector_at = _field(metadata, batch, _BUFFERS)
    if not vector_at:
        return 0
    vector = _indirect(metadata, vector_at)
    count = struct.unpack_from("<I", metadata, vector)[0]
    data = memoryview(body)
    needed = 0
    for offset, length in struct.iter_unpack("<qq", metadata[vector + 4 : vector + 4 + 16 * count]):
        if length >= 8:
            declared = struct.unpack_from("<q", data, offset)[0] if offset >= 0 else 0
            needed += length if declared == -1 else abs(declared)
    return needed


def _indirect(data: bytes, at: int) -> int:
    """Where an offset stored at ``at`` leads."""
    return at + int(struct.unpack_from("<I", data, at)[0])


def _field(data: bytes, table: int, number: int) -> int:
    """Where a field of a table is, 0 if it has its default."""
    vtable = table - struct.unpack_from("<i", data, table)[0]
    if vtable < 0 or 4 + 2 * number >= struct.unpack_from("<H", data, vtable)[0]:
        return 0
    offset = struct.unpack_from("<H", data, vtable + 4 + 2 * number)[0]
    return table + int(offset) if offset else 0
