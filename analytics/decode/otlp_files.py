"""Files of OpenTelemetry spans: protobuf or JSON, one request or many.

What the collector's file exporter writes, and what a request's body is: JSON, one object a line or one in all;
protobuf, bare or with a length of four bytes before each message. ``ExportTraceServiceRequest`` and ``TracesData``
look the same on the wire.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from analytics.decode.batch import Oddities
from analytics.decode.limits import Budget, UnreadableFileError, opened
from analytics.decode.otlp_requests import from_json, from_protobuf
from analytics.decode.otlp_traces import SpanDecoder
from analytics.model.trace import TraceBatch

_ID_BYTES = {"traceId": 16, "trace_id": 16, "spanId": 8, "span_id": 8, "parentSpanId": 8, "parent_span_id": 8}
_LENGTH = struct.Struct(">I")


def read_otlp(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """All spans of all files as one trace; parents and links are found across files.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, is larger than the budget, or is not OTLP at all. A bad line among good ones
        is counted under ``not_a_request``, a file that ends within a message under ``truncated``.
    """
    decoder = SpanDecoder()
    for path in paths:
        with opened(path, budget) as file:
            source = f"{path}, " if len(paths) > 1 else ""
            for request in _requests(file.read(), decoder.batch.oddities, source):
                budget.take_records(decoder.add(request.resource_spans))
    return decoder.finish()


def request_from_protobuf(body: bytes) -> ExportTraceServiceRequest:
    """Parse a binary request.

    Raises
    ------
    UnreadableFileError
        If it is damaged or something else.
    """
    return from_protobuf(body, ExportTraceServiceRequest, "trace")


def request_from_json(body: bytes) -> ExportTraceServiceRequest:
    """Parse a request in OTLP's JSON, whose ids are hexadecimal (base64, as other tools write, is understood).

    Raises
    ------
    UnreadableFileError
        If it is no JSON object or has a field of a wrong type. Unknown fields are passed over.
    """
    fields = {"resourceSpans", "resource_spans"}
    return from_json(body, ExportTraceServiceRequest, "trace", fields, _ids_to_base64)


def _requests(data: bytes, oddities: Oddities, source: str) -> Iterator[ExportTraceServiceRequest]:
    if not data:
        return
    if data.lstrip()[:1] == b"{":
        try:
            yield from _from_json(data, oddities, source)
        except UnreadableFileError:
            if data[:1] != b"\n":  # which is also how a protobuf message begins
                raise
            yield request_from_protobuf(data)
    elif data[:1] == b"\0":
        yield from _from_frames(data, oddities, source)
    else:
        yield request_from_protobuf(data)


def _from_json(data: bytes, oddities: Oddities, source: str) -> Iterator[ExportTraceServiceRequest]:
    lines = data.splitlines()
    try:
        yield request_from_json(data)
        return
    except UnreadableFileError as error:
        if len(lines) == 1:
            raise
        whole = error
    good = 0
    bad = Oddities()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                request = request_from_json(line)
            except UnreadableFileError as error:
                bad.add("not_a_request", f"{source}line {number}: {error}")
                continue
            good += 1
            yield request
    if not good:
        raise whole
    for item in bad.diagnostics():
        oddities.add(item.code, item.example, item.count)


def _from_frames(data: bytes, oddities: Oddities, source: str) -> Iterator[ExportTraceServiceRequest]:
    at = 0
    while at + _LENGTH.size <= len(data):
        start = at + _LENGTH.size
        end = start + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            break
        yield request_from_protobuf(data[start:end])
        at = end
    if at == 0:
        raise UnreadableFileError("no OTLP trace message: it ends within the first")
    if at < len(data):
        oddities.add("truncated", f"{source}byte {at}: the file ends within a message")


def _ids_to_base64(document: dict[str, Any]) -> None:
    """Rewrite hexadecimal ids the way protobuf's JSON reader wants bytes."""
    for resource in document.get("resourceSpans", document.get("resource_spans")) or ():
        for scope in resource.get("scopeSpans", resource.get("scope_spans")) or ():
            for span in scope.get("spans") or ():
                _rewrite_ids(span)
                for link in span.get("links") or ():
                    _rewrite_ids(link)


def _rewrite_ids(item: dict[str, Any]) -> None:
    for name, size in _ID_BYTES.items():
        value = item.get(name)
        if isinstance(value, str) and len(value) == 2 * size:
            item[name] = base64.b64encode(bytes.fromhex(value)).decode()
