"""The rules of a job, freezes, and how far predictions came true, over the API."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.etags import check_if_match, etag_of
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IF_MATCH, PAGE, ObjectField, number, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.jobs.api import job_of, jobs_of
from webapp.jobs.models import Job
from webapp.reconfigurations import governance, policies, selectors
from webapp.reconfigurations.api import Filters, Reason
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Freeze, Mode, Proposal


class RulesShape(serializers.ModelSerializer[ChangePolicy]):
    """The rules under which a job may be changed."""

    mode = serializers.ChoiceField(Mode.choices, help_text="how far Weir may go with the job")
    engine = serializers.ChoiceField(EngineKind.choices, help_text="through what a change is applied")
    windows = serializers.ListField(
        child=ObjectField(), max_length=50,
        help_text='when changes may be applied: {"days": ["mon"], "from": "09:00", "to": "17:00", "zone": "UTC"}; '
        "empty: always",
    )  # fmt: skip
    webhook_secret = serializers.CharField(
        max_length=200, allow_blank=True, write_only=True, help_text="whsec_ followed by base64; never shown"
    )

    class Meta:
        model = ChangePolicy
        fields = (
            "mode", "quorum", "expires_after_s", "windows", "scaled_by", "auto_max_factor", "auto_max_parallelism",
            "auto_max_per_day", "engine", "engine_url", "webhook_secret", "apply_limit_s", "settle_s",
        )  # fmt: skip


class FreezeShape(serializers.ModelSerializer[Freeze]):
    """A freeze: nothing is approved or applied until somebody lifts it."""

    class Meta:
        model = Freeze
        fields = ("reason", "at", "by_name")


class FreezeState(serializers.Serializer[Any]):
    """Whether changes are stopped."""

    frozen = serializers.BooleanField()
    freeze = FreezeShape(allow_null=True)


class JudgedShape(serializers.Serializer[Any]):
    """A proposal with a verdict: what was predicted, and what was measured."""

    proposal_id = serializers.IntegerField(source="id")
    job_id = serializers.IntegerField()
    policy = serializers.CharField(help_text="empty: a person thought of it")
    state = serializers.CharField()
    applied_at = serializers.DateTimeField(allow_null=True)
    verdict = ObjectField()


def _tag(rules: ChangePolicy) -> str:
    """Of all rules, the secret too: who changes them must have seen the last change."""
    return etag_of(dict(RulesShape(rules).data) | {"secret": rules.webhook_secret})


def _answer(rules: ChangePolicy) -> Response:
    return Response(dict(RulesShape(rules).data), headers={"ETag": _tag(rules)})


class JobRules(ApiView):
    """``/api/v1/jobs/<id>/rules``."""

    scopes = {"*": Scope.READ, "PATCH": Scope.ADMIN}  # noqa: RUF012

    @extend_schema(
        operation_id="get_job_rules", responses=RulesShape,
        description="Under which rules the job may be changed, with an ETag to change them by.",
    )  # fmt: skip
    def get(self, request: Request, job_id: int) -> Response:
        """They and their entity tag."""
        return _answer(policies.rules_of(job_of(request, job_id)))

    @extend_schema(
        operation_id="change_job_rules", parameters=[IF_MATCH], request=RulesShape(partial=True),
        responses=RulesShape,
        description="Change some: its admins only. Rules that are not given stay; a wrong one changes nothing.",
    )  # fmt: skip
    @transaction.atomic
    def patch(self, request: Request, job_id: int) -> Response:
        """Change some, if they are still as the asker saw them."""
        job = job_of(request, job_id, lock=True)
        check_if_match(request, _tag(policies.rules_of(job)))
        wanted = RulesShape(data=request.data, partial=True)
        wanted.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(RulesShape.Meta.fields)):
            wrong = [{"field": name, "detail": "there is no such rule"} for name in unknown]
            raise ProblemError(400, "invalid", "some fields are wrong", errors=wrong)
        return _answer(governance.change_rules(actor_of(request), job, **wanted.validated_data))


class FreezeView(ApiView):
    """What both addresses of freezes share: of a job, and of everything."""

    scopes = {"*": Scope.ADMIN, "GET": Scope.READ}  # noqa: RUF012

    def job(self, request: Request, job_id: int | None) -> Job | None:
        """The job, None: it is about everything."""
        if job_id is not None:
            return job_of(request, job_id)
        if request.method != "GET" and token_of_request(request).jobs:
            raise PermissionDenied("a token for some jobs only cannot freeze everything")
        return None

    def answer(self, job: Job | None) -> Response:
        """As it is now."""
        live = Freeze.objects.filter(job=job, lifted_at=None).first()
        shown = None if live is None else dict(FreezeShape(live).data)
        return Response({"frozen": live is not None, "freeze": shown})

    def freeze(self, request: Request, job: Job | None) -> Response:
        """Stop changes."""
        asked = Reason(data=request.data)
        asked.is_valid(raise_exception=True)
        governance.freeze(actor_of(request), job, **asked.validated_data)
        return self.answer(job)

    def lift(self, request: Request, job: Job | None) -> Response:
        """Allow them again."""
        asked = Reason(data=request.query_params)
        asked.is_valid(raise_exception=True)
        governance.lift_freeze(actor_of(request), job, **asked.validated_data)
        return self.answer(job)


WHY = text("reason", "why it is lifted, for the audit record")


class JobFreeze(FreezeView):
    """``/api/v1/jobs/<id>/freeze``."""

    @extend_schema(
        operation_id="get_job_freeze", responses=FreezeState,
        description="Whether changes of this job are stopped. All of them may be, too.",
    )  # fmt: skip
    def get(self, request: Request, job_id: int) -> Response:
        """As it is now."""
        return self.answer(self.job(request, job_id))

    @extend_schema(
        operation_id="freeze_job", request=Reason, responses=FreezeState,
        description="Stop all changes of the job until somebody lifts it: its admins only, with a reason.",
    )  # fmt: skip
    def post(self, request: Request, job_id: int) -> Response:
        """Freeze it."""
        return self.freeze(request, self.job(request, job_id))

    @extend_schema(
        operation_id="lift_job_freeze", parameters=[WHY], responses=FreezeState,
        description="Allow changes of the job again.",
    )  # fmt: skip
    def delete(self, request: Request, job_id: int) -> Response:
        """Lift it."""
        return self.lift(request, self.job(request, job_id))


class GlobalFreeze(FreezeView):
    """``/api/v1/freeze``."""

    @extend_schema(
        operation_id="get_freeze", responses=FreezeState, description="Whether all changes are stopped."
    )
    def get(self, request: Request) -> Response:
        """As it is now."""
        return self.answer(self.job(request, None))

    @extend_schema(
        operation_id="freeze_everything", request=Reason, responses=FreezeState,
        description="Stop all changes of every job until somebody lifts it: superusers only, with a reason.",
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        """Freeze everything."""
        return self.freeze(request, self.job(request, None))

    @extend_schema(
        operation_id="lift_freeze", parameters=[WHY], responses=FreezeState,
        description="Allow changes again; jobs frozen by themselves stay so.",
    )  # fmt: skip
    def delete(self, request: Request) -> Response:
        """Lift it."""
        return self.lift(request, self.job(request, None))


class CalibrationList(ApiView):
    """``/api/v1/calibration``."""

    @extend_schema(
        operation_id="list_calibration",
        parameters=[
            *PAGE, number("job", "only about this job"), text("policy", "only of this policy; empty: of none"),
        ],
        responses=paged("CalibrationPage", JudgedShape),
        description="What was predicted beside what was measured, of every proposal with a verdict, newest first.",
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """One page."""
        asked = Filters(data=request.query_params)
        asked.is_valid(raise_exception=True)
        given = {
            name: asked.validated_data[name] for name in ("job", "policy") if name in asked.validated_data
        }
        rows = selectors.proposals(actor_of(request)).filter(job__in=jobs_of(request), **given)
        judged = rows.exclude(verdict=None).defer("payload", "evidence", "rules")
        return Response(page(request, judged, _judged, newest_first=True))


def _judged(row: Proposal) -> dict[str, Any]:
    return dict(JudgedShape(row).data)
