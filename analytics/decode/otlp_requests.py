"""Bodies of OTLP requests as messages: protobuf, and OTLP's own dialect of JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import orjson
from google.protobuf import json_format
from google.protobuf.message import DecodeError

from analytics.decode.limits import UnreadableFileError

T = TypeVar("T")


def from_protobuf(body: bytes, message: Callable[[], T], what: str) -> T:
    """Parse a binary request of this class; ``what`` names it in errors ("trace").

    Raises
    ------
    UnreadableFileError
        If it is damaged or something else.
    """
    request: Any = message()
    try:
        request.ParseFromString(body)
    except DecodeError as error:
        raise UnreadableFileError(f"no OTLP {what} message: {error}") from error
    parsed: T = request
    return parsed


def from_json(
    body: bytes,
    message: Callable[[], T],
    what: str,
    fields: set[str],
    prepare: Callable[[dict[str, Any]], None],
) -> T:
    """Parse a request in OTLP's JSON.

    Parameters
    ----------
    body, message, what
        As for :func:`from_protobuf`.
    fields
        The object must have one of these.
    prepare
        Rewrites the document so that protobuf's reader understands it: OTLP's ids are hexadecimal, and the reader
        silently misreads them as base64.

    Raises
    ------
    UnreadableFileError
        If it is no JSON object or has a field of a wrong type. Unknown fields are passed over.
    """
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnreadableFileError(f"no JSON: {error}") from error
    if not isinstance(document, dict) or not (fields & document.keys()):
        raise UnreadableFileError(f"no OTLP {what}s: expected an object with {min(fields)}")
    request: Any = message()
    try:
        prepare(document)
        json_format.ParseDict(document, request, ignore_unknown_fields=True)
    except (json_format.ParseError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # protobuf's reader answers a value of an unexpected type with any of these
        raise UnreadableFileError(f"no OTLP {what}s: {error}") from error
    parsed: T = request
    return parsed
