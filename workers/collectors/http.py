"""Asking another server over HTTP, bounded in size and time whatever it answers."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

STEP_S = 5.0
"""For a connection, and between two parts of an answer."""


class FetchError(Exception):
    """There is no answer that could be read; the message is one line for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered, errors too."""

    status: int
    reason: str
    content_type: str
    body: bytes


def make_client() -> httpx.Client:
    """A client that keeps its connections. It follows no redirects: they lead where nobody meant to ask."""
    return httpx.Client(timeout=STEP_S, follow_redirects=False)


def fetch(
    client: httpx.Client, url: str, *, max_bytes: int, within_s: float, headers: Mapping[str, str] | None = None
) -> Answer:  # fmt: skip
    """The whole answer to a GET.

    It is asked for uncompressed, and refused compressed: a short body could unpack to any size.

    Raises
    ------
    FetchError
        If the server cannot be reached, or its answer is compressed, too long or takes longer than ``within_s``.
    """
    end_s = time.monotonic() + within_s
    try:
        with client.stream("GET", url, headers={"Accept-Encoding": "identity", **(headers or {})}) as answer:
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise FetchError("the answer is compressed although that was not asked for")
            body = bytearray()
            for piece in answer.iter_raw():
                body += piece
                if len(body) > max_bytes:
                    raise FetchError(f"the answer is longer than {max_bytes:,} bytes")
                if time.monotonic() > end_s:
                    raise FetchError(f"the answer was not complete after {within_s:g} s")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise FetchError(f"cannot be reached: {_why(error)}") from error
    kind = answer.headers.get("Content-Type", "")
    return Answer(answer.status_code, answer.reason_phrase, kind, bytes(body))


def _why(error: Exception) -> str:
    match error:
        case httpx.ConnectTimeout():
            return f"no connection within {STEP_S:g} s"
        case httpx.TimeoutException():
            return f"no answer within {STEP_S:g} s"
    words = " ".join(str(error).split()) or type(error).__name__
    return re.sub(r"^\[Errno -?\d+\] ", "", words)
