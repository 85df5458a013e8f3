"""OpenTelemetry metrics: every shape of data point, and what Flink's own exporter sends."""

import gzip
import math
from typing import Any

import orjson
import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.otlp_metrics import METRIC_LIMITS, decode_otlp_metrics
from analytics.model.metrics import MetricSample
from analytics.model.samples import Kind, MetricBatch
from tests.support.flink import GOLDEN

T0 = 1_795_253_248_576_397_279
DELTA, CUMULATIVE = 1, 2


def attributes(**values: Any) -> list[dict[str, Any]]:
    def told(value: Any) -> dict[str, Any]:
        return value if isinstance(value, dict) else {"stringValue": value}

    return [{"key": key.replace("__", "."), "value": told(value)} for key, value in values.items()]


def document(*metrics: dict[str, Any], **resource: Any) -> bytes:
    scope = {"scope": {"name": "s"}, "metrics": list(metrics)}
    return orjson.dumps(
        {"resourceMetrics": [{"resource": {"attributes": attributes(**resource)}, "scopeMetrics": [scope]}]}
    )


def metric(name: str, shape: str, *points: dict[str, Any], **of_data: Any) -> dict[str, Any]:
    return {"name": name, shape: {"dataPoints": [{"timeUnixNano": str(T0), **p} for p in points], **of_data}}


def decode(*metrics: dict[str, Any], limits: Limits = METRIC_LIMITS, **resource: Any) -> MetricBatch:
    """Read as JSON and, the same request, as protobuf: both must say the same."""
    body = document(*metrics, **resource)
    batch = decode_otlp_metrics(body, json=True, limits=limits)
    request = json_format.ParseDict(orjson.loads(body), ExportMetricsServiceRequest())
    binary = decode_otlp_metrics(request.SerializeToString(), json=False, limits=limits)
    assert binary.series == batch.series
    assert binary.samples() == batch.samples()
    assert binary.diagnostics == batch.diagnostics
    assert binary.rejected_count == batch.rejected_count
    return batch


def told(batch: MetricBatch) -> list[tuple[str, dict[str, str], float]]:
    return [(item.name, dict(item.labels), item.value) for item in batch.samples()]


def codes(batch: MetricBatch) -> dict[str, int]:
    return {item.code: item.count for item in batch.diagnostics}


def test_a_gauge_has_the_labels_of_its_resource_and_its_own() -> None:
    point = {"asInt": "5", "attributes": attributes(host="own", n={"intValue": "7"}, ok={"boolValue": True})}
    batch = decode(metric("load", "gauge", point), host="resource", service__name="flink")
    assert batch.samples() == [
        MetricSample(
            "load", (("host", "own"), ("n", "7"), ("ok", "true"), ("service.name", "flink")), T0, 5.0
        )
    ]
    assert batch.series[0].kind is Kind.GAUGE


@pytest.mark.parametrize(
    ("temporality", "monotonic", "kind"),
    [(CUMULATIVE, True, Kind.COUNTER), (CUMULATIVE, False, Kind.GAUGE), (DELTA, True, Kind.DELTA),
     (DELTA, False, Kind.DELTA), (0, True, Kind.UNKNOWN)],
)  # fmt: skip
def test_a_sum_says_how_it_counts_and_since_when(temporality: int, monotonic: bool, kind: Kind) -> None:
    point = {"asDouble": 2.5, "startTimeUnixNano": str(T0 - 7)}
    batch = decode(metric("n", "sum", point, aggregationTemporality=temporality, isMonotonic=monotonic))
    assert (batch.series[0].kind, batch.start_ns.tolist(), batch.value.tolist()) == (kind, [T0 - 7], [2.5])


def test_a_histogram_counts_up_to_each_bound() -> None:
    point = {"count": "6", "sum": 9.5, "bucketCounts": ["1", "2", "3"], "explicitBounds": [0.5, 10.0]}
    batch = decode(metric("t", "histogram", point, aggregationTemporality=CUMULATIVE))
    assert told(batch) == [
        ("t_count", {}, 6.0), ("t_sum", {}, 9.5),
        ("t_bucket", {"le": "0.5"}, 1.0), ("t_bucket", {"le": "10"}, 3.0), ("t_bucket", {"le": "+Inf"}, 6.0),
    ]  # fmt: skip
    assert {series.kind for series in batch.series} == {Kind.COUNTER}


def test_a_histogram_without_sum_or_buckets_says_its_count_only() -> None:
    assert told(decode(metric("t", "histogram", {"count": "6"}))) == [("t_count", {}, 6.0)]


def test_an_exponential_histogram_is_its_count_and_sum() -> None:
    point = {"count": "6", "sum": 9.5, "scale": 3, "positive": {"offset": 1, "bucketCounts": ["6"]}}
    batch = decode(metric("t", "exponentialHistogram", point, aggregationTemporality=DELTA))
    assert told(batch) == [("t_count", {}, 6.0), ("t_sum", {}, 9.5)]
    assert (codes(batch), batch.rejected_count) == ({"exponential_histogram": 1}, 0)


def test_a_summary_has_its_quantiles_under_its_own_name() -> None:
    point = {
        "count": "6", "sum": 9.5,
        "quantileValues": [{"quantile": 0.5, "value": 1.0}, {"quantile": 1.0, "value": 4.0}],
    }  # fmt: skip
    batch = decode(metric("t", "summary", point))
    assert told(batch) == [
        ("t_count", {}, 6.0), ("t_sum", {}, 9.5), ("t", {"quantile": "0.5"}, 1.0), ("t", {"quantile": "1"}, 4.0),
    ]  # fmt: skip
    assert [series.kind for series in batch.series] == [Kind.COUNTER, Kind.COUNTER, Kind.GAUGE, Kind.GAUGE]


def test_no_recorded_value_makes_the_series_stale() -> None:
    batch = decode(
        metric("g", "gauge", {"flags": 1}),
        metric("h", "histogram", {"flags": 1}),
        metric("s", "summary", {"flags": 1}),
    )
    assert [series.name for series in batch.series] == ["g", "h_count", "h_sum", "s_count", "s_sum"]
    assert batch.stale.all()
    assert all(math.isnan(value) for value in batch.value)
    assert batch.samples() == []
    assert batch.rejected_count == 0


def test_points_that_cannot_be_used_are_rejected_with_a_reason_and_the_others_kept() -> None:
    batch = decode(
        metric("a", "gauge", {}, {"asInt": "1", "timeUnixNano": "0"}, {"asInt": "1"}),
        metric("b", "gauge", {"asInt": "1", "timeUnixNano": str(2**63)}),
        metric("", "gauge", {"asInt": "1"}),
        metric("x" * 201, "gauge", {"asInt": "1"}),
        metric("c", "histogram", {"count": "1", "bucketCounts": ["1"], "explicitBounds": [1.0]}),
        metric("d", "gauge", {"asInt": "1", "attributes": attributes(**{"k" * 201: "v"})}),
        metric("e", "gauge", {"asInt": "1", "attributes": attributes(**{f"l{n}": "v" for n in range(65)})}),
        {"name": "empty"},
    )
    assert told(batch) == [("a", {}, 1.0)]
    assert batch.rejected_count == 8
    assert codes(batch) == {
        "missing_value": 1, "missing_time": 1, "time_out_of_range": 1, "missing_name": 1, "bad_name": 1,
        "bad_buckets": 1, "bad_label": 1, "too_many_labels": 1, "no_data": 1,
    }  # fmt: skip
    assert "missing_time (1): a point of 'a' has no time" in batch.complaint()
    assert decode(metric("a", "gauge", {"asInt": "1"})).complaint() == ""


def test_numbers_that_are_not_finite_say_nothing() -> None:
    batch = decode(metric("a", "gauge", {"asDouble": "NaN"}, {"asDouble": "-Infinity"}, {"asDouble": 1.0}))
    assert (batch.value.tolist(), codes(batch), batch.rejected_count) == ([1.0], {"not_finite": 2}, 0)


def test_a_very_long_attribute_does_not_cost_the_number() -> None:
    batch = decode(metric("a", "gauge", {"asInt": "1"}), process__command_line="x" * 5_000, nul="a\0b")
    labels = dict(batch.samples()[0].labels)
    assert (len(labels["process.command_line"]), labels["nul"]) == (1_000, "a?b")
    assert codes(batch) == {"label_cut": 1}


def test_attributes_of_every_type_become_text() -> None:
    labels = told(
        decode(
            metric("a", "gauge", {"asInt": "1"}),
            double={"doubleValue": 1.5},
            array={"arrayValue": {"values": [{"stringValue": "x"}]}},
            raw={"bytesValue": "AQI="},
            empty={},
        )
    )[0][1]
    assert (labels["double"], labels["raw"]) == ("1.5", "AQI=")
    assert "x" in labels["array"]
    assert "empty" not in labels


def test_exemplars_with_hexadecimal_ids_are_no_obstacle() -> None:
    point = {
        "asInt": "1",
        "exemplars": [{"traceId": "5b8efff798038103d269b633813fc60", "spanId": "zz", "asInt": "1"}],
    }
    body = document(metric("a", "gauge", point))
    assert len(decode_otlp_metrics(body, json=True)) == 1


@pytest.mark.parametrize("name", ["otlp_metrics_001.bin", "otlp_metrics_004.bin", "otlp_metrics_012.bin.gz"])
def test_what_flink_sends_is_read_whole(name: str) -> None:
    data = (GOLDEN / name).read_bytes()
    body = gzip.decompress(data) if name.endswith(".gz") else data
    batch = decode_otlp_metrics(body, json=False)
    request = ExportMetricsServiceRequest.FromString(body)
    sent = [m.name for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics]
    assert batch.rejected_count == 0
    assert {item.code for item in batch.diagnostics} <= {"not_finite"}
    assert set(sent) <= {series.name.removesuffix("_sum").removesuffix("_count") for series in batch.series}
    assert (batch.at_ns > 1_795_253_000_000_000_000).all()


def test_flinks_counters_are_deltas_of_one_attempt_of_one_subtask() -> None:
    body = gzip.decompress((GOLDEN / "otlp_metrics_012.bin.gz").read_bytes())
    batch = decode_otlp_metrics(body, json=False)
    found = [series for series in batch.series if series.name == "flink.taskmanager.job.task.numRecordsIn"]
    assert len(found) == 4
    assert {series.kind for series in found} == {Kind.DELTA}
    labels = dict(found[0].labels)
    assert {"task_name", "subtask_index", "task_attempt_num", "job_id", "tm_id"} <= labels.keys()


def test_flinks_protobuf_and_its_json_say_the_same() -> None:
    binary = decode_otlp_metrics((GOLDEN / "otlp_metrics_001.bin").read_bytes(), json=False)
    text = decode_otlp_metrics((GOLDEN / "otlp_metrics_001.json").read_bytes(), json=True)
    assert binary.samples() == text.samples()
    assert binary.series == text.series


def test_limits_hold_for_bytes_and_samples() -> None:
    body = document(metric("a", "gauge", *[{"asInt": "1"}] * 11))
    with pytest.raises(TooLargeError, match="10 records"):
        decode_otlp_metrics(body, json=True, limits=Limits(1 << 20, 10))
    with pytest.raises(TooLargeError, match="10 bytes"):
        decode_otlp_metrics(body, json=True, limits=Limits(10, 100))
    buckets = {"count": "1", "bucketCounts": ["1"] * 12, "explicitBounds": [float(n) for n in range(11)]}
    with pytest.raises(TooLargeError, match="10 records"):
        decode_otlp_metrics(
            document(metric("h", "histogram", buckets)), json=True, limits=Limits(1 << 20, 10)
        )


def test_what_is_no_request_gives_one_clear_line() -> None:
    bodies = (
        b"x",
        b"[]",
        b"{}",
        b"",
        b'{"resourceMetrics": 3}',
        b'{"resourceMetrics":[{"scopeMetrics":[3]}]}',
    )
    for body in bodies:
        with pytest.raises(UnreadableFileError) as told:
            decode_otlp_metrics(body, json=True)
        assert str(told.value)
    with pytest.raises(UnreadableFileError, match="no OTLP metric message"):
        decode_otlp_metrics(b"\xff\xff", json=False)
    assert len(decode_otlp_metrics(b"", json=False)) == 0
