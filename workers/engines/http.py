"""One HTTP request with its answer kept, whatever becomes of it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import httpx

from workers.engines.base import MAX_ANSWER_CHARS, Exchange, Note, RefusedByEngineError, UnreachableError

TIMEOUT_S = 10


def ask(
    method: str, url: str, note: Note | None, *, body: bytes | None = None,
    headers: dict[str, str] | None = None, timeout_s: float = TIMEOUT_S,
) -> httpx.Response:  # fmt: skip
    """Send a request and keep it; redirects are not followed, since nobody approved where they lead.

    Raises
    ------
    UnreachableError
        If there is no (whole) answer; RefusedByEngineError if the address is none, so nothing can be sent.
    """
    at, began = datetime.now(UTC).isoformat(), time.monotonic()
    sent = json.loads(body) if body else None

    def keep(status: int | None, answer: Any, error: str = "") -> None:
        if note is not None:
            took_ms = round((time.monotonic() - began) * 1_000)
            note(Exchange(at, method, url, sent, status, answer, took_ms, error))

    try:
        answer = httpx.request(
            method, url, content=body, headers=headers, timeout=timeout_s, follow_redirects=False
        )
    except httpx.HTTPError as error:
        why = str(error) or type(error).__name__
        keep(None, None, why)
        raise UnreachableError(f"{url} gave no answer: {why}") from error
    except httpx.InvalidURL as error:
        keep(None, None, str(error))
        raise RefusedByEngineError(f"{url} is no address: {error}") from error
    keep(answer.status_code, _shown(answer))
    return answer


def parsed(answer: httpx.Response) -> Any:
    """The JSON of an answer, without NUL, which the database does not take; None if it is none."""
    try:
        return json.loads(answer.text.replace("\\u0000", "").replace("\0", ""))
    except ValueError:
        return None


def _shown(answer: httpx.Response) -> Any:
    told = parsed(answer) if len(answer.content) <= MAX_ANSWER_CHARS else None
    return answer.text[:MAX_ANSWER_CHARS].replace("\0", "") if told is None else told
