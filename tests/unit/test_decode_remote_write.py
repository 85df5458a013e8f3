"""Prometheus remote write: what is kept, what is rejected with which reason, and where the limits are."""

import math
import struct

import numpy as np
import pytest

from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.remote_write import WRITE_LIMITS, decode_remote_write, unpack_snappy, write_version
from analytics.model.metrics import MetricSample
from analytics.model.samples import Kind, MetricBatch
from tests.support.remote_write import RequestV2, field, histogram, packed, series_v1, varint, whole

T0 = 1_795_251_855_053
NS = 1_000_000
STALE = struct.pack("<Q", 0x7FF0000000000002)


def v1(*series: bytes, limits: Limits = WRITE_LIMITS) -> MetricBatch:
    return decode_remote_write(packed(b"".join(series)), 1, limits)


def v2(request: RequestV2, limits: Limits = WRITE_LIMITS) -> MetricBatch:
    return decode_remote_write(packed(request.data()), 2, limits)


def codes(batch: MetricBatch) -> dict[str, int]:
    return {item.code: item.count for item in batch.diagnostics}


def test_samples_of_version_1_have_name_labels_time_and_value() -> None:
    batch = v1(
        series_v1({"__name__": "up", "job": "flink", "instance": "tm:1"}, [(1.0, T0), (0.0, T0 + 1)]),
        series_v1({"__name__": "lag"}, [(-2.5, T0)]),
    )
    assert batch.samples() == [
        MetricSample("up", (("instance", "tm:1"), ("job", "flink")), T0 * NS, 1.0),
        MetricSample("up", (("instance", "tm:1"), ("job", "flink")), (T0 + 1) * NS, 0.0),
        MetricSample("lag", (), T0 * NS, -2.5),
    ]
    assert {series.kind for series in batch.series} == {Kind.UNKNOWN}
    assert (batch.rejected_count, batch.diagnostics) == (0, ())


def test_a_series_that_came_before_is_read_as_the_first_time() -> None:
    odd = {"__name__": "up", "ends_like_a_sample": "\x12\x07\x10\u0080\u0080\u0080"}
    for labels in ({"__name__": "up", "job": "known"}, odd):
        for value, at_ms in ((1.0, T0), (2.0, T0 + 1), (0.0, T0 + 2), (3.0, 5)):
            sample = MetricSample("up", tuple(sorted(labels.items()))[1:], at_ms * NS, value)
            assert v1(series_v1(labels, [(value, at_ms)])).samples() == [sample]
        assert len(v1(series_v1(labels, [(1.0, T0)]), series_v1(labels, [(2.0, T0 + 1)])).series) == 1
    with pytest.raises(TooLargeError):
        v1(
            *(series_v1({"__name__": "up", "job": "known"}, [(1.0, T0)]) for _ in range(5)),
            limits=Limits(999, 4),
        )


def test_version_2_says_more_kinds_and_when_counting_began() -> None:
    request = RequestV2()
    request.add({"__name__": "records_total", "op": "map"}, [(7.0, T0)], kind=1, created_ms=T0 - 500)
    request.add({"__name__": "depth"}, [(3.0, T0)], kind=2)
    request.add({"__name__": "s", "quantile": "0.5"}, [(3.0, T0)], kind=5)
    request.add({"__name__": "s_sum"}, [(3.0, T0)], kind=5, created_ms=T0 + 1)
    batch = v2(request)
    assert [series.kind for series in batch.series] == [Kind.COUNTER, Kind.GAUGE, Kind.GAUGE, Kind.COUNTER]
    assert batch.start_ns.tolist() == [(T0 - 500) * NS, 0, 0, 0]
    assert [(item.name, item.labels) for item in batch.samples()] == [
        ("records_total", (("op", "map"),)), ("depth", ()), ("s", (("quantile", "0.5"),)), ("s_sum", ()),
    ]  # fmt: skip


def test_a_stale_marker_ends_a_series_and_is_no_number() -> None:
    batch = v1(series_v1({"__name__": "up"}, [(1.0, T0), (STALE, T0 + 5)]))  # type: ignore[list-item]
    assert batch.stale.tolist() == [False, True]
    assert math.isnan(batch.value[1])
    assert [item.value for item in batch.samples()] == [1.0]
    assert batch.diagnostics == ()


def test_other_values_that_are_not_finite_say_nothing() -> None:
    batch = v1(series_v1({"__name__": "q"}, [(math.nan, T0), (math.inf, T0), (4.0, T0)]))
    assert batch.value.tolist() == [4.0]
    assert (codes(batch), batch.rejected_count) == ({"not_finite": 2}, 0)


def test_samples_out_of_order_are_kept_as_they_came() -> None:
    times = [T0 + 5, T0, T0 + 9, T0 + 9]
    batch = v1(series_v1({"__name__": "a"}, [(float(at), at) for at in times]))
    assert (batch.at_ns // NS).tolist() == times


def test_labels_in_another_order_are_the_same_series() -> None:
    batch = v1(
        series_v1({"__name__": "a", "x": "1", "y": "2"}, [(1.0, T0)]),
        series_v1({"y": "2", "__name__": "a", "x": "1", "empty": ""}, [(2.0, T0 + 1)]),
    )
    assert (len(batch.series), batch.position.tolist()) == (1, [0, 0])


def test_times_in_every_length_are_read() -> None:
    times = [1, 127, 128, 2**21, 2**35 - 1, 2**35, 2**42 - 1, 2**42, 4_611_686_018_427]
    batch = v1(series_v1({"__name__": "a"}, [(1.5, at) for at in times] + [(0.0, at) for at in times]))
    assert (batch.at_ns // NS).tolist() == times * 2
    assert batch.value.tolist() == [1.5] * len(times) + [0.0] * len(times)


def test_samples_with_their_fields_in_another_order_are_read() -> None:
    turned = whole(2, T0) + varint(1 << 3 | 1) + struct.pack("<d", 2.5)
    with_start = varint(1 << 3 | 1) + struct.pack("<d", 3.5) + whole(2, T0) + whole(3, T0 - 7)
    name = field(1, field(1, "__name__") + field(2, "a"))
    batch = v1(field(1, name + field(2, turned) + field(2, with_start) + field(2, b"")))
    assert batch.value.tolist() == [2.5, 3.5]
    assert batch.start_ns.tolist() == [0, (T0 - 7) * NS]
    assert codes(batch) == {"time_out_of_range": 1}


def test_a_native_histogram_is_its_count_and_sum() -> None:
    told = {"__name__": "latency_s", "op": "map"}
    for batch in (
        v1(series_v1(told, [], [histogram(7, 2.5, T0), histogram(9, STALE, T0 + 1)])),
        v2(RequestV2().add(told, [], histograms=[histogram(7, 2.5, T0), histogram(9, STALE, T0 + 1)])),
    ):
        assert [(item.name, item.value, item.at_ns) for item in batch.samples()] == [
            ("latency_s_count", 7.0, T0 * NS), ("latency_s_sum", 2.5, T0 * NS),
        ]  # fmt: skip
        assert batch.stale.tolist() == [False, False, True, True]
        assert batch.histogram_count == 2
        assert codes(batch) == {"native_histogram": 2}
        assert {series.kind for series in batch.series} == {Kind.COUNTER}


def test_a_bad_series_rejects_its_own_samples_only() -> None:
    good = series_v1({"__name__": "a"}, [(1.0, T0)])
    two = [(1.0, T0), (2.0, T0 + 1)]
    many = {f"l{at}": "x" for at in range(65)}
    batch = v1(
        series_v1({"x": "1"}, two),
        series_v1({"x": "1"}, two),
        series_v1({"__name__": "a" * 201}, two),
        series_v1({"__name__": "a", "b" * 201: "c"}, two),
        series_v1({"__name__": "a", "b": "\0" + "c" * 1_000}, two),
        series_v1({"__name__": "a", **many}, two),
        field(1, field(1, field(1, "__name__") + field(2, "a")) * 2 + field(2, whole(2, T0))),
        field(1, field(1, field(1, b"\xff") + field(2, "a")) + field(2, whole(2, T0))),
        good,
    )
    assert [item.name for item in batch.samples()] == ["a"]
    assert codes(batch) == {
        "missing_name": 4, "bad_name": 2, "bad_label": 5, "too_many_labels": 2, "duplicate_label": 1,
    }  # fmt: skip
    assert batch.rejected_count == 14


def test_a_reference_to_no_symbol_rejects_the_series() -> None:
    request = RequestV2()
    request.add({}, [(1.0, T0)], refs=[0, 99])
    request.add({}, [(1.0, T0)], refs=[0])
    request.add({"__name__": "a"}, [(1.0, T0)])
    batch = v2(request)
    assert (len(batch), batch.rejected_count, codes(batch)) == (1, 2, {"unknown_symbol": 2})


def test_times_outside_of_the_model_are_rejected() -> None:
    batch = v1(series_v1({"__name__": "a"}, [(1.0, 0), (1.0, -5), (1.0, 2**62), (1.0, T0)]))
    assert (batch.at_ns // NS).tolist() == [T0]
    assert (codes(batch), batch.rejected_count) == ({"time_out_of_range": 3}, 3)


def test_a_request_without_samples_is_understood() -> None:
    assert len(v1()) == len(v2(RequestV2())) == 0


def test_the_content_type_tells_the_version() -> None:
    assert write_version("application/x-protobuf") == 1
    assert write_version("application/x-protobuf;proto=prometheus.WriteRequest") == 1
    assert write_version('application/x-protobuf; proto="io.prometheus.write.v2.Request"') == 2
    assert write_version("application/x-protobuf;proto=other") is None
    assert write_version("application/json") is None


def test_a_bomb_is_refused_by_the_length_it_declares() -> None:
    with pytest.raises(TooLargeError, match="4,294,967,295 bytes"):
        decode_remote_write(b"\xff\xff\xff\xff\x0f" + bytes(20), 1)
    ten_mib = packed(bytes(10 << 20))
    assert len(ten_mib) < 600_000
    with pytest.raises(TooLargeError, match="max-bytes"):
        unpack_snappy(ten_mib, Limits(10 << 20 - 1, 1))


def test_a_bomb_that_lies_about_its_length_is_damaged() -> None:
    ten_mib = packed(bytes(10 << 20))
    liar = varint(1_000) + ten_mib[len(varint(10 << 20)) :]
    with pytest.raises(UnreadableFileError, match="damaged snappy block"):
        unpack_snappy(liar, WRITE_LIMITS)


def test_series_and_samples_are_counted_before_they_are_read() -> None:
    limits = Limits(1 << 20, 100)
    ok = v1(series_v1({"__name__": "a"}, [(1.0, T0)] * 100), limits=limits)
    assert len(ok) == 100
    with pytest.raises(TooLargeError, match="100 records"):
        v1(series_v1({"__name__": "a"}, [(1.0, T0)] * 101), limits=limits)
    with pytest.raises(TooLargeError, match="100 records"):
        v1(field(1, b"") * 101, limits=limits)
    with pytest.raises(TooLargeError, match="100 records"):
        decode_remote_write(packed(field(5, b"") * 101), 2, limits)


def test_what_is_no_request_gives_one_clear_line() -> None:
    for body in (b"", b"plain text", b"\x1f\x8b\x08", packed(b"plain text"), packed(b"\x0a\xff")):
        for version in (1, 2):
            with pytest.raises(UnreadableFileError) as told:
                decode_remote_write(body, version)
            assert "\n" not in str(told.value)
    with pytest.raises(UnreadableFileError, match="no UTF-8"):
        decode_remote_write(packed(field(4, b"\xff")), 2)


def test_columns_have_the_types_of_the_store() -> None:
    batch = v1(series_v1({"__name__": "a"}, [(1.0, T0)]))
    kinds = [
        column.dtype for column in (batch.position, batch.at_ns, batch.value, batch.start_ns, batch.stale)
    ]
    assert kinds == [np.int32, np.int64, np.float64, np.int64, np.bool_]
