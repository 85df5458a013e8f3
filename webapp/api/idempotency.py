"""``Idempotency-Key``: a request sent again gets the answer of the first time, and nothing happens twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import DatabaseError, InterfaceError, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Token
from webapp.api.models import IdempotentAnswer
from webapp.api.problems import ProblemError, answer_to

MAX_KEY_CHARS = 200
KEPT_HOURS = 24
KEPT_HEADERS = ("Location", "ETag")


def once(request: Request, token: Token, body_digest: bytes, act: Callable[[], Response]) -> Response:
    """Do ``act`` unless this token's request with this key was done before.

    The key, what was done and the answer are committed together; a second request waits for the first one's end.
    Only good answers are kept: after an error the same key may try again. What a refusal wrote down (in quarantine,
    in the audit record) stays as without a key. ``act`` may put what only the first asker may see into
    ``response.once``.

    Raises
    ------
    ProblemError
        400 if the key is too long or empty, 422 if it came with another request before.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return act()
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise ProblemError(400, "bad_idempotency_key", f"a key has 1 to {MAX_KEY_CHARS} printable characters")
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode() + body_digest).digest()
    with transaction.atomic():
        row, first = IdempotentAnswer.objects.get_or_create(
            token=token, key=key, defaults={"request": digest}
        )
        if not first:
            if bytes(row.request) != digest:
                raise ProblemError(
                    422, "idempotency_key_reused", "this Idempotency-Key came with another request before"
                )
            return Response(row.body, row.status, headers=row.headers | {"Idempotent-Replayed": "true"})
        answer = _answer(act)
        if isinstance(answer, Exception):
            row.delete()
        else:
            row.status, row.body = answer.status_code, _kept(answer)
            row.headers = {name: answer[name] for name in KEPT_HEADERS if name in answer}
            row.save(update_fields=["status", "body", "headers"])
    if isinstance(answer, Exception):
        raise answer
    return answer


def _answer(act: Callable[[], Response]) -> Response | Exception:
    """The answer, or the refusal that takes its place; what else goes wrong undoes everything."""
    try:
        return act()
    except (DatabaseError, InterfaceError):
        raise
    except Exception as error:
        told = answer_to(error)
        if told is None or told.status_code >= 500:
            raise
        return error


def _kept(answer: Response) -> Any:
    hidden = getattr(answer, "once", ())
    return {name: None if name in hidden else value for name, value in dict(answer.data or {}).items()}
