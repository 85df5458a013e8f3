"""The one shape of an error: ``application/problem+json`` (RFC 9457).

Every answer of 400 and above under ``/api`` and ``/v1`` has ``type``, ``title``, ``status`` and ``detail``, and a
``code`` for programs; a request with wrong fields also has ``errors``, a list of ``{"field", "detail"}``.
"""

from __future__ import annotations

import http
import logging
import math
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, ValidationError
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views import defaults
from django.views.decorators.csrf import csrf_exempt
from psycopg import errors as pg
from rest_framework import exceptions
from rest_framework.views import set_rollback

from webapp.reconfigurations.errors import RefusedError

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
PREFIXES = ("/api/", "/v1/")
RETRY_AFTER_S = 5
"""After the database was out of reach: long enough for a restart, short enough for a queue in a client."""

_BUSY = (pg.DeadlockDetected, pg.SerializationFailure, pg.LockNotAvailable)


class ProblemError(Exception):
    """Ends a request with this problem."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        retry_after_s: float | None = None,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.more = status, code, detail, more
        self.retry_after_s, self.headers = retry_after_s, headers or {}


def problem(
    status: int, code: str, detail: str, *, retry_after_s: float | None = None, **more: Any
) -> HttpResponse:
    """An answer of this shape."""
    title = http.HTTPStatus(status).phrase
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code, **more}
    answer = JsonResponse(body, status=status, content_type=CONTENT_TYPE)
    if retry_after_s is not None:
        answer["Retry-After"] = str(max(1, math.ceil(retry_after_s)))
    if status == http.HTTPStatus.UNAUTHORIZED:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def from_exception(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """REST framework's exception handler. None: a bug of ours, which Django logs and answers by handler500."""
    answer = answer_to(error)
    if answer is not None:
        set_rollback()
    return answer


def answer_to(error: Exception) -> HttpResponse | None:
    """What an error is answered with; None if it is a bug of ours."""
    match error:
        case ProblemError():
            return _answer_to_problem(error)
        case exceptions.ValidationError():
            return problem(400, "invalid", "some fields are wrong", errors=_field_errors(error.detail))
        case ValidationError():
            told = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
            return problem(400, "invalid", "some fields are wrong", errors=_field_errors(told))
        case exceptions.APIException():
            answer = problem(error.status_code, str(error.default_code), str(error.detail))
            if isinstance(error, exceptions.MethodNotAllowed) and (allowed := getattr(error, "allowed", "")):
                answer["Allow"] = allowed
            return answer
        case RefusedError():
            return problem(error.status, error.code, str(error))
        case Http404():
            return problem(404, "not_found", str(error) or "there is nothing here")
        case PermissionDenied():
            return problem(403, "permission_denied", str(error) or "you may not do this")
        case RequestDataTooBig():
            return problem(413, "body_too_large", "the body is too large")
        case DatabaseError() | InterfaceError() if is_passing(error):
            logger.warning("database.unavailable %s", error)
            return problem(
                503, "database_unavailable", "the database cannot be reached now; nothing was stored",
                retry_after_s=RETRY_AFTER_S,
            )  # fmt: skip
    return None


def _answer_to_problem(error: ProblemError) -> HttpResponse:
    answer = problem(error.status, error.code, error.detail, retry_after_s=error.retry_after_s, **error.more)
    for name, value in error.headers.items():
        answer[name] = value
    return answer


def is_passing(error: Exception) -> bool:
    """Whether a database error is about its state now (down, a deadlock) and not about what was asked."""
    cause = error.__cause__
    if isinstance(cause, pg.DataError | pg.IntegrityError | pg.ProgrammingError):
        return isinstance(cause, _BUSY)
    return isinstance(error, OperationalError | InterfaceError)


def _field_errors(detail: Any, field: str = "") -> list[dict[str, str]]:
    if isinstance(detail, dict):
        return [
            item
            for name, inner in detail.items()
            for item in _field_errors(inner, f"{field}.{name}" if field else str(name))
        ]
    if isinstance(detail, list):
        return [item for inner in detail for item in _field_errors(inner, field)]
    return [{"field": field, "detail": str(detail)}]


@csrf_exempt  # or a stranger's POST would be answered by a page about cookies
def nothing_here(request: HttpRequest) -> HttpResponse:
    """For every address under the API that is none."""
    return problem(404, "not_found", f"there is nothing at {request.path}")


def handler400(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's, for a request it cannot make sense of."""
    if request.path.startswith(PREFIXES):
        return problem(400, "bad_request", "the request makes no sense")
    return defaults.bad_request(request, exception)


def handler500(request: HttpRequest) -> HttpResponse:
    """Django's, for our bugs; the log has what happened."""
    if request.path.startswith(PREFIXES):
        return problem(500, "internal_error", "something went wrong in Weir; its log says what")
    return defaults.server_error(request)
