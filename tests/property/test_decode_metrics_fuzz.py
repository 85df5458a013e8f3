"""OTLP metrics and expositions: cut or damaged at any byte, there are samples or one clear error."""

import gzip
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import NumberDataPoint

from analytics.decode.limits import Limits, UnreadableFileError
from analytics.decode.openmetrics import decode_exposition
from analytics.decode.otlp_metrics import decode_otlp_metrics
from analytics.model.samples import MetricBatch
from tests.support.flink import GOLDEN

T0 = 1_795_253_248_576_397_279
LIMITS = Limits(1 << 20, 10_000)
OPEN = "application/openmetrics-text"
Decode = Callable[[bytes], MetricBatch]


def protobuf(body: bytes) -> MetricBatch:
    return decode_otlp_metrics(body, json=False, limits=LIMITS)


def json(body: bytes) -> MetricBatch:
    return decode_otlp_metrics(body, json=True, limits=LIMITS)


def text(body: bytes) -> MetricBatch:
    return decode_exposition(body, "text/plain", T0, "i", LIMITS)


def openmetrics(body: bytes) -> MetricBatch:
    return decode_exposition(body, OPEN, T0, "i", LIMITS)


def survived(decode: Decode, body: bytes) -> MetricBatch | None:
    why = None
    try:
        batch = decode(body)
    except UnreadableFileError as error:
        why = str(error)
    if why is not None:
        assert why
        return None
    for item in batch.samples():
        assert math.isfinite(item.value)
        assert item.at_ns > 0
        item.name.encode()
        assert item.name
    assert all(item.count > 0 and item.example for item in batch.diagnostics)
    return batch


SMALL_TEXT = (
    b'# HELP a what\n# TYPE a counter\na{x="1",y="\\"q\\\\",} 1.5 1795251855001\n# TYPE h histogram\n'
    b'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4\nh_count 3\n'
)
SMALL_OPEN = (
    b'# TYPE a counter\n# UNIT a \na_total{x="1"} 1.5 1795251855.001 # {trace="ab"} 1.0\na_created 5.0\n'
    b'# TYPE h histogram\nh_bucket{le="1.0"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4\nh_count 3\n'
    b'# TYPE s stateset\ns{s="x"} 1\n# EOF\n'
)


def small_request() -> bytes:
    request = ExportMetricsServiceRequest()
    scope = request.resource_metrics.add().scope_metrics.add()
    scope.metrics.add(name="g").gauge.data_points.add(time_unix_nano=T0, as_double=1.5)
    points = scope.metrics.add(name="h").histogram.data_points
    points.add(time_unix_nano=T0, count=3, sum=2.0, bucket_counts=[1, 2], explicit_bounds=[1.0])
    summary = scope.metrics.add(name="s").summary.data_points.add(time_unix_nano=T0, count=3)
    summary.quantile_values.add(quantile=0.5, value=1.0)
    exponential = scope.metrics.add(name="e").exponential_histogram.data_points.add(
        time_unix_nano=T0, flags=1
    )
    exponential.attributes.add(key="k").value.int_value = 5
    return bytes(request.SerializeToString())


FLINK_JSON = (GOLDEN / "otlp_metrics_001.json").read_bytes()
BODIES: dict[str, tuple[Decode, bytes]] = {
    "protobuf": (protobuf, small_request()),
    "json": (json, FLINK_JSON),
    "text": (text, SMALL_TEXT),
    "openmetrics": (openmetrics, SMALL_OPEN),
}


@pytest.mark.parametrize("name", ["protobuf", "text", "openmetrics"])
def test_a_body_cut_at_any_byte_is_understood_or_refused(name: str) -> None:
    decode, body = BODIES[name]
    whole = survived(decode, body)
    assert whole is not None
    for length in range(len(body)):
        cut = survived(decode, body[:length])
        assert cut is None or len(cut) <= len(whole)


def test_json_cut_anywhere_is_refused() -> None:
    for length in range(0, len(FLINK_JSON) - 2, 97):
        assert survived(json, FLINK_JSON[:length]) is None


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_damaged_bytes_never_fail(name: str, data: st.DataObject) -> None:
    decode, body = BODIES[name]
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    survived(decode, bytes(damaged))


lines = st.lists(
    st.sampled_from(
        ["# TYPE a counter", "# TYPE a histogram", "# HELP a", "# UNIT a s", "a_total 1", "a_bucket{le=\"1\"} 1",
         "a{", "a{x=\"", "a 1 2", "a 1 NaN", "a 1 -Inf", "a{} NaN", "# EOF", "a_count -1", "a_sum {",
         "# TYPE a info", "a_info{x=\"1\"} 1", "a # {} 1", "{a=\"b\"} 1", "{\"a b\"} 1", "a{le=\"x\"} 1",
         "a_gcount 1", "a {count:1,sum:2} 3", "a_count 1" + "0" * 400, ""]
    )
    | st.text(max_size=12),
    max_size=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(lines)
def test_any_lines_are_survived(told: list[str]) -> None:
    body = "\n".join(told).encode("utf-8", "replace")
    survived(text, body)
    survived(openmetrics, body)
    survived(openmetrics, body + b"\n# EOF\n")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_survived(body: bytes) -> None:
    for decode in (protobuf, json, text, openmetrics):
        survived(decode, body)


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            words,
            st.dictionaries(words, words, max_size=4),
            st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53),
            st.integers(1, 2**62),
        ),
        max_size=6,
    )
)
def test_what_is_written_is_read(points: list[tuple[str, dict[str, str], float, int]]) -> None:
    request = ExportMetricsServiceRequest()
    scope = request.resource_metrics.add().scope_metrics.add()
    for name, labels, value, at_ns in points:
        number = {"as_int": value} if isinstance(value, int) else {"as_double": value}
        point = NumberDataPoint(time_unix_nano=at_ns, **number)  # type: ignore[arg-type]
        for key, label in labels.items():
            point.attributes.add(key=key).value.string_value = label
        scope.metrics.add(name=name).gauge.data_points.append(point)
    batch = protobuf(request.SerializeToString())
    assert [(s.name, s.labels, s.at_ns, s.value) for s in batch.samples()] == [
        (name, tuple(sorted(labels.items())), at_ns, value) for name, labels, value, at_ns in points
    ]


def test_flinks_text_cut_at_every_line_is_read_up_to_there() -> None:
    whole = gzip.decompress((GOLDEN / "prometheus_taskmanager.txt.gz").read_bytes()).split(b"\n")
    counts = [len(text(b"\n".join(whole[:count]))) for count in range(0, len(whole), 151)]
    assert counts == sorted(counts)
