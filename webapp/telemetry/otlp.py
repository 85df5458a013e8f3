"""OpenTelemetry requests, from HTTP and gRPC alike: by job, decoded, stored.

**Which job.** What the resource says, the first of: ``weir.job``; ``service.namespace``, since the services of one
streaming application share it, and messages go from one to another; ``service.name``, unless an SDK made it up
(``unknown_service``). Otherwise the only job of the token, or as a last resort the name that was made up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from analytics.decode.limits import Budget, Limits
from analytics.decode.otlp_metrics import decode_metrics_request
from analytics.decode.otlp_traces import SpanDecoder
from analytics.model.samples import MetricBatch
from analytics.model.trace import TraceBatch
from webapp.accounts.models import Token
from webapp.telemetry.intake import Delivery, Part, job_name_for, take_metrics, take_traces

LIMITS = Limits(max_bytes=1 << 30, max_records=500_000)
"""Spans or samples of one request; its bytes are limited before it is parsed."""

TRACES, METRICS = "otlp-traces", "otlp-metrics"
NO_NAME = "unknown_service"
_LOST_SPANS = frozenset({"missing_time", "time_out_of_range", "negative_duration", "message_without_peer"})


def take_trace_request(delivery: Delivery, request: ExportTraceServiceRequest) -> ExportTraceServiceResponse:
    """Store the spans of a request.

    Raises
    ------
    ProblemError
        If nothing of it may be stored; ``TooLargeError`` if it has too many spans.
    """
    budget = Budget(LIMITS)
    decoders: dict[str, tuple[int, SpanDecoder]] = {}
    for resource in request.resource_spans:
        name = job_of_resource(delivery.token, resource.resource)
        count, decoder = decoders.get(name, (0, SpanDecoder()))
        budget.take_records(sum(len(scope.spans) for scope in resource.scope_spans))
        decoders[name] = (count + decoder.add([resource]), decoder)
    parts = {name: _span_part(count, decoder.finish()) for name, (count, decoder) in decoders.items()}
    outcome = take_traces(delivery, parts)
    answer = ExportTraceServiceResponse()
    if outcome.rejected:
        answer.partial_success.rejected_spans = outcome.rejected
        answer.partial_success.error_message = outcome.complaint
    return answer


def take_metrics_request(
    delivery: Delivery, request: ExportMetricsServiceRequest
) -> ExportMetricsServiceResponse:
    """Store the data points of a request.

    Raises
    ------
    ProblemError
        If nothing of it may be stored; ``TooLargeError`` if it has too many points.
    """
    budget = Budget(LIMITS)
    by_job: dict[str, list[Any]] = {}
    for resource in request.resource_metrics:
        by_job.setdefault(job_of_resource(delivery.token, resource.resource), []).append(resource)
    parts = {
        name: _metric_part(
            decode_metrics_request(ExportMetricsServiceRequest(resource_metrics=found), budget)
        )
        for name, found in by_job.items()
    }
    outcome = take_metrics(delivery, parts)
    answer = ExportMetricsServiceResponse()
    if outcome.rejected:
        answer.partial_success.rejected_data_points = outcome.rejected
        answer.partial_success.error_message = outcome.complaint
    return answer


def job_of_resource(token: Token, resource: Resource) -> str:
    """The name of the job that a resource belongs to (see the module)."""
    told: Mapping[str, str] = {
        pair.key: pair.value.string_value for pair in resource.attributes if pair.value.string_value
    }
    service = told.get("service.name", "")
    named = "" if service.startswith(NO_NAME) else service
    said = _first(told.get("weir.job"), told.get("service.namespace"), named)
    return job_name_for(token, said) or job_name_for(token, service) or NO_NAME


def _first(*names: str | None) -> str:
    return next((name for name in names if name and name.strip()), "")


def _span_part(count: int, batch: TraceBatch) -> Part[TraceBatch]:
    return Part(count, _count(batch, _LOST_SPANS), batch)


def _metric_part(batch: MetricBatch) -> Part[MetricBatch]:
    return Part(len(batch) + batch.rejected_count, batch.rejected_count, batch)


def _count(batch: TraceBatch, codes: Iterable[str]) -> int:
    wanted = frozenset(codes)
    return sum(item.count for item in batch.diagnostics if item.code in wanted)
