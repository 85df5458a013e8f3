"""Jobs, what they consist of, and how they are analysed, over the API."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from webapp.accounts.models import Scope
from webapp.api.etags import check_if_match, etag_of
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IF_MATCH, PAGE, NsField, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.jobs.models import Engine, Job, Operator, Worker
from webapp.jobs.policies import visible_jobs
from webapp.jobs.services import SETTING_BOUNDS, change_settings


class JobShape(serializers.ModelSerializer[Job]):
    """A job."""

    first_ns = NsField(allow_null=True, help_text="earliest time of its records")
    last_ns = NsField(allow_null=True, help_text="latest time of its records")
    engine = serializers.ChoiceField(Engine.choices)

    class Meta:
        model = Job
        fields = (
            "id", "name", "engine", "engine_job_id", "created_at", "finished", "first_ns", "last_ns",
            "last_received_at",
        )  # fmt: skip


class JobSettings(serializers.Serializer[Any]):
    """How a job is analysed."""

    window_ns = NsField(help_text="width of a window; changing it has all windows analysed again")
    lateness_ns = NsField(help_text="how long after its end a window waits for late records")
    gap_horizon_ns = NsField(help_text="a longer gap is unknown, never waiting")

    def get_fields(self) -> dict[str, Any]:
        """With the bounds that the service keeps."""
        fields = super().get_fields()
        for name, (low, high) in SETTING_BOUNDS.items():
            fields[name] = NsField(help_text=fields[name].help_text, min_value=low, max_value=high)
        return fields


class OperatorShape(serializers.ModelSerializer[Operator]):
    """A vertex of the job's logical graph; windows name it by its number."""

    class Meta:
        model = Operator
        fields = ("number", "name")


class WorkerShape(serializers.ModelSerializer[Worker]):
    """A timeline of the job; windows name it by its number."""

    alive_from_ns = NsField(allow_null=True, help_text="null: its source did not say when it was added")
    alive_until_ns = NsField(allow_null=True)
    last_ns = NsField(allow_null=True)

    class Meta:
        model = Worker
        fields = ("number", "name", "host", "alive_from_ns", "alive_until_ns", "last_ns")


def jobs_of(request: Request) -> QuerySet[Job]:
    """The jobs the request's token may touch."""
    token = token_of_request(request)
    jobs = visible_jobs(actor_of(request))
    return jobs.filter(name__in=token.jobs) if token.jobs else jobs


def job_of(request: Request, job_id: int, *, lock: bool = False) -> Job:
    """One of them.

    Raises
    ------
    Http404
        If there is none with this id that the token may touch.
    """
    jobs = jobs_of(request)
    if lock:
        jobs = jobs.select_for_update(no_key=True)
    job = jobs.filter(pk=job_id).first()
    if job is None:
        raise Http404(f"there is no job {job_id}")
    return job


class JobList(ApiView):
    """``/api/v1/jobs``."""

    @extend_schema(
        operation_id="list_jobs",
        parameters=[*PAGE, text("name", "only the job of this name")],
        responses=paged("JobPage", JobShape),
        description="The jobs this token may see.",
    )
    def get(self, request: Request) -> Response:
        """One page."""
        jobs = jobs_of(request)
        name = request.query_params.get("name")
        if name is not None:
            jobs = jobs.none() if "\0" in name else jobs.filter(name=name)
        return Response(page(request, jobs, lambda job: dict(JobShape(job).data)))


class JobDetail(ApiView):
    """``/api/v1/jobs/<id>``."""

    @extend_schema(operation_id="get_job", responses=JobShape, description="One job.")
    def get(self, request: Request, job_id: int) -> Response:
        """One."""
        return Response(JobShape(job_of(request, job_id)).data)


class JobSettingsView(ApiView):
    """``/api/v1/jobs/<id>/settings``."""

    scopes = {"*": Scope.READ, "PATCH": Scope.ADMIN}  # noqa: RUF012

    @extend_schema(
        operation_id="get_job_settings", responses=JobSettings,
        description="How a job is analysed, with an ETag to change it by.",
    )  # fmt: skip
    def get(self, request: Request, job_id: int) -> Response:
        """They and their entity tag."""
        return _settings_answer(job_of(request, job_id))

    @extend_schema(
        operation_id="change_job_settings", parameters=[IF_MATCH], request=JobSettings(partial=True),
        responses=JobSettings,
        description="Change some. Fields that are not given stay; a wrong one changes nothing.",
    )  # fmt: skip
    @transaction.atomic
    def patch(self, request: Request, job_id: int) -> Response:
        """Change some, if they are still as the asker saw them."""
        job = job_of(request, job_id, lock=True)
        check_if_match(request, etag_of(_settings(job)))
        wanted = JobSettings(data=request.data, partial=True)
        wanted.is_valid(raise_exception=True)
        unknown = sorted(set(request.data) - set(SETTING_BOUNDS))
        if unknown:
            wrong = [{"field": name, "detail": "there is no such setting"} for name in unknown]
            raise ProblemError(400, "invalid", "some fields are wrong", errors=wrong)
        return _settings_answer(change_settings(actor_of(request), job, wanted.validated_data))


def _settings(job: Job) -> dict[str, Any]:
    return dict(JobSettings(job).data)


def _settings_answer(job: Job) -> Response:
    shown = _settings(job)
    return Response(shown, headers={"ETag": etag_of(shown)})


class OperatorList(ApiView):
    """``/api/v1/jobs/<id>/operators``."""

    @extend_schema(
        operation_id="list_operators", parameters=PAGE, responses=paged("OperatorPage", OperatorShape),
        description="The operators of a job.",
    )  # fmt: skip
    def get(self, request: Request, job_id: int) -> Response:
        """One page, by number."""
        rows = Operator.objects.filter(job=job_of(request, job_id))
        return Response(page(request, rows, lambda row: dict(OperatorShape(row).data), key="number"))


class WorkerList(ApiView):
    """``/api/v1/jobs/<id>/workers``."""

    @extend_schema(
        operation_id="list_workers", parameters=PAGE, responses=paged("WorkerPage", WorkerShape),
        description="The workers of a job: threads, slots, executor cores.",
    )  # fmt: skip
    def get(self, request: Request, job_id: int) -> Response:
        """One page, by number."""
        rows = Worker.objects.filter(job=job_of(request, job_id))
        return Response(page(request, rows, lambda row: dict(WorkerShape(row).data), key="number"))
