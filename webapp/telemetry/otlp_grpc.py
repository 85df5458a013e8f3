"""OTLP over gRPC, in a process of its own (``manage.py otlp_grpc``).

The same tokens, limits and answers as over HTTP: the token comes in the metadata ``authorization``. A port that is
taken stops nobody: the process says so in its log and tries again until it is free.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError, close_old_connections
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from rest_framework.exceptions import AuthenticationFailed

from analytics.decode.limits import TooLargeError
from webapp.accounts.models import Scope, Token
from webapp.api import rates
from webapp.api.authentication import from_header, require
from webapp.api.problems import RETRY_AFTER_S, ProblemError, is_passing
from webapp.telemetry import otlp
from webapp.telemetry.intake import Delivery

logger = logging.getLogger(__name__)

THREADS = 8
TRY_AGAIN_S = 10.0

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    403: grpc.StatusCode.PERMISSION_DENIED,
    413: grpc.StatusCode.INVALID_ARGUMENT,
    # Senders come back after it because the trailers say when.
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
}

Take = Callable[[Delivery, Any], Message]


def serve(address: str, stopping: threading.Event) -> None:
    """Listen on ``address`` (host:port) until told to stop."""
    while not stopping.is_set():
        server = make_server()
        try:
            server.add_insecure_port(address)
        except RuntimeError:
            logger.warning("otlp_grpc.port_taken address=%s; trying again every %.0f s", address, TRY_AGAIN_S)
            stopping.wait(TRY_AGAIN_S)
            continue
        server.start()
        logger.info("otlp_grpc.listening address=%s", address)
        stopping.wait()
        server.stop(grace=5).wait()


def make_server() -> grpc.Server:
    """The server with both services, not listening yet."""
    most = settings.WEIR_MAX_UNPACKED_BYTES
    server = grpc.server(
        ThreadPoolExecutor(THREADS, "otlp-grpc"),
        options=[("grpc.max_receive_message_length", most), ("grpc.so_reuseport", 0)],
        maximum_concurrent_rpcs=4 * THREADS,
    )
    prefix = "opentelemetry.proto.collector"
    for name, kind, request, take in (
        ("trace.v1.TraceService", otlp.TRACES, ExportTraceServiceRequest, otlp.take_trace_request),
        ("metrics.v1.MetricsService", otlp.METRICS, ExportMetricsServiceRequest, otlp.take_metrics_request),
    ):
        method = grpc.unary_unary_rpc_method_handler(
            _handler(kind, request, take), response_serializer=lambda answer: answer.SerializeToString()
        )
        handlers = grpc.method_handlers_generic_handler(f"{prefix}.{name}", {"Export": method})
        server.add_generic_rpc_handlers((handlers,))
    return server


def _handler(
    kind: str, message: type[Message], take: Take
) -> Callable[[bytes, grpc.ServicerContext], Message]:
    def export(body: bytes, context: grpc.ServicerContext) -> Message:
        close_old_connections()
        try:
            delivery = Delivery(_token(context), kind, body)
            try:
                request = message.FromString(body)
            except DecodeError as error:
                delivery.refused("unreadable", str(error))
                raise ProblemError(400, "unreadable", f"no message of this type: {error}") from error
            return take(delivery, request)
        except Exception as error:  # noqa: BLE001 - every failure becomes a status; ours is logged
            return _abort(context, error)
        finally:
            close_old_connections()

    return export


def _token(context: grpc.ServicerContext) -> Token:
    given = {key: value for key, value in context.invocation_metadata() if key == "authorization"}
    header = given.get("authorization")
    token = from_header(header if isinstance(header, str) else None)
    if token is None:
        raise AuthenticationFailed("a token is needed, in the metadata authorization")
    require(token, Scope.INGEST)
    if wait_s := rates.wait_s(token.pk):
        raise ProblemError(429, "rate_limited", "this token sends faster than it may", retry_after_s=wait_s)
    return token


def _abort(context: grpc.ServicerContext, error: Exception) -> Message:
    match error:
        case AuthenticationFailed():
            context.abort(grpc.StatusCode.UNAUTHENTICATED, str(error.detail))
        case PermissionDenied():
            context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
        case TooLargeError():
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        case ProblemError():
            code = _CODES.get(error.status, grpc.StatusCode.INTERNAL)
            _say_when_again(context, code, error.retry_after_s)
            context.abort(code, error.detail)
        case DatabaseError() | InterfaceError() if is_passing(error):
            logger.warning("database.unavailable %s", error)
            _say_when_again(context, grpc.StatusCode.UNAVAILABLE, RETRY_AFTER_S)
            context.abort(
                grpc.StatusCode.UNAVAILABLE, "the database cannot be reached now; nothing was stored"
            )
    logger.error("otlp_grpc.failed", exc_info=error)
    context.abort(grpc.StatusCode.INTERNAL, "something went wrong in Weir; its log says what")
    raise AssertionError("abort always raises")


def _say_when_again(context: grpc.ServicerContext, code: grpc.StatusCode, seconds: float | None) -> None:
    """``google.rpc.RetryInfo`` in the trailers, as OTLP asks for."""
    if seconds is None:
        return
    info = RetryInfo(retry_delay=Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9)))
    detail = AnyMessage()
    detail.Pack(info)
    status = Status(code=code.value[0], details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
