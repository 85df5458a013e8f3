"""The body of a delivery, read and unpacked within limits: no size it claims or has can exhaust the memory."""

from __future__ import annotations

import zlib
from typing import Protocol

import zstandard
from django.conf import settings
from django.http import HttpRequest

from webapp.api.problems import ProblemError

CHUNK = 1 << 20
PIECE = 1 << 10
"""Fed to a decompressor at once: it copies what follows a member, and there may be many small members."""


class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...


def read_body(request: HttpRequest) -> bytes:
    """The body as it came.

    Raises
    ------
    ProblemError
        413 if it is larger than ``WEIR_MAX_BODY_BYTES``, 400 if it ends before its declared length.
    """
    most = settings.WEIR_MAX_BODY_BYTES
    declared = int(request.META.get("CONTENT_LENGTH") or 0)
    if declared > most:
        raise _too_large(most)
    parts, size = [], 0
    source = _source(request)
    while chunk := source.read(min(CHUNK, most + 1 - size)):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            raise _too_large(most)
    if size < declared:
        raise ProblemError(400, "body_cut_short", f"the body ends after {size} of {declared} bytes")
    return b"".join(parts)


def _source(request: HttpRequest) -> _Readable:
    """Django takes a body without a declared length for empty; the server below marks the end of such a body."""
    if request.META.get("HTTP_TRANSFER_ENCODING") and request.META.get("wsgi.input_terminated"):
        chunked: _Readable = request.META["wsgi.input"]
        return chunked
    return request


def unpack(body: bytes, encoding: str) -> bytes:
    """The content of a body in this ``Content-Encoding``: none, gzip or zstd.

    Raises
    ------
    ProblemError
        415 for another encoding, 413 if it is larger than ``WEIR_MAX_UNPACKED_BYTES`` unpacked, 400 if damaged.
    """
    most = settings.WEIR_MAX_UNPACKED_BYTES
    match encoding.strip().lower():
        case "" | "identity":
            content = body
        case "gzip":
            content = _gunzip(body, most)
        case "zstd":
            content = _unzstd(body, most)
        case _:
            raise ProblemError(415, "unknown_encoding", "Content-Encoding may be gzip or zstd")
    if len(content) > most:
        raise _too_large(most, "unpacked")
    return content


def _gunzip(body: bytes, most: int) -> bytes:
    """All members of a gzip stream, and at most one byte more than the limit."""
    parts, size, at = [], 0, 0
    view = memoryview(body)
    try:
        while at < len(view):
            member = zlib.decompressobj(wbits=31)
            while not member.eof:
                piece = view[at : at + PIECE]
                part = member.decompress(piece, most + 1 - size)
                parts.append(part)
                size += len(part)
                if size > most:
                    return b"".join(parts)
                at += len(piece) - len(member.unconsumed_tail) - len(member.unused_data)
                if not piece and not part and not member.eof:
                    raise _damaged("gzip")
    except zlib.error as error:
        raise _damaged("gzip") from error
    return b"".join(parts)


def _unzstd(body: bytes, most: int) -> bytes:
    """All frames, and little more than the limit: a piece of 256 bytes holds at most 85 blocks of 128 KiB."""
    parts, size, at = [], 0, 0
    view = memoryview(body)
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        while at < len(view):
            frame = unpacker.decompressobj(read_across_frames=False)
            while not frame.eof:
                piece = view[at : at + 256]
                if not piece:
                    raise _damaged("zstd")
                part = frame.decompress(piece)
                parts.append(part)
                size += len(part)
                if size > most:
                    return b"".join(parts)
                at += len(piece) - len(frame.unused_data)
    except zstandard.ZstdError as error:
        raise _damaged("zstd") from error
    return b"".join(parts)


def _too_large(most: int, how: str = "") -> ProblemError:
    return ProblemError(
        413, "body_too_large", f"the body is larger than {most:,} bytes{how and ' '}{how}: send less at once",
        retry_after_s=3600,
    )  # fmt: skip


def _damaged(what: str) -> ProblemError:
    return ProblemError(400, "damaged_body", f"the body is damaged or no {what}")
