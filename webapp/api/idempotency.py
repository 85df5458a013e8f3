"""``Idempotency-Key``: a request sent again gets the answer of the first time, and nothing happens twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Token
from webapp.api.models import IdempotentAnswer
from webapp.api.problems import ProblemError

MAX_KEY_CHARS = 200
KEPT_HOURS = 24


def once(request: Request, token: Token, body_digest: bytes, act: Callable[[], Response]) -> Response:
    """Do ``act`` unless this token's request with this key was done before.

    The key, what was done and the answer are committed together; a second request waits for the first one's end.
    Only good answers are kept: after an error the same key may try again. ``act`` may put what only the first
    asker may see into ``response.once``.

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
            return Response(row.body, row.status, headers={"Idempotent-Replayed": "true"})
        answer = act()
        row.status, row.body = answer.status_code, _kept(answer)
        row.save(update_fields=["status", "body"])
    return answer


def _kept(answer: Response) -> Any:
    hidden = getattr(answer, "once", ())
    return {name: None if name in hidden else value for name, value in dict(answer.data or {}).items()}
