"""Which messages follow from spans: :mod:`analytics.decode.otlp_traces` tells the rules in prose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from analytics.decode.batch import BatchBuilder
from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, HalfMessage

_DATA, _CONTROL = ActivityType.DATA_MESSAGE, ActivityType.CONTROL_MESSAGE
_CLIENT, _SERVER = Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_SERVER
_PRODUCER, _CONSUMER = Span.SPAN_KIND_PRODUCER, Span.SPAN_KIND_CONSUMER


@dataclass(slots=True)
class SpanFacts:
    """What is needed of a span. ``role`` is its OTLP kind; ``kind`` its activity, None for a call so far.

    ``key``, ``parent`` and ``links`` are trace id + span id; ``parent`` is empty for a root.
    """

    key: bytes
    parent: bytes
    links: tuple[bytes, ...]
    role: int
    worker: int
    operator: int
    kind: ActivityType | None
    start_ns: int
    end_ns: int


Spans = Mapping[bytes, SpanFacts]


def add_messages(batch: BatchBuilder, spans: Spans) -> None:
    """Add the messages between these spans to the batch, and decide what calls are."""
    asked: set[bytes] = set()  # spans with children on other workers
    known: set[bytes] = set()  # spans with children
    first_consumed: dict[bytes, int] = {}
    for span in spans.values():
        for source in _sources(span, spans) if span.links or span.role == _CONSUMER else ():
            earliest = first_consumed.get(source, span.start_ns)
            first_consumed[source] = min(earliest, span.start_ns)
            _half(batch, _DATA, span.worker, span.start_ns, source, "", received=True)
        parent = spans.get(span.parent)
        known.add(span.parent)
        if parent is None:
            if span.parent and span.role == _SERVER:
                _half(batch, _CONTROL, span.worker, span.start_ns, span.parent, "/ask", received=True)
                _half(batch, _CONTROL, span.worker, span.end_ns, span.parent, "/answer", received=False)
        elif parent.worker != span.worker and not _is_produced(span, parent):
            _ask(batch, parent, span)
            asked.add(parent.key)
    for span in spans.values():
        if span.role == _PRODUCER:
            sent_ns = max(span.start_ns, min(span.end_ns, first_consumed.get(span.key, span.end_ns)))
            _half(batch, _DATA, span.worker, sent_ns, span.key, "", received=False)
        elif span.role == _CLIENT and span.key not in known:
            _half(batch, _CONTROL, span.worker, span.start_ns, span.key, "/ask", received=False)
            _half(batch, _CONTROL, span.worker, span.end_ns, span.key, "/answer", received=True)
        if span.kind is None:
            span.kind = ActivityType.WAITING if span.key in asked else ActivityType.INPUT


def _sources(span: SpanFacts, spans: Spans) -> set[bytes]:
    """Spans that sent this one data."""
    consumes = span.role == _CONSUMER
    found = {
        key
        for key in span.links
        if (consumes or (key in spans and spans[key].role == _PRODUCER)) and key != span.key
    }
    if consumes and span.parent and span.parent != span.key:
        parent = spans.get(span.parent)
        if parent is None or parent.role == _PRODUCER:
            found.add(span.parent)
    return found


def _is_produced(span: SpanFacts, parent: SpanFacts) -> bool:
    return span.role == _CONSUMER and parent.role == _PRODUCER


def _ask(batch: BatchBuilder, parent: SpanFacts, child: SpanFacts) -> None:
    """The message that made the child start, and its answer."""
    if parent.role == _CLIENT:
        sent_ns = parent.start_ns - (parent.start_ns == child.start_ns)
        answered_ns: int | None = parent.end_ns + (parent.end_ns == child.end_ns)
    else:
        sent_ns = min(child.start_ns - 1, parent.end_ns)
        if child.start_ns < parent.start_ns:  # their clocks disagree: say so
            sent_ns = parent.start_ns
        answered_ns = child.end_ns + 1 if parent.start_ns <= child.end_ns <= parent.end_ns else None
    batch.message(_CONTROL, parent.worker, child.worker, child.operator, sent_ns, child.start_ns)
    if answered_ns is not None:
        batch.message(_CONTROL, child.worker, parent.worker, child.operator, child.end_ns, answered_ns)


def _half(
    batch: BatchBuilder,
    kind: ActivityType,
    worker: int,
    at_ns: int,
    span: bytes,
    part: str,
    *,
    received: bool,
) -> None:
    batch.halves.append(
        HalfMessage(
            type=kind, received=received, worker=worker, peer=NONE, at_ns=at_ns, correlation=span.hex() + part
        )
    )
