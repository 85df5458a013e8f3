"""OpenTelemetry spans as activities and messages.

**Who, what.** Attributes of a span, else of its scope, else of its resource: ``weir.worker``, ``weir.operator``,
``weir.activity`` (an activity type by label or code) and, for a span that is itself a message, ``weir.peer``.
Without them: the worker is ``service.name/service.instance.id/thread`` (what is known of it; the thread from
``thread.name`` and ``thread.id``), the operator the span's name, the activity *processing*; *input* (I/O) for a
CLIENT span, or *waiting* when the spans it caused on other workers are here too. Nested spans of a worker stay as
they are: the graph flattens them to the innermost.

**Messages.** What causes what across workers:

- A PRODUCER span sends a data message at its end (at the start of the first CONSUMER in the same call that links
  to it, if that is earlier); a CONSUMER span receives at its start one from every span it links to, and from its
  parent if that is a PRODUCER or not here. These are halves, so producer and consumer may come in different
  requests.
- A span whose parent is on another worker was asked for by a control message: sent when the CLIENT parent starts,
  or, if the parent is no CLIENT, a nanosecond before the child starts or at the parent's end if that is earlier.
  It answers a CLIENT at the CLIENT's end, another parent a nanosecond after the child's end if the parent still
  ran. The nanosecond keeps ask and answer of one instant from being a circle.
- A SERVER span whose parent is not here and a CLIENT span without children here give halves of both messages.

Clocks that disagree are not repaired: a message may be received before it was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import BatchBuilder, clean_name
from analytics.decode.span_messages import SpanFacts, add_messages
from analytics.model.activity import BY_LABEL, ActivityType
from analytics.model.trace import TraceBatch, Worker

Attributes = Mapping[str, object]

_CLIENT = Span.SPAN_KIND_CLIENT
_OF_SPANS = frozenset(
    {"weir.worker", "weir.operator", "weir.activity", "weir.peer", "thread.id", "thread.name"}
)
_PLAIN = ("string_value", "int_value", "bytes_value")
_OF_WORKERS = (
    "weir.worker", "service.name", "service.instance.id", "thread.name", "thread.id", "host.name", "host",
)  # fmt: skip
_OF_RESOURCES = _OF_SPANS | {"service.name", "service.instance.id", "host.name", "host"}


@dataclass(slots=True)
class _Told:
    """What spans with the same attributes have in common; ``worker`` is None until one of them can be used."""

    attributes: Attributes
    worker: int | None = None


def decode_otlp_traces(request: ExportTraceServiceRequest) -> TraceBatch:
    """The spans of one export request (see the module for what becomes of them).

    Returns
    -------
    TraceBatch
        Spans that cannot be used are left out and counted under ``missing_time``, ``time_out_of_range``,
        ``negative_duration``, ``duplicate_span``, ``unknown_type`` and ``message_without_peer``.
    """
    spans = SpanDecoder()
    spans.add(request.resource_spans)
    return spans.finish()


class SpanDecoder:
    """Collects spans, then says what they mean together: for files that hold many requests."""

    def __init__(self) -> None:
        self.batch = BatchBuilder()
        self._spans: dict[bytes, SpanFacts] = {}
        self._seen: set[bytes] = set()
        self._workers: dict[tuple[object, ...], int] = {}
        self._operators: dict[object, int] = {}

    def add(self, resource_spans: Iterable[ResourceSpans]) -> int:
        """Take in spans; returns how many there were, good or bad."""
        count = 0
        for resource in resource_spans:
            of_resource = _attributes(resource.resource.attributes, _OF_RESOURCES)
            for scope in resource.scope_spans:
                known = {**of_resource, **_attributes(scope.scope.attributes, _OF_SPANS)}
                count += len(scope.spans)
                self._add_all(scope.spans, known)
        return count

    def finish(self) -> TraceBatch:
        """Everything as one batch."""
        add_messages(self.batch, self._spans)
        for span in self._spans.values():
            if span.kind is not None:
                self.batch.activity(span.kind, span.worker, span.operator, span.start_ns, span.end_ns)
        return self.batch.build()

    def _add_all(self, spans: Iterable[Span], known: Attributes) -> None:
        """Spans that say the same share what follows from it: most of thousands do."""
        told: dict[tuple[tuple[str, object], ...], _Told] = {}
        for span in spans:
            own = tuple([(pair.key, _value(pair.value)) for pair in span.attributes if pair.key in _OF_SPANS])
            said = told.get(own)
            if said is None:
                said = told[own] = _Told({**known, **dict(own)})
            self._add(span, said)

    def _add(self, span: Span, said: _Told) -> None:
        start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
        if not 0 < start_ns <= end_ns <= LATEST_NS:
            self._out_of_time(span)
            return
        told = said.attributes
        kind = self._kind(span, told)
        key = span.trace_id + span.span_id if span.span_id else f"span without id {len(self._seen)}".encode()
        if key in self._seen:
            self.batch.oddities.add("duplicate_span", f"{span.name!r:.60} came twice with one span id")
            return
        self._seen.add(key)
        if kind is not None and kind.is_message and "weir.peer" not in told:
            self.batch.oddities.add(
                "message_without_peer", f"{span.name!r:.60} is a {kind.label} but has no weir.peer"
            )
            return
        operator = self._operator(told.get("weir.operator", span.name))
        if said.worker is None:
            said.worker = self._worker(told)
        worker = said.worker
        if kind is not None and kind.is_message:
            peer = self.batch.worker(clean_name(str(told["weir.peer"])) or "unknown")
            self.batch.message(kind, worker, peer, operator, start_ns, end_ns)
            return
        self._spans[key] = SpanFacts(
            key=key,
            parent=span.trace_id + span.parent_span_id if span.parent_span_id else b"",
            links=tuple([link.trace_id + link.span_id for link in span.links if link.span_id]),
            role=span.kind,
            worker=worker,
            operator=operator,
            kind=kind,
            start_ns=start_ns,
            end_ns=end_ns,
        )

    def _operator(self, name: object) -> int:
        """Its position; names come again and again, so cleaning them once is enough."""
        if name not in self._operators:
            self._operators[name] = self.batch.operator(clean_name(str(name)))
        return self._operators[name]

    def _worker(self, told: Attributes) -> int:
        key = tuple(map(told.get, _OF_WORKERS))
        if key not in self._workers:
            self._workers[key] = self.batch.worker(_worker(told))
        return self._workers[key]

    def _out_of_time(self, span: Span) -> None:
        start_ns, end_ns = span.start_time_unix_nano, span.end_time_unix_nano
        if not (start_ns and end_ns):
            self.batch.oddities.add("missing_time", f"{span.name!r:.60} has no start or no end")
        elif max(start_ns, end_ns) > LATEST_NS:
            self.batch.oddities.add("time_out_of_range", f"{span.name!r:.60} is more than 2^62 ns after 1970")
        else:
            self.batch.oddities.add(
                "negative_duration", f"{span.name!r:.60} ends at {end_ns}, before its start at {start_ns}"
            )

    def _kind(self, span: Span, told: Attributes) -> ActivityType | None:
        """What the span says it is, or what its role says; None for a call, of which the children tell."""
        said = told.get("weir.activity")
        if said is None:
            return None if span.kind == _CLIENT else ActivityType.PROCESSING
        if isinstance(said, str) and said.lower() in BY_LABEL:
            return BY_LABEL[said.lower()]
        if isinstance(said, int) and not isinstance(said, bool) and 1 <= said <= max(ActivityType):
            return ActivityType(said)
        self.batch.oddities.add("unknown_type", f"{span.name!r:.60}: weir.activity is {said!r:.60}")
        return ActivityType.UNKNOWN


def _worker(told: Attributes) -> Worker:
    host = clean_name(str(told.get("host.name", told.get("host", "")))) or ""
    if "weir.worker" in told:
        return Worker(clean_name(str(told["weir.worker"])) or "unknown", host)
    thread = [str(told[name]) for name in ("thread.name", "thread.id") if told.get(name) not in (None, "")]
    parts = [told.get("service.name"), told.get("service.instance.id"), "-".join(thread)]
    name = "/".join(str(part) for part in parts if part not in (None, ""))
    return Worker(clean_name(name) or "unknown", host)


def _attributes(pairs: Sequence[KeyValue] | Iterable[KeyValue], wanted: frozenset[str]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs if pair.key in wanted}


def _value(value: AnyValue) -> object:
    field = value.WhichOneof("value")
    if field is None:
        return ""
    told = getattr(value, field)
    # The others cannot be keys, or are the same key as a number that reads otherwise.
    return told if field in _PLAIN else str(told)
