"""Who calls the API: the owner of a bearer token. Sessions are not looked at, so no CSRF protection is needed."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from webapp.accounts.models import Scope, Token, User
from webapp.accounts.services import InvalidTokenError, token_of
from webapp.api import rates
from webapp.audit.services import Entry, record_refused

AUDITED = (Scope.DECIDE, Scope.ADMIN)
"""Scopes whose lack is worth a line in the audit record: they change things."""

NOTED_EVERY_S = 60


class BearerToken(BaseAuthentication):
    """``Authorization: Bearer weir_…``."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        """The owner and the token, or None without the header."""
        token = from_header(request.headers.get("Authorization"))
        return None if token is None else (token.owner, token)

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing token a 401."""
        return "Bearer"


def from_header(header: str | None) -> Token | None:
    """The token of an ``Authorization`` header; None if there is none.

    Raises
    ------
    AuthenticationFailed
        If it is of another kind or its token is not good.
    """
    if not header:
        return None
    kind, _, secret = header.partition(" ")
    if kind.lower() != "bearer":
        raise AuthenticationFailed("expected: Authorization: Bearer <token>")
    try:
        return token_of(secret.strip())
    except InvalidTokenError as error:
        raise AuthenticationFailed(str(error)) from error


class HasScope(BasePermission):
    """Lets a token through that has the view's scope for the request's method (``ApiView.scopes``)."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """False without a token (401); a token of another scope is told which it needs (403)."""
        token = request.auth
        if not isinstance(token, Token):
            return False
        needed: Scope = view.scopes.get(request.method or "", view.scopes["*"])  # type: ignore[attr-defined]
        try:
            require(token, needed)
        except PermissionDenied as refused:
            if needed in AUDITED:
                _note(token, request, str(refused))
            raise
        return True


def _note(token: Token, request: Request, reason: str) -> None:
    """Keep that a token tried what it may not; a program that goes on trying is one line in a while."""
    if rates.first_in(f"refused-scope:{token.pk}:{request.method}", NOTED_EVERY_S):
        detail = {"method": request.method, "path": request.path[:300], "token": str(token)}
        record_refused(Entry(token.owner, "token.use", "token", token.pk, reason=reason, detail=detail))


def require(token: Token, scope: Scope) -> None:
    """Raise ``PermissionDenied`` unless the token has the scope."""
    if scope not in token.scopes:
        raise PermissionDenied(f"this needs a token of scope {scope.value}")
