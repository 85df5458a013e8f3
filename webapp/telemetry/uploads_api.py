"""Uploads over HTTP: for pages with a session and its CSRF token, for programs with a token of scope *ingest*."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.authentication import SessionAuthentication
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.decode.formats import UPLOADED
from webapp.accounts.models import Scope, Token
from webapp.api import rates
from webapp.api.authentication import BearerToken, require
from webapp.api.idempotency import once
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, PAGE, NsField, paged
from webapp.api.views import actor_of
from webapp.telemetry.uploads import services
from webapp.telemetry.uploads.files import Received, Receiver
from webapp.telemetry.uploads.models import Upload, UploadState
from webapp.telemetry.uploads.policies import visible_uploads
from webapp.telemetry.uploads.problems import BusyError, UploadError
from webapp.telemetry.uploads.services import MAX_JOB_NAME

RETRY_AFTER_S = 10


class SignedInOrToken(BasePermission):
    """Lets people through who are signed in, and tokens that may ingest."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """False for strangers (401)."""
        if isinstance(request.auth, Token):
            require(request.auth, Scope.INGEST)
            return True
        return bool(request.user.is_authenticated)


class UploadView(APIView):
    """What all addresses of uploads share: who may, how often, and errors in one shape."""

    authentication_classes = (BearerToken, SessionAuthentication)
    permission_classes: tuple[type[BasePermission], ...] = (SignedInOrToken,)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Before every request."""
        super().initial(request, *args, **kwargs)
        if isinstance(request.auth, Token) and (wait_s := rates.wait_s(request.auth.pk)):
            detail = "this token makes requests faster than it may"
            raise ProblemError(429, "rate_limited", detail, retry_after_s=wait_s)

    def handle_exception(self, error: Exception) -> Any:
        """An upload's own errors have their status and code; somebody else's upload is not there."""
        if isinstance(error, UploadError):
            wait_s = RETRY_AFTER_S if isinstance(error, BusyError) else None
            error = ProblemError(error.status, error.code, str(error), retry_after_s=wait_s)
        elif isinstance(error, Upload.DoesNotExist):
            error = Http404("you have no such upload")
        return super().handle_exception(error)


class NewUpload(serializers.Serializer[Any]):
    """A file, and what is known about it."""

    file = serializers.FileField()
    format = serializers.ChoiceField(
        list(UPLOADED), required=False, help_text="guessed from the first bytes and the name if not given"
    )
    job = serializers.CharField(max_length=MAX_JOB_NAME, required=False, allow_blank=True)


class StoreUpload(serializers.Serializer[Any]):
    """As what an upload is to be stored."""

    job = serializers.CharField(
        max_length=MAX_JOB_NAME, required=False, allow_blank=True, help_text="the job's name"
    )


class UploadShape(serializers.Serializer[Any]):
    """An upload; ``preview`` says what was understood of its file."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    size_bytes = serializers.IntegerField()
    sha256 = serializers.SerializerMethodField()
    format = serializers.ChoiceField(list(UPLOADED))
    job = serializers.CharField(source="job_name")
    job_id = serializers.IntegerField(allow_null=True)
    state = serializers.ChoiceField(UploadState.choices)
    preview = serializers.DictField(allow_null=True)
    diagnostics = serializers.ListField(child=serializers.DictField())
    records_stored = NsField(source="stored_count")
    records_repeated = NsField(source="repeated_count", help_text="of them, how many were there before")
    error = serializers.CharField()
    created_at = serializers.DateTimeField()

    def get_sha256(self, row: Upload) -> str:
        """Digest of the file."""
        return bytes(row.digest).hex()


def shown(row: Upload) -> dict[str, Any]:
    """An upload as the API shows it."""
    return dict(UploadShape(row).data)


@extend_schema_view(
    get=extend_schema(
        operation_id="list_uploads", parameters=PAGE, responses=paged("UploadPage", UploadShape),
        description=(
            "One's own uploads; all of them for administrators. A token for some jobs sees those for these jobs."
        ),
    ),
    post=extend_schema(
        operation_id="create_upload", parameters=[IDEMPOTENCY_KEY],
        request={"multipart/form-data": NewUpload}, responses={201: UploadShape},
        description="Send a trace file. It is read for a preview, and kept for a day to be stored as a job.",
    ),
)  # fmt: skip
class UploadList(UploadView):
    """``/api/v1/uploads``."""

    parser_classes = (MultiPartParser,)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """The body goes to disk; whatever happens, what is not kept is thrown away."""
        receiver = Receiver()
        request.upload_handlers = [receiver]
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            receiver.end()

    def get(self, request: Request) -> Response:
        """One page."""
        return Response(page(request, _uploads(request), shown))

    def post(self, request: Request) -> Response:
        """Take a file."""
        form = cast(Mapping[str, Any], request.data)
        file, format_name, job = form.get("file"), _text(form, "format"), _text(form, "job")
        if not isinstance(file, Received):
            raise UploadError("send the file as multipart/form-data, in a field named file")
        _check_job(request, job)

        def act() -> Response:
            row = services.create_upload(actor_of(request), file, format_name, job)
            return Response(shown(row), 201, headers={"Location": f"/api/v1/uploads/{row.pk}"})

        if not isinstance(request.auth, Token):
            return act()
        said = "\0".join((file.name or "", format_name, job)).encode("utf-8", "replace")
        return once(request, request.auth, hashlib.sha256(file.digest + said).digest(), act)


@extend_schema_view(
    get=extend_schema(operation_id="get_upload", responses=UploadShape, description="How far an upload is."),
    delete=extend_schema(
        operation_id="discard_upload", responses={204: None},
        description="Forget an upload and its file. A job stored from it stays.",
    ),
)  # fmt: skip
class UploadDetail(UploadView):
    """``/api/v1/uploads/<id>``."""

    def get(self, request: Request, upload_id: int) -> Response:
        """One."""
        return Response(shown(_uploads(request).get(pk=upload_id)))

    def delete(self, request: Request, upload_id: int) -> Response:
        """Forget it."""
        _uploads(request).get(pk=upload_id)
        services.discard_upload(actor_of(request), upload_id)
        return Response(status=204)


@extend_schema_view(
    post=extend_schema(
        operation_id="store_upload", request=StoreUpload, responses={202: UploadShape},
        description="Store what was understood as a job, new or known. The same again changes nothing.",
    )
)  # fmt: skip
class UploadStore(UploadView):
    """``/api/v1/uploads/<id>/store``."""

    parser_classes = (JSONParser,)

    def post(self, request: Request, upload_id: int) -> Response:
        """Have it stored."""
        wanted = StoreUpload(data=request.data)
        wanted.is_valid(raise_exception=True)
        job = wanted.validated_data.get("job", "")
        row = _uploads(request).get(pk=upload_id)
        _check_job(request, job or row.job_name)
        return Response(shown(services.store_upload(actor_of(request), upload_id, job)), 202)


def _text(form: Mapping[str, Any], name: str) -> str:
    value = form.get(name, "")
    return value if isinstance(value, str) else ""


def _uploads(request: Request) -> QuerySet[Upload]:
    """The uploads there are for this request: a token for some jobs only sees those named after one of them."""
    rows = visible_uploads(actor_of(request))
    jobs = request.auth.jobs if isinstance(request.auth, Token) else []
    return rows.filter(job_name__in=jobs) if jobs else rows


def _check_job(request: Request, job: str) -> None:
    """A token for some jobs only must name one of them."""
    if isinstance(request.auth, Token) and request.auth.jobs and not request.auth.may_touch(job):
        raise ProblemError(403, "permission_denied", f"this token is for {', '.join(request.auth.jobs)} only")
