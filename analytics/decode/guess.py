"""Which trace format a file most likely has, by its first bytes and, if they do not tell, by its name."""

from __future__ import annotations

import re
import zlib

import msgpack

HEAD_BYTES = 16_384
"""As many first bytes as :func:`guess_format` can make use of."""

_MAGIC = (
    (b"PAR1", "parquet"),
    (b"PK\x03\x04", "ds2"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),  # a stream's first message begins so
    (b"\x28\xb5\x2f\xfd", "spark-event-log"),  # zstd, in which Spark alone writes
)
_JSON = (
    (re.compile(rb'"Event"\s*:\s*"(SparkListener|org\.apache\.spark)'), "spark-event-log"),
    (re.compile(rb'"(resourceSpans|resource_spans)"\s*:'), "otlp"),
    (re.compile(rb'"traceEvents"\s*:|"ph"\s*:\s*"[A-Za-z]"'), "chrome"),
    (re.compile(rb'"(start_ns|at_ns)"\s*:'), "activities"),
)
_DS2 = re.compile(
    rb"(?:#[^\n]*\n|[ \t\r]*\n)*[^,\n]+,[^,\n]+,[ \t]*\d+,"
    rb"(?:[^,\n]+,[^,\n]+,[ \t]*\d+|[ \t]*[\d.]+(?:,[ \t]*-?[\d.eE+-]+){4})[ \t\r]*(?:\n|$)"
)
"""A row of rates or of a topology, maybe after comments."""

_SUFFIXES = (
    ((".parquet", ".pq"), "parquet"),
    ((".arrow", ".arrows", ".feather", ".ipc"), "arrow"),
    ((".ndjson", ".jsonl"), "activities"),
    ((".msgpack", ".snailtrail"), "snailtrail"),
    ((".pb", ".otlp"), "otlp"),
    ((".zstd", ".zst", ".lz4", ".inprogress"), "spark-event-log"),
    ((".json", ".trace", ".pt.trace"), "chrome"),
)
_SPARK_NAMES = re.compile(r"^(events_\d+_|app-\d{14}-\d{4}|application_\d+_\d+|local-\d{13})")
_MAX_VARINT = 5
_ROW_BYTES = 2_048


def guess_format(name: str, head: bytes) -> str | None:
    """The format of a file, as a key of ``analytics.decode.formats.UPLOADED``; None if nothing fits.

    Parameters
    ----------
    name
        The file's name; ``.gz`` at its end is passed over.
    head
        Its first bytes, ``HEAD_BYTES`` or fewer, as they are in the file (gzip is looked into).
    """
    head = _unpacked(head[:HEAD_BYTES])
    return _by_content(head) or _by_name(name.lower().removesuffix(".gz"))


def _unpacked(head: bytes) -> bytes:
    if not head.startswith(b"\x1f\x8b"):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def _by_content(head: bytes) -> str | None:
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] in (b"{", b"["):
        found = [(match.start(), name) for pattern, name in _JSON if (match := pattern.search(text))]
        if found:
            return min(found)[1]  # the first that is seen: a field of another format may lie deeper
    if _DS2.match(text[:_ROW_BYTES]):
        return "ds2"
    if _are_records(head):
        return "snailtrail"
    return "otlp" if _is_protobuf(head) else None


def _are_records(head: bytes) -> bool:
    """Whether the bytes begin with two records of SnailTrail: seven integers, of which two are small codes."""
    unpacker = msgpack.Unpacker(raw=True)
    unpacker.feed(head)
    values: list[object] = []
    try:
        for value in unpacker:
            values.append(value)
            if not isinstance(value, int) or isinstance(value, bool):
                return False
            if len(values) == 14:
                break
    except (ValueError, msgpack.exceptions.UnpackException):
        return False
    rows = [values[at : at + 7] for at in range(0, len(values) - 6, 7)]
    return bool(rows) and all(row[2] in range(1, 14) and row[3] in range(1, 5) for row in rows)


def _is_protobuf(head: bytes) -> bool:
    """Whether the bytes begin as ``TracesData`` does: field 1, its length, and in it a resource or its spans."""
    at = 4 if head[:1] == b"\0" else 0  # with a length of four bytes in front
    if head[at : at + 1] != b"\x0a":
        return False
    end = at + 1
    while end < len(head) and head[end] & 0x80 and end - at <= _MAX_VARINT:
        end += 1
    return head[end + 1 : end + 2] in (b"\x0a", b"\x12")


def _by_name(name: str) -> str | None:
    if _SPARK_NAMES.match(name):
        return "spark-event-log"
    return next((format_name for ends, format_name in _SUFFIXES if name.endswith(ends)), None)
