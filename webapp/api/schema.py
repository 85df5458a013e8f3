"""How the API describes itself (OpenAPI, by drf-spectacular)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema_field, inline_serializer
from rest_framework import serializers

INT64 = 2**63 - 1


class NsField(serializers.IntegerField):
    """Nanoseconds since 1970, or of a length: a whole number of 64 bits."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": -INT64, "max_value": INT64} | options)


@extend_schema_field(OpenApiTypes.OBJECT)
class ObjectField(serializers.JSONField):
    """An object whose fields depend on something else, or are an engine's own."""


_TEXT = {"type": "string"}
PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {"type": "string", "description": "for programs; stays the same when the words change"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": _TEXT, "detail": _TEXT},
                "required": ["field", "detail"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "code"],
}


def paged(name: str, item: type[serializers.Serializer[Any]]) -> Any:
    """The shape of a page of items."""
    return inline_serializer(
        name,
        {
            "items": item(many=True),
            "next": serializers.CharField(
                allow_null=True, help_text="give it as `after` for the next page; null: there is none"
            ),
        },
    )


def number(name: str, says: str, *, low: int = -INT64, high: int = INT64) -> OpenApiParameter:
    """A whole number in the query."""
    kind = {"type": "integer", "format": "int64", "minimum": low, "maximum": high}
    return OpenApiParameter(name, kind, OpenApiParameter.QUERY, description=says)


def text(name: str, says: str, **more: Any) -> OpenApiParameter:
    """A text in the query."""
    return OpenApiParameter(name, OpenApiTypes.STR, OpenApiParameter.QUERY, description=says, **more)


PAGE = [
    number("limit", "most items of a page", low=1, high=1000),
    OpenApiParameter(
        "after", {"type": "string", "pattern": "^-?[0-9]{1,18}$"}, OpenApiParameter.QUERY,
        description="`next` of the page before",
    ),
]  # fmt: skip
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description="A request of the same token with the same key gets the first answer again, for 24 hours.",
)
IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, required=True,
    description="The ETag of what you read; 412 if it was changed since.",
)  # fmt: skip


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """``Authorization: Bearer weir_…``."""

    target_class = "webapp.api.authentication.BearerToken"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        """As OpenAPI says it."""
        return {"type": "http", "scheme": "bearer"}


def add_problems(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Give every operation the one shape that all its errors have."""
    answer = {
        "description": "The request was not done; `code` and `detail` say why.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    result["components"]["schemas"]["Problem"] = PROBLEM
    for path in result["paths"].values():
        for operation in path.values():
            operation["responses"]["default"] = answer
    return result
