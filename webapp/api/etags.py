"""Entity tags: who changes something says which state of it they saw (``If-Match``)."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from rest_framework.request import Request

from webapp.api.problems import ProblemError


def etag_of(shown: dict[str, Any]) -> str:
    """The entity tag of what is shown."""
    data = orjson.dumps(shown, option=orjson.OPT_SORT_KEYS, default=str)
    return f'"{hashlib.sha256(data).hexdigest()[:32]}"'


def check_if_match(request: Request, current: str) -> None:
    """Let a change through that names the current state, or ``*``.

    Raises
    ------
    ProblemError
        428 without ``If-Match``, 412 if the thing is not as it was then.
    """
    given = request.headers.get("If-Match")
    if given is None:
        raise ProblemError(428, "if_match_required", "send the ETag of what you saw as If-Match")
    if given.strip() != "*" and current not in (tag.strip() for tag in given.split(",")):
        raise ProblemError(412, "changed_meanwhile", "it was changed since you read it: read it again")
