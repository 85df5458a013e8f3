"""Remote write: a series that is known by its bytes is read as protobuf reads it, whatever comes with it."""

from __future__ import annotations

import struct

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from analytics.decode import remote_write
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.remote_write import decode_remote_write
from analytics.decode.remote_write_known import LatestSeries
from analytics.decode.remote_write_messages import Label, Sample, SeriesV1, WriteRequest
from analytics.model.samples import MetricBatch, Numbered
from tests.support.remote_write import field, histogram, labels_v1, packed, series_v1, varint, whole

T0 = 1_795_251_855_053
LIMITS = Limits(1 << 20, 10_000)
STALE = struct.pack("<Q", 0x7FF0000000000002)
LOOKS_LIKE_A_SAMPLE = "\x12\x07\x10€éa"

Row = tuple[str, tuple[tuple[str, str], ...], bytes, int]


def double(value: bytes) -> bytes:
    return varint(1 << 3 | 1) + value


values = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: struct.pack("<d", number)),
    st.just(STALE),
    st.just(bytes(8)),
)
times = st.one_of(st.integers(T0 - 9, T0 + 9), st.integers(1, 2**42))
usual = st.tuples(values, times).map(
    lambda told: (double(told[0]) if any(told[0]) else b"") + whole(2, told[1])
)
odd = st.tuples(values, times, st.integers(0, 2**42)).map(
    lambda told: whole(2, told[1]) + double(told[0]) + whole(3, told[2])
)
samples = st.lists(st.one_of(usual, usual, odd), max_size=3)
label_sets = st.fixed_dictionaries(
    {"__name__": st.sampled_from("abc")},
    optional={"job": st.sampled_from("xy"), "end": st.sampled_from(["", "é", LOOKS_LIKE_A_SAMPLE])},
)


@st.composite
def one_series(draw: st.DrawFn) -> bytes:
    """Its labels in any order, its samples, now and then something else before, between or after them."""
    labels = dict(draw(st.permutations(list(draw(label_sets).items()))))
    numbers = [field(2, item) for item in draw(samples)]
    parts = [labels_v1(labels), *numbers]
    if draw(st.integers(0, 3)) == 0:
        other = field(3, double(struct.pack("<d", 1.5)))  # an exemplar, which is not read
        parts.insert(draw(st.integers(0, len(parts))), other)
    if draw(st.integers(0, 7)) == 0:
        parts.reverse()
    return field(1, b"".join(parts))


requests = st.lists(one_series(), max_size=6)


def as_protobuf_reads(data: bytes) -> list[Row]:
    """Name, labels, the bits of the value and the time of every sample, one after the other."""
    rows = []
    for encoded in WriteRequest.FromString(data).timeseries:
        series = SeriesV1.FromString(encoded)
        labels = {}
        for item in series.labels:
            label = Label.FromString(item)
            labels[label.name] = label.value
        name = labels.pop("__name__")
        told = tuple(sorted((key, value) for key, value in labels.items() if value))
        for item in series.samples:
            sample = Sample.FromString(item)
            rows.append((name, told, struct.pack("<d", sample.value), sample.timestamp * 10**6))
    return rows


def as_decoded(batch: MetricBatch) -> list[Row]:
    return [
        (
            batch.series[position].name,
            batch.series[position].labels,
            STALE if stale else struct.pack("<d", value),
            at_ns,
        )
        for position, at_ns, value, stale in zip(
            batch.position.tolist(),
            batch.at_ns.tolist(),
            batch.value.tolist(),
            batch.stale.tolist(),
            strict=True,
        )
    ]


def decoded(data: bytes) -> MetricBatch:
    return decode_remote_write(packed(data), 1, LIMITS)


def forget() -> None:
    remote_write._BY_LABELS = LatestSeries(1 << 20)


@settings(max_examples=300, deadline=None)
@given(requests, requests)
@example(
    [series_v1({"__name__": "a", "end": LOOKS_LIKE_A_SAMPLE}, [(1.0, T0)])],
    [series_v1({"__name__": "a", "end": LOOKS_LIKE_A_SAMPLE}, [])],
)
@example([field(1, labels_v1({"__name__": "a"}))], [series_v1({"__name__": "a"}, [(0.0, T0)])])
def test_known_series_are_read_as_protobuf_reads_them(first: list[bytes], second: list[bytes]) -> None:
    forget()
    for bodies in (first, [*first, *second], [*second, *first], second):
        data = b"".join(bodies)
        batch = decoded(data)
        assert as_decoded(batch) == as_protobuf_reads(data)
        assert (batch.rejected_count, batch.diagnostics) == (0, ())
        assert isinstance(batch.numbered, Numbered)
        numbering, numbers = batch.numbered
        assert tuple(numbering.series[number] for number in numbers) == batch.series
        assert len(set(batch.series)) == len(batch.series)


@settings(max_examples=200, deadline=None)
@given(requests, st.integers(0, 10_000))
def test_a_known_request_cut_at_any_byte_is_answered_as_an_unknown_one(known: list[bytes], at: int) -> None:
    data = b"".join(known)
    cut = data[: at % (len(data) + 1)]
    forget()
    fresh = outcome(cut)
    decoded(data)
    assert outcome(cut) == fresh
    assert isinstance(fresh, list) or fresh.startswith("no remote write request: ")


def outcome(data: bytes) -> str | list[Row]:
    try:
        return as_decoded(decoded(data))
    except UnreadableFileError as error:
        return str(error)


def test_known_and_other_samples_count_towards_one_limit() -> None:
    forget()
    usual_one = series_v1({"__name__": "a"}, [(1.0, T0)])
    many = series_v1({"__name__": "b"}, [(1.0, T0)] * 3)
    by_protobuf = series_v1({"__name__": "h"}, [(2.0, T0)], [histogram(3, 1.0, T0)])
    request = packed(usual_one * 2 + many + by_protobuf)
    for _ in range(2):
        assert len(decode_remote_write(request, 1, Limits(1 << 20, 7))) == 8  # a histogram is two samples
        with pytest.raises(TooLargeError, match="6 records"):
            decode_remote_write(request, 1, Limits(1 << 20, 6))


def test_series_are_forgotten_once_their_names_are_too_large_and_who_still_has_them_is_right() -> None:
    remote_write._BY_LABELS = LatestSeries(200)
    bodies = [series_v1({"__name__": "a", "x": str(at) * 30}, [(1.0, T0)]) for at in range(9)]
    batches = [decoded(body) for body in bodies * 2]
    numberings = {id(batch.numbered.numbering) for batch in batches if batch.numbered is not None}
    assert 1 < len(numberings) < len(batches)
    for body, batch in zip(bodies * 2, batches, strict=True):
        assert as_decoded(batch) == as_protobuf_reads(body)
        assert batch.numbered is not None
        assert batch.numbered.numbering.series[batch.numbered.numbers[0]] == batch.series[0]
    forget()
