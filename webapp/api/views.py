"""What every view of the API is."""

from __future__ import annotations

from typing import Any, ClassVar, cast

from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from webapp.accounts.models import Scope, Token, User
from webapp.api import rates
from webapp.api.authentication import BearerToken, HasScope
from webapp.api.problems import ProblemError


class ApiView(APIView):
    """Asks for a token of the method's scope (``"*"``: of any other method) and keeps its rate."""

    scopes: ClassVar[dict[str, Scope]] = {"*": Scope.READ}
    authentication_classes = (BearerToken,)
    permission_classes: tuple[type[BasePermission], ...] = (HasScope,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Before every request: who, may they, and not too often."""
        super().initial(request, *args, **kwargs)
        if wait_s := rates.wait_s(token_of_request(request).pk):
            raise ProblemError(
                429, "rate_limited", "this token makes requests faster than it may", retry_after_s=wait_s
            )


def token_of_request(request: Request) -> Token:
    """The token a request was let in by."""
    return cast(Token, request.auth)


def actor_of(request: Request) -> User:
    """The person the token acts for."""
    return cast(User, request.user)
