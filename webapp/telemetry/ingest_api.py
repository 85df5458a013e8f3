"""Where programs send telemetry over HTTP: OTLP, Prometheus remote write, activities."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from google.protobuf import json_format
from google.protobuf.message import Message
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.decode.formats import read_file
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.otlp_files import request_from_json, request_from_protobuf
from analytics.decode.otlp_metrics import metrics_request
from analytics.decode.remote_write import write_version
from analytics.model.trace import TraceBatch
from webapp.accounts.models import Scope
from webapp.api.idempotency import once
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, text
from webapp.api.views import ApiView, token_of_request
from webapp.telemetry import otlp, remote_write
from webapp.telemetry.bodies import read_body, unpack
from webapp.telemetry.intake import Delivery, Part, job_name_for, take_traces

PROTOBUF, JSON = "application/x-protobuf", "application/json"
ARROW, NDJSON = "application/vnd.apache.arrow.stream", "application/x-ndjson"
MAX_RECORDS = 5_000_000
"""Activities of one request."""


class IngestView(ApiView):
    """Takes bodies of its own formats, at the scope ``ingest``."""

    scopes = {"*": Scope.INGEST}  # noqa: RUF012

    def delivery(self, request: Request, kind: str, *, packed: bool = False) -> Delivery:
        """The body of the request, unpacked unless its format packs it by itself."""
        body = read_body(request._request)
        delivery = Delivery(token_of_request(request), kind, body)
        if packed:
            return delivery
        try:
            content = unpack(body, request.headers.get("Content-Encoding", ""))
        except ProblemError as error:
            delivery.refused(error.code, error.detail)
            raise
        return Delivery(delivery.token, kind, content)


def media_type(request: Request, *known: str) -> str:
    """The type of the body.

    Raises
    ------
    ProblemError
        415 if it is none of those known.
    """
    media = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media not in known:
        raise ProblemError(415, "unsupported_media_type", f"expected Content-Type {' or '.join(known)}")
    return media


def readable(delivery: Delivery, read: Callable[[], Any], job_name: str = "") -> Any:
    """What ``read`` makes of the delivery.

    Raises
    ------
    ProblemError
        413 if it is too large, 400 if it cannot be read; its first bytes are in quarantine then.
    """
    try:
        return read()
    except TooLargeError as error:
        delivery.refused("too_large", str(error), job_name)
        raise ProblemError(413, "too_large", str(error), retry_after_s=3600) from error
    except UnreadableFileError as error:
        delivery.refused("unreadable", str(error), job_name)
        raise ProblemError(400, "unreadable", str(error)) from error


@extend_schema(exclude=True)  # described by the OpenTelemetry protocol
class OtlpTraces(IngestView):
    """``/v1/traces``."""

    def post(self, request: Request) -> HttpResponse:
        """Store spans."""
        media = media_type(request, PROTOBUF, JSON)
        delivery = self.delivery(request, otlp.TRACES)
        parse = request_from_json if media == JSON else request_from_protobuf
        message = readable(delivery, lambda: parse(delivery.body))
        answer = readable(delivery, lambda: otlp.take_trace_request(delivery, message))
        return otlp_answer(answer, media)


@extend_schema(exclude=True)
class OtlpMetrics(IngestView):
    """``/v1/metrics``."""

    def post(self, request: Request) -> HttpResponse:
        """Store data points."""
        media = media_type(request, PROTOBUF, JSON)
        delivery = self.delivery(request, otlp.METRICS)
        message: ExportMetricsServiceRequest = readable(
            delivery, lambda: metrics_request(delivery.body, json=media == JSON)
        )
        answer = readable(delivery, lambda: otlp.take_metrics_request(delivery, message))
        return otlp_answer(answer, media)


def otlp_answer(answer: Message, media: str) -> HttpResponse:
    """An answer in the encoding of its request."""
    if media == PROTOBUF:
        return HttpResponse(answer.SerializeToString(), content_type=PROTOBUF)
    return HttpResponse(json_format.MessageToJson(answer, indent=None), content_type=JSON)


@extend_schema(exclude=True)  # described by the remote write specification
class RemoteWrite(IngestView):
    """``/api/v1/write``."""

    def post(self, request: Request) -> HttpResponse:
        """Store samples. 400 says "do not send this again": what could be stored is."""
        content_type = request.headers.get("Content-Type", "")
        version = write_version(content_type)
        if version is None or request.headers.get("Content-Encoding", "").lower() != "snappy":
            raise ProblemError(
                415, "unsupported_media_type",
                "expected remote write 1.0 or 2.0: Content-Type application/x-protobuf, Content-Encoding snappy",
            )  # fmt: skip
        delivery = self.delivery(request, remote_write.KIND, packed=True)
        most = settings.WEIR_MAX_UNPACKED_BYTES
        written: remote_write.Written = readable(
            delivery, lambda: remote_write.take_write(delivery, version, most)
        )
        if written.rejected:
            raise ProblemError(400, "samples_rejected", written.complaint, headers=_written_headers(written))
        return HttpResponse(status=204, headers=_written_headers(written))


def _written_headers(written: remote_write.Written) -> dict[str, str]:
    counts = {"Samples": written.samples, "Histograms": written.histograms, "Exemplars": 0}
    return {f"X-Prometheus-Remote-Write-{what}-Written": str(count) for what, count in counts.items()}


class DiagnosticShape(serializers.Serializer[Any]):
    """Something odd about what was sent."""

    code = serializers.CharField()
    count = serializers.IntegerField()
    example = serializers.CharField()


class StoredShape(serializers.Serializer[Any]):
    """What became of a delivery."""

    job_id = serializers.IntegerField()
    record_count = serializers.IntegerField(help_text="activities and messages stored")
    duplicate = serializers.BooleanField(help_text="the same body was stored before; nothing was added")
    diagnostics = DiagnosticShape(many=True)


class Activities(IngestView):
    """``/api/v1/activities``. They are not given back: windows are what can be asked about any time."""

    @extend_schema(
        operation_id="send_activities",
        parameters=[
            text("job", "name of the job; registered if it is new. Needed unless the token is for one job."),
            IDEMPOTENCY_KEY,
        ],
        request={ARROW: OpenApiTypes.BINARY, NDJSON: OpenApiTypes.BINARY},
        responses=StoredShape,
        description=(
            "Store activities: an Arrow IPC stream or one JSON object a line, as `python -m analytics` reads them, "
            "also with Content-Encoding gzip or zstd. The same body again changes nothing."
        ),
    )
    def post(self, request: Request) -> Response:
        """Store them."""
        media = media_type(request, ARROW, NDJSON)
        token = token_of_request(request)
        name = job_name_for(token, request.query_params.get("job", ""))
        if not name:
            wrong = [{"field": "job", "detail": "name the job"}]
            raise ProblemError(400, "invalid", "some parameters are wrong", errors=wrong)
        delivery = self.delivery(request, "arrow" if media == ARROW else "activities")

        def act() -> Response:
            return Response(_store_activities(delivery, name))

        return once(request, token, delivery.digest, act)


def _store_activities(delivery: Delivery, name: str) -> dict[str, Any]:
    batch: TraceBatch = readable(delivery, lambda: _read_activities(delivery), name)
    outcome = take_traces(delivery, {name: Part(len(batch.records) + len(batch.halves), 0, batch)})
    stored = outcome.stored[name]
    return {
        "job_id": stored.job_id,
        "record_count": stored.record_count,
        "duplicate": stored.duplicate,
        "diagnostics": [DiagnosticShape(item).data for item in stored.diagnostics],
    }


def _read_activities(delivery: Delivery) -> TraceBatch:
    """What the body says. Errors name no file, for its sender sent none."""
    limits = Limits(settings.WEIR_MAX_UNPACKED_BYTES * 4, MAX_RECORDS)
    with tempfile.NamedTemporaryFile(prefix="weir-activities-") as file:
        file.write(delivery.body)
        file.flush()
        try:
            return read_file(Path(file.name), delivery.kind, limits)
        except UnreadableFileError as error:
            raise type(error)(str(error).removeprefix(f"{file.name}: ")) from error
