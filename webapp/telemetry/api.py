"""Activities, metrics and what was refused, over the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.model.activity import ActivityType
from analytics.model.samples import Kind
from webapp.accounts.models import Scope
from webapp.api.pagination import DEFAULT_LIMIT, INT64, page, whole_number
from webapp.api.problems import ProblemError
from webapp.api.schema import PAGE, NsField, number, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.jobs.api import job_of
from webapp.telemetry.activity_query import StoredActivity, activities
from webapp.telemetry.metric_query import RESOLUTIONS, points, series_of_job
from webapp.telemetry.models import Refused, Series
from webapp.telemetry.quarantine import refused_to

MAX_POINTS = 10_000


class SeriesShape(serializers.ModelSerializer[Series]):
    """A metric with its labels."""

    kind = serializers.ChoiceField([kind.value for kind in Kind])
    labels = serializers.DictField(child=serializers.CharField())
    ended_ns = NsField(allow_null=True, help_text="when its sender said that it ended, if it did")

    class Meta:
        model = Series
        fields = ("id", "name", "labels", "kind", "ended_ns")


class PointShape(serializers.Serializer[Any]):
    """A sample, or what there was in the minute or hour that begins at ``at_ns``."""

    at_ns = NsField()
    value = serializers.FloatField(help_text="the sample; of a minute or hour its last one")
    minimum = serializers.FloatField(required=False)
    maximum = serializers.FloatField(required=False)
    total = serializers.FloatField(required=False)
    count = serializers.IntegerField(required=False)


class ActivityShape(serializers.Serializer[StoredActivity]):
    """What a worker did, or with a peer a message from ``worker`` to ``peer``."""

    type = serializers.ChoiceField([kind.label for kind in ActivityType])
    worker = serializers.CharField()
    peer = serializers.CharField(allow_null=True)
    operator = serializers.CharField(allow_null=True)
    start_ns = NsField()
    end_ns = NsField(help_text="of a message by the receiver's clock, so it may be before the start")


class RefusedShape(serializers.ModelSerializer[Refused]):
    """Something that was sent and not stored."""

    first_bytes = serializers.SerializerMethodField(help_text="hexadecimal")

    class Meta:
        model = Refused
        fields = (
            "id", "at", "token_name", "job_name", "kind", "code", "reason", "size_bytes", "first_bytes",
        )  # fmt: skip

    def get_first_bytes(self, row: Refused) -> str:
        """As text."""
        return bytes(row.first_bytes).hex()


class ActivityList(ApiView):
    """``/api/v1/jobs/<id>/activities``."""

    @extend_schema(
        operation_id="list_activities",
        parameters=[
            number("limit", "most items of a page", low=1, high=MAX_POINTS),
            PAGE[1],
            number("from_ns", "only activities that end at or after this time"),
            number("to_ns", "only activities that start at or before this time"),
        ],
        responses=paged("ActivityPage", ActivityShape),
        description="What a job's workers did, as it was stored. A page may be short although more follows:"
        " go on until `next` is null. Ask for large pages: each unpacks anew what it reads of.",
    )
    def get(self, request: Request, job_id: int) -> Response:
        """One page."""
        items, after = activities(
            job_of(request, job_id),
            from_ns=whole_number(request, "from_ns", -INT64),
            to_ns=whole_number(request, "to_ns", INT64),
            after=whole_number(request, "after", -1),
            limit=whole_number(request, "limit", DEFAULT_LIMIT, low=1, high=MAX_POINTS),
        )
        shown = [dict(ActivityShape(item).data) for item in items]
        return Response({"items": shown, "next": None if after is None else str(after)})


class SeriesList(ApiView):
    """``/api/v1/jobs/<id>/series``."""

    @extend_schema(
        operation_id="list_series",
        parameters=[*PAGE, text("name", "only series of this metric")],
        responses=paged("SeriesPage", SeriesShape),
        description="The metrics a job reports.",
    )
    def get(self, request: Request, job_id: int) -> Response:
        """One page."""
        rows = series_of_job(job_of(request, job_id), request.query_params.get("name"))
        return Response(page(request, rows, lambda row: dict(SeriesShape(row).data)))


class PointList(ApiView):
    """``/api/v1/jobs/<id>/series/<id>/points``."""

    @extend_schema(
        operation_id="list_points",
        parameters=[
            number("limit", "most items of a page", low=1, high=MAX_POINTS),
            PAGE[1],
            number("from_ns", "only points at or after this time"),
            number("to_ns", "only points before this time"),
            text("resolution", "samples as they came, or rolled up", enum=list(RESOLUTIONS)),
        ],
        responses=paged("PointPage", PointShape),
        description="The numbers of a series, by time. Minutes and hours are kept for longer than samples.",
    )
    def get(self, request: Request, job_id: int, series_id: int) -> Response:
        """One page, by time."""
        resolution = request.query_params.get("resolution", "raw")
        if resolution not in RESOLUTIONS:
            wrong = [{"field": "resolution", "detail": f"expected one of {', '.join(RESOLUTIONS)}"}]
            raise ProblemError(400, "invalid", "some parameters are wrong", errors=wrong)
        rows, show = points(job_of(request, job_id), series_id, resolution)
        if (from_ns := whole_number(request, "from_ns", None)) is not None:
            rows = rows.filter(at_ns__gte=from_ns)
        if (to_ns := whole_number(request, "to_ns", None)) is not None:
            rows = rows.filter(at_ns__lt=to_ns)
        return Response(page(request, rows, show, key="at_ns", max_limit=MAX_POINTS))


class RefusedList(ApiView):
    """``/api/v1/refused``."""

    scopes = {"*": Scope.INGEST}  # noqa: RUF012

    @extend_schema(
        operation_id="list_refused", parameters=PAGE, responses=paged("RefusedPage", RefusedShape),
        description="What this token's owner sent and Weir did not store, with its first bytes and the reason.",
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """One page."""
        rows = refused_to(actor_of(request))
        token = token_of_request(request)
        if token.jobs:
            rows = rows.filter(token=token)
        return Response(page(request, rows, lambda row: dict(RefusedShape(row).data)))
