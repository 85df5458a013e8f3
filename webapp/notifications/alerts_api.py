"""Alerts and silences over the API: seen by a group's viewers, acknowledged and silenced by its operators."""

from __future__ import annotations

from math import isfinite
from typing import Any

from django.core.exceptions import ValidationError
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.pagination import INT64, page
from webapp.api.schema import IDEMPOTENCY_KEY, PAGE, paged
from webapp.api.views import ApiView, actor_of
from webapp.notifications import alert_selectors, alert_services
from webapp.notifications.alert_models import Alert, RuleKind, Severity, Silence
from webapp.notifications.alert_rules_api import ABOUT_JOB
from webapp.notifications.api_reach import (
    NARROWED,
    flag,
    group_named,
    keep_to_jobs,
    listed,
    made_once,
    visible,
)


@extend_schema_field({"type": "number", "format": "double", "nullable": True})
class KnownFloat(serializers.FloatField):
    """A number, or null where there is none that JSON could say."""

    def to_representation(self, value: Any) -> Any:
        """Nothing limits a cluster: its headroom is infinite."""
        return float(value) if isfinite(value) else None


class AlertShape(serializers.Serializer[Any]):
    """A time in which a rule fired for a subject."""

    id = serializers.IntegerField()
    group = serializers.CharField(source="rule.group.name")
    rule = serializers.IntegerField(source="rule_id")
    rule_name = serializers.CharField(source="rule.name")
    kind = serializers.ChoiceField(RuleKind.choices, source="rule.kind")
    severity = serializers.ChoiceField(Severity.choices, source="rule.severity")
    subject = serializers.CharField(source="subject_name")
    path = serializers.CharField(help_text="the subject's page")
    job = serializers.IntegerField(source="job_id", allow_null=True, help_text="null: it is about a cluster")
    fired_at = serializers.DateTimeField()
    resolved_at = serializers.DateTimeField(allow_null=True, help_text="null: it fires still")
    ended_by = serializers.CharField(help_text="what ended it but its values; empty: these did")
    last = KnownFloat(help_text="the newest value while it fires; null: nothing limits it")
    worst = KnownFloat()
    silenced = serializers.BooleanField(help_text="channels hear nothing of it now")
    acknowledged_at = serializers.DateTimeField(allow_null=True)
    acknowledged_by = serializers.CharField(source="acknowledged_by_name", help_text="empty: nobody")


class Firing(serializers.Serializer[Any]):
    """What alerts can be narrowed to besides."""

    firing = serializers.BooleanField(required=False, allow_null=True, default=None)


class NewSilence(serializers.Serializer[Any]):
    """A time in which channels hear nothing."""

    group = serializers.CharField(max_length=200, help_text="the group's name")
    rule = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=INT64,
        help_text="the id of the one rule; null: all of the group",
    )  # fmt: skip
    job = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=INT64, help_text=ABOUT_JOB
    )
    reason = serializers.CharField(max_length=300)
    until = serializers.DateTimeField(help_text="up to 30 days ahead")


class SilenceShape(serializers.Serializer[Any]):
    """A time in which channels hear nothing of a group's rules."""

    id = serializers.IntegerField()
    group = serializers.CharField(source="group.name")
    rule = serializers.IntegerField(source="rule_id", allow_null=True, help_text="null: all of the group")
    job = serializers.IntegerField(source="job_id", allow_null=True, help_text=ABOUT_JOB)
    reason = serializers.CharField()
    created_at = serializers.DateTimeField()
    until = serializers.DateTimeField()
    by = serializers.CharField(source="by_name")


def _alerts(request: Request) -> Any:
    found = alert_selectors.alerts(actor_of(request))
    return found.annotate(silenced=alert_selectors.is_silenced(timezone.now()))


def _alert(request: Request, alert_id: int) -> Alert:
    row: Alert | None = visible(request, _alerts(request)).filter(pk=alert_id).first()
    if row is None:
        raise Http404("there is no such alert")
    return row


def _shown(row: Alert) -> dict[str, Any]:
    return dict(AlertShape(row).data)


def _silence(row: Silence) -> dict[str, Any]:
    return dict(SilenceShape(row).data)


class AlertView(ApiView):
    """What the addresses of alerts and silences share."""

    scopes = {"*": Scope.DECIDE, "GET": Scope.READ}  # noqa: RUF012


@extend_schema_view(
    get=extend_schema(
        operation_id="list_alerts",
        parameters=[*PAGE, *NARROWED, flag("firing", "only those that fire now, or only those that are over")],
        responses=paged("AlertPage", AlertShape),
        description="The alerts of the groups that this token's owner is in, newest first.",
    )
)  # fmt: skip
class AlertList(AlertView):
    """``/api/v1/alerts``."""

    def get(self, request: Request) -> Response:
        """One page."""
        asked = Firing(data=request.query_params)
        asked.is_valid(raise_exception=True)
        rows = listed(request, _alerts(request), "rule__group")
        if (firing := asked.validated_data["firing"]) is not None:
            rows = rows.filter(resolved_at__isnull=firing)
        return Response(page(request, rows, _shown, newest_first=True))


@extend_schema_view(
    get=extend_schema(operation_id="get_alert", responses=AlertShape, description="One alert.")
)
class AlertDetail(AlertView):
    """``/api/v1/alerts/<id>``."""

    def get(self, request: Request, alert_id: int) -> Response:
        """One."""
        return Response(_shown(_alert(request, alert_id)))


@extend_schema_view(
    post=extend_schema(
        operation_id="acknowledge_alert", request=None, responses=AlertShape,
        description="Say that one looks after it; the first who does stands there. PagerDuty hears it when nobody "
        "is missing.",
    ),
    delete=extend_schema(
        operation_id="take_back_acknowledgement", responses={200: AlertShape},
        description="Say that nobody looks after it any more. PagerDuty, if it heard that somebody did, wakes "
        "people again. 400 while it is silenced.",
    ),
)  # fmt: skip
class AlertAcknowledge(AlertView):
    """``/api/v1/alerts/<id>/acknowledge``."""

    def post(self, request: Request, alert_id: int) -> Response:
        """Look after it."""
        alert_services.acknowledge(actor_of(request), _alert(request, alert_id).pk)
        return Response(_shown(_alert(request, alert_id)))

    def delete(self, request: Request, alert_id: int) -> Response:
        """Look after it no more."""
        alert_services.take_back(actor_of(request), _alert(request, alert_id).pk)
        return Response(_shown(_alert(request, alert_id)))


@extend_schema_view(
    get=extend_schema(
        operation_id="list_silences", parameters=[*PAGE, *NARROWED], responses=paged("SilencePage", SilenceShape),
        description="The silences that hold now.",
    ),
    post=extend_schema(
        operation_id="create_silence", parameters=[IDEMPOTENCY_KEY], request=NewSilence,
        responses={201: SilenceShape},
        description="Have channels hear nothing for a time. What still fires then is told then.",
    ),
)  # fmt: skip
class SilenceList(AlertView):
    """``/api/v1/silences``."""

    def get(self, request: Request) -> Response:
        """One page."""
        rows = alert_selectors.silences(actor_of(request), timezone.now())
        return Response(page(request, listed(request, rows), _silence))

    def post(self, request: Request) -> Response:
        """Be silent."""
        asked = NewSilence(data=request.data)
        asked.is_valid(raise_exception=True)
        values, actor = asked.validated_data, actor_of(request)
        keep_to_jobs(request, values.get("job"))

        def act() -> Response:
            group = group_named(request, values["group"])
            rule = job = None
            if (rule_id := values.get("rule")) is not None:
                rule = alert_selectors.rules(actor).filter(pk=rule_id).first()
                if rule is None:
                    raise ValidationError({"rule": alert_services.NO_SUCH})
            if (job_id := values.get("job")) is not None:
                job = group.jobs.filter(pk=job_id).first()
                if job is None:
                    raise ValidationError({"job": alert_services.NO_SUCH_JOB})
            row = alert_services.silence(actor, group, values["until"], values["reason"], rule, job)
            return Response(_silence(row), 201, headers={"Location": f"/api/v1/silences/{row.pk}"})

        return made_once(request, act)


@extend_schema_view(
    get=extend_schema(operation_id="get_silence", responses=SilenceShape, description="One that holds now."),
    delete=extend_schema(
        operation_id="end_silence", responses={204: None},
        description="End it now; what fires and was not told is told within 15 s.",
    ),
)  # fmt: skip
class SilenceDetail(AlertView):
    """``/api/v1/silences/<id>``."""

    def get(self, request: Request, silence_id: int) -> Response:
        """One."""
        return Response(_silence(_live(request, silence_id)))

    def delete(self, request: Request, silence_id: int) -> Response:
        """End it."""
        alert_services.end_silence(actor_of(request), _live(request, silence_id).pk)
        return Response(status=204)


def _live(request: Request, silence_id: int) -> Silence:
    rows = visible(request, alert_selectors.silences(actor_of(request), timezone.now()))
    row = rows.filter(pk=silence_id).first()
    if row is None:
        raise Http404("there is no such silence now")
    return row
