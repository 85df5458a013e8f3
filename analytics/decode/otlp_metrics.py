"""OpenTelemetry metrics as samples.

**Names and labels.** A metric keeps its name; attributes of the resource and of the data point are the labels,
those of the point winning. Values that are no text are written as in JSON; text over the limit is cut.

**Shapes.** A histogram gives ``_count``, ``_sum`` and ``_bucket`` with the label ``le``, counting everything up to
that bound as Prometheus does; a summary ``_count``, ``_sum`` and its quantiles under its own name with the label
``quantile``; an exponential histogram ``_count`` and ``_sum``. A sum that only grows is a counter, or a delta if
its points say what was added since their start; one that also shrinks is a gauge.

A point flagged *no recorded value* makes its series stale. Exemplars, minima and maxima are passed over.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import orjson
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    DataPointFlags,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    SummaryDataPoint,
)

from analytics.decode.limits import Budget, Limits
from analytics.decode.otlp_requests import from_json, from_protobuf
from analytics.decode.series import MAX_VALUE_CHARS, SampleBuilder, time_is_plausible
from analytics.model.samples import Kind, MetricBatch

METRIC_LIMITS = Limits(max_bytes=16 << 20, max_records=500_000)
"""For one request: bytes after decompression, and samples."""

_SHAPES = ("gauge", "sum", "histogram", "exponentialHistogram", "exponential_histogram", "summary")
_Point = Any
"""A data point of any shape: all have attributes, times and flags."""

Labels = dict[str, str]


def decode_otlp_metrics(body: bytes, *, json: bool, limits: Limits = METRIC_LIMITS) -> MetricBatch:
    """The samples of an ``ExportMetricsServiceRequest``, as protobuf or JSON, already decompressed.

    Returns
    -------
    MetricBatch
        ``rejected_count`` are data points, for the answer's partial success. They are counted under
        ``missing_value``, ``missing_time``, ``time_out_of_range``, ``bad_buckets``, ``missing_name``, ``bad_name``,
        ``bad_label`` and ``too_many_labels``. Kept or passed over without being rejected: ``not_finite``,
        ``label_cut``, ``exponential_histogram`` (its buckets), ``no_data``.

    Raises
    ------
    UnreadableFileError
        If the body is damaged or something else, ``TooLargeError`` if it is over the limits.
    """
    budget = Budget(limits)
    budget.take_bytes(len(body))
    return decode_metrics_request(metrics_request(body, json=json), budget)


def metrics_request(body: bytes, *, json: bool) -> ExportMetricsServiceRequest:
    """Parse a request, to look at its resources before it is decoded.

    Raises
    ------
    UnreadableFileError
        If the body is damaged or something else.
    """
    if json:
        fields = {"resourceMetrics", "resource_metrics"}
        return from_json(body, ExportMetricsServiceRequest, "metric", fields, _without_exemplars)
    return from_protobuf(body, ExportMetricsServiceRequest, "metric")


def decode_metrics_request(request: ExportMetricsServiceRequest, budget: Budget) -> MetricBatch:
    """The samples of a request that was already parsed, by gRPC for instance; see :func:`decode_otlp_metrics`.

    Raises
    ------
    TooLargeError
        If there are more samples than the budget has left.
    """
    reader = _Reader(budget)
    for resource in request.resource_metrics:
        of_resource = reader.labels(resource.resource.attributes)
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                reader.add(metric, of_resource)
    return reader.samples.build()


class _Reader:
    """Turns data points into samples."""

    def __init__(self, budget: Budget) -> None:
        self.samples = SampleBuilder()
        self.budget = budget

    def labels(self, attributes: Iterable[KeyValue]) -> Labels:
        """Attributes as text. Those of a process may be very long, which must not cost its numbers."""
        found = {}
        for pair in attributes:
            value = _text(pair).replace("\0", "?")
            if len(value) > MAX_VALUE_CHARS:
                self.samples.oddities.add("label_cut", f"{pair.key!r:.60} has {len(value)} characters")
            found[pair.key] = value[:MAX_VALUE_CHARS]
        return found

    def add(self, metric: Metric, of_resource: Labels) -> None:
        """Take in all points of a metric."""
        shape = metric.WhichOneof("data")
        if shape is None:
            self.samples.oddities.add("no_data", f"{metric.name!r:.60} has no data")
            return
        data = getattr(metric, shape)
        for point in data.data_points:
            self.budget.take_records()
            if not self._in_time(metric, point):
                continue
            labels = {**of_resource, **self.labels(point.attributes)}
            if shape in ("gauge", "sum"):
                kind = Kind.GAUGE if shape == "gauge" else _sum_kind(data)
                self._add_number(metric.name, labels, kind, point)
            elif shape == "summary":
                self._add_summary(metric.name, labels, point)
            else:
                kind = _temporality_kind(data.aggregation_temporality)
                self._add_histogram(metric.name, labels, kind, point, exponential=shape != "histogram")

    def _in_time(self, metric: Metric, point: _Point) -> bool:
        at_ns = point.time_unix_nano
        if not at_ns:
            self.samples.reject("missing_time", f"a point of {metric.name!r:.60} has no time")
        elif not time_is_plausible(at_ns):
            self.samples.reject(
                "time_out_of_range", f"a point of {metric.name!r:.60} is more than 2^62 ns after 1970"
            )
        else:
            return True
        return False

    def _add_number(self, name: str, labels: Labels, kind: Kind, point: NumberDataPoint) -> None:
        told = point.WhichOneof("value")
        if told is None and not _no_value(point):
            self.samples.reject("missing_value", f"a point of {name!r:.60} has no value")
            return
        self._keep(point, [(name, labels, kind, float(getattr(point, told)) if told else 0.0)])

    def _add_histogram(
        self, name: str, labels: Labels, kind: Kind, point: HistogramDataPoint, *, exponential: bool
    ) -> None:
        rows = [(f"{name}_count", labels, kind, float(point.count))]
        if point.HasField("sum") or _no_value(point):
            rows.append((f"{name}_sum", labels, kind, point.sum))
        if exponential:
            self.samples.oddities.add("exponential_histogram", "count and sum are kept, buckets are not")
        elif point.bucket_counts:
            counts, bounds = point.bucket_counts, point.explicit_bounds
            if len(counts) != len(bounds) + 1:
                self.samples.reject("bad_buckets", f"{name:.60}: {len(counts)} buckets, {len(bounds)} bounds")
                return
            self.budget.take_records(len(counts))
            rows += _bucket_rows(f"{name}_bucket", labels, kind, bounds, counts)
        self._keep(point, rows)

    def _add_summary(self, name: str, labels: Labels, point: SummaryDataPoint) -> None:
        self.budget.take_records(len(point.quantile_values))
        rows = [
            (f"{name}_count", labels, Kind.COUNTER, float(point.count)),
            (f"{name}_sum", labels, Kind.COUNTER, point.sum),
        ]
        rows += [
            (name, {**labels, "quantile": _number(item.quantile)}, Kind.GAUGE, item.value)
            for item in point.quantile_values
        ]
        self._keep(point, rows)

    def _keep(self, point: _Point, rows: Sequence[tuple[str, Labels, Kind, float]]) -> None:
        """All rows of a point, or none of them."""
        positions = []
        for name, labels, kind, _ in rows:
            position = self.samples.series(name, labels.items(), kind)
            if position is None:
                self.samples.rejected_count += 1
                return
            positions.append(position)
        stale = _no_value(point)
        for position, (_, _, _, value) in zip(positions, rows, strict=True):
            self.samples.add(position, point.time_unix_nano, value, point.start_time_unix_nano, stale=stale)


def _bucket_rows(
    name: str, labels: Labels, kind: Kind, bounds: Iterable[float], counts: Iterable[int]
) -> list[tuple[str, Labels, Kind, float]]:
    names = [*(_number(bound) for bound in bounds), "+Inf"]
    return [
        (name, {**labels, "le": le}, kind, float(total))
        for le, total in zip(names, accumulate(counts), strict=True)
    ]


def _sum_kind(data: Any) -> Kind:
    if data.aggregation_temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA:
        return Kind.DELTA
    if not data.is_monotonic:
        return Kind.GAUGE
    return _temporality_kind(data.aggregation_temporality)


def _temporality_kind(temporality: int) -> Kind:
    if temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_DELTA:
        return Kind.DELTA
    cumulative = temporality == AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE
    return Kind.COUNTER if cumulative else Kind.UNKNOWN


def _no_value(point: _Point) -> bool:
    return bool(point.flags & DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK)


def _number(value: float) -> str:
    """A bound or quantile as Prometheus writes it: without ".0"."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def _text(pair: KeyValue) -> str:
    field = pair.value.WhichOneof("value")
    if field is None:
        return ""
    value = getattr(pair.value, field)
    if field == "string_value":
        return str(value)
    if field == "bytes_value":
        return base64.b64encode(value).decode()
    if field in ("array_value", "kvlist_value"):
        return orjson.dumps(json_format.MessageToDict(value)).decode()
    return orjson.dumps(value).decode()


def _without_exemplars(document: dict[str, Any]) -> None:
    """Take away what has hexadecimal ids; it is not read anyway."""
    for resource in document.get("resourceMetrics", document.get("resource_metrics")) or ():
        for scope in resource.get("scopeMetrics", resource.get("scope_metrics")) or ():
            for metric in scope.get("metrics") or ():
                for shape in _SHAPES:
                    data = metric.get(shape) or {}
                    for point in data.get("dataPoints", data.get("data_points")) or ():
                        point.pop("exemplars", None)
