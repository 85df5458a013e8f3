"""Tokens over the API. A secret is in the answer that makes it, and nowhere else."""

from __future__ import annotations

import hashlib
from typing import Any

from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope, Token
from webapp.accounts.selectors import tokens_of
from webapp.accounts.services import create_token, revoke_token
from webapp.api.idempotency import once
from webapp.api.pagination import page
from webapp.api.schema import IDEMPOTENCY_KEY, PAGE, paged
from webapp.api.views import ApiView, actor_of, token_of_request


class NewToken(serializers.Serializer[Any]):
    """What a token shall be."""

    name = serializers.CharField(max_length=100)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(Scope.choices), min_length=1, max_length=len(Scope)
    )
    jobs = serializers.ListField(
        child=serializers.CharField(max_length=200), max_length=1_000, default=list,
        help_text="names of the only jobs it may touch; empty: all",
    )  # fmt: skip
    expires_at = serializers.DateTimeField(allow_null=True, default=None)


class TokenShape(serializers.Serializer[Any]):
    """A token, without its secret."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="the first characters of its secret")
    scopes = serializers.ListField(child=serializers.ChoiceField(Scope.choices))
    jobs = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)


class MadeToken(TokenShape):
    """A new token with its secret."""

    secret = serializers.CharField(
        allow_null=True, help_text="shown this once; null if the request came before (Idempotency-Key)"
    )


def shown(token: Token) -> dict[str, Any]:
    """A token as the API shows it."""
    return dict(TokenShape(token).data)


@extend_schema_view(
    get=extend_schema(
        operation_id="list_tokens", parameters=PAGE, responses=paged("TokenPage", TokenShape),
        description="The tokens of the person this token acts for.",
    ),
    post=extend_schema(
        operation_id="create_token", parameters=[IDEMPOTENCY_KEY], request=NewToken,
        responses={201: MadeToken},
        description="Make a token. It cannot do more, for more jobs or for longer than the one that asks.",
    ),
)  # fmt: skip
class TokenList(ApiView):
    """``/api/v1/tokens``."""

    scopes = {"*": Scope.ADMIN}  # noqa: RUF012

    def get(self, request: Request) -> Response:
        """One page."""
        return Response(page(request, tokens_of(actor_of(request)), shown))

    def post(self, request: Request) -> Response:
        """Make one."""
        wanted = NewToken(data=request.data)
        wanted.is_valid(raise_exception=True)
        values = wanted.validated_data
        asking = token_of_request(request)

        def act() -> Response:
            token, secret = create_token(
                actor_of(request), values["name"], values["scopes"], jobs=values["jobs"],
                expires_at=values["expires_at"], within=asking,
            )  # fmt: skip
            answer = Response({**shown(token), "secret": secret}, 201, headers={"Cache-Control": "no-store"})
            answer.once = ("secret",)  # type: ignore[attr-defined]
            return answer

        return once(request, asking, hashlib.sha256(repr(request.data).encode()).digest(), act)


@extend_schema_view(
    get=extend_schema(operation_id="get_token", responses=TokenShape, description="One token."),
    delete=extend_schema(
        operation_id="revoke_token",
        responses=TokenShape,
        description="Revoke it, for good; again changes nothing.",
    ),
)
class TokenDetail(ApiView):
    """``/api/v1/tokens/<id>``."""

    scopes = {"*": Scope.ADMIN}  # noqa: RUF012

    def get(self, request: Request, token_id: int) -> Response:
        """One."""
        token = tokens_of(actor_of(request)).filter(pk=token_id).first()
        if token is None:
            raise Http404(f"you have no token {token_id}")
        return Response(shown(token))

    @transaction.atomic
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke it."""
        try:
            return Response(shown(revoke_token(actor_of(request), token_id)))
        except Token.DoesNotExist:
            raise Http404(f"you have no token {token_id}") from None
