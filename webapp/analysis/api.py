"""Results over the API: one item a window."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.model.activity import ActivityType
from analytics.model.results import WindowStatus
from webapp.analysis.models import Window
from webapp.api.pagination import page, whole_number
from webapp.api.schema import PAGE, NsField, number, paged
from webapp.api.views import ApiView
from webapp.jobs.api import job_of


class Share(serializers.Serializer[Any]):
    """Critical participation and conventional profile of something, as ratios of the window."""

    type = serializers.ChoiceField([kind.label for kind in ActivityType], required=False)
    worker = serializers.IntegerField(required=False, help_text="its number")
    operator = serializers.IntegerField(required=False, help_text="its number")
    from_worker = serializers.IntegerField(required=False)
    to_worker = serializers.IntegerField(required=False)
    cp = serializers.FloatField()
    conventional = serializers.FloatField()


class WindowShape(serializers.Serializer[Any]):
    """The result of one window."""

    start_ns = NsField()
    width_ns = NsField()
    effective_start_ns = NsField(help_text="the part of it within the job's life")
    effective_end_ns = NsField()
    status = serializers.ChoiceField([status.value for status in WindowStatus])
    reason = serializers.CharField(help_text="why there is no result, if there is none")
    record_count = serializers.IntegerField()
    activities = Share(many=True)
    workers = Share(many=True)
    operators = Share(many=True)
    channels = Share(many=True)


def shown(window: Window) -> dict[str, Any]:
    """A window as the API shows it."""
    plain = (
        "start_ns",
        "width_ns",
        "effective_start_ns",
        "effective_end_ns",
        "status",
        "reason",
        "record_count",
    )
    return {name: getattr(window, name) for name in plain} | {
        "activities": [
            {"type": ActivityType(code).label, "cp": cp, "conventional": conventional}
            for code, (cp, conventional) in enumerate(
                zip(window.activity_cp, window.activity_conventional, strict=True)
            )
            if code and (cp or conventional)
        ],
        "workers": _rows({"worker": window.worker_ids}, None, window.worker_cp, window.worker_conventional),
        "operators": _rows(
            {"operator": window.operator_ids}, window.operator_types, window.operator_cp,
            window.operator_conventional,
        ),
        "channels": _rows(
            {"from_worker": window.channel_src, "to_worker": window.channel_dst}, window.channel_types,
            window.channel_cp, window.channel_conventional,
        ),
    }  # fmt: skip


def _rows(
    ids: dict[str, list[int]], types: list[int] | None, cp: list[float], conventional: list[float]
) -> list[dict[str, Any]]:
    columns: dict[str, list[Any]] = {**ids}
    if types is not None:
        columns["type"] = [ActivityType(code).label for code in types]
    columns |= {"cp": cp, "conventional": conventional}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


class WindowList(ApiView):
    """``/api/v1/jobs/<id>/windows``."""

    @extend_schema(
        operation_id="list_windows",
        parameters=[
            *PAGE,
            number("from_ns", "only windows that begin at or after this time"),
            number("to_ns", "only windows that begin before this time"),
        ],
        responses=paged("WindowPage", WindowShape),
        description="What limited a job, window by window.",
    )
    def get(self, request: Request, job_id: int) -> Response:
        """One page, by time."""
        rows = Window.objects.filter(job=job_of(request, job_id))
        if (from_ns := whole_number(request, "from_ns", None)) is not None:
            rows = rows.filter(start_ns__gte=from_ns)
        if (to_ns := whole_number(request, "to_ns", None)) is not None:
            rows = rows.filter(start_ns__lt=to_ns)
        return Response(page(request, rows, shown, key="start_ns"))
