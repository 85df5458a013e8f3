"""The audit record over the API: searched page by page, and exported."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.api.pagination import INT64, page
from webapp.api.schema import PAGE, ObjectField, number, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.audit.models import AuditEvent, Outcome
from webapp.audit.selectors import Search, csv_lines, search

_LONG: dict[str, Any] = {"required": False, "min_value": -INT64, "max_value": INT64}
_SHORT: dict[str, Any] = {"required": False, "allow_blank": True, "max_length": 200}


class EventShape(serializers.ModelSerializer[AuditEvent]):
    """A line of the audit record."""

    detail = ObjectField()

    class Meta:
        model = AuditEvent
        fields = (
            "id", "at", "actor_id", "actor_name", "action", "outcome", "loud", "object_type", "object_id", "job_id",
            "job_name", "reason", "detail",
        )  # fmt: skip


class Wanted(serializers.Serializer[Any]):
    """What to look for (``webapp.audit.selectors.Search``)."""

    text = serializers.CharField(**_SHORT)
    actor_name = serializers.CharField(**_SHORT)
    action = serializers.CharField(**_SHORT)
    outcome = serializers.ChoiceField(Outcome.choices, required=False, allow_blank=True)
    job_id = serializers.IntegerField(**_LONG)
    object_type = serializers.CharField(**_SHORT)
    object_id = serializers.IntegerField(**_LONG)
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)
    loud = serializers.BooleanField(required=False, default=False)


def _time(name: str, says: str) -> OpenApiParameter:
    return OpenApiParameter(name, OpenApiTypes.DATETIME, OpenApiParameter.QUERY, description=says)


SEARCH = [
    text("text", "looked for in names, actions and reasons"),
    text("actor_name", "who did it"),
    text("action", "such as proposal.approve"),
    text("outcome", "what became of it", enum=Outcome.values),
    number("job_id", "about this job"),
    text("object_type", "about things of this type, such as proposal"),
    number("object_id", "about the thing with this id"),
    _time("since", "from this time on"),
    _time("until", "before this time"),
    OpenApiParameter(
        "loud",
        OpenApiTypes.BOOL,
        OpenApiParameter.QUERY,
        description="only where somebody went past the rules",
    ),
]


def _found(request: Request) -> QuerySet[AuditEvent]:
    """What the token may read; of one for some jobs only, what is about these."""
    asked = Wanted(data=request.query_params)
    asked.is_valid(raise_exception=True)
    rows = search(actor_of(request), Search(**asked.validated_data))
    token = token_of_request(request)
    return rows.filter(job_name__in=token.jobs) if token.jobs else rows


class AuditList(ApiView):
    """``/api/v1/audit``."""

    @extend_schema(
        operation_id="search_audit", parameters=[*PAGE, *SEARCH], responses=paged("AuditPage", EventShape),
        description="What people, policies and workers did or were refused, newest first.",
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """One page."""
        rows = _found(request)
        return Response(page(request, rows, lambda row: dict(EventShape(row).data), newest_first=True))


class AuditExport(ApiView):
    """``/api/v1/audit.csv``."""

    @extend_schema(
        operation_id="export_audit", parameters=SEARCH, responses={(200, "text/csv"): OpenApiTypes.STR},
        description="The same as CSV, all of it.",
    )  # fmt: skip
    def get(self, request: Request) -> StreamingHttpResponse:
        """A line at a time."""
        answer = StreamingHttpResponse(csv_lines(_found(request)), content_type="text/csv; charset=utf-8")
        answer["Content-Disposition"] = 'attachment; filename="audit.csv"'
        return answer
