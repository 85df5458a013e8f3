"""Remote write: what was written is read; cut or damaged at any byte, it never fails."""

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.decode import remote_write
from analytics.decode.known import Known
from analytics.decode.limits import Limits, UnreadableFileError
from analytics.decode.remote_write import decode_remote_write
from analytics.decode.remote_write_known import LatestSeries
from analytics.model.samples import MetricBatch
from tests.support.remote_write import RequestV2, histogram, packed, series_v1

T0 = 1_795_251_855_053
LIMITS = Limits(1 << 20, 10_000)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
labels = st.dictionaries(words.filter(lambda word: word != "__name__"), words, max_size=5)
samples = st.lists(
    st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 2**42)), max_size=5
)
requests = st.lists(st.tuples(words, labels, samples), max_size=5)
SMALL_V1 = series_v1({"__name__": "a", "x": "1"}, [(1.5, T0), (0.0, 9)]) + series_v1(
    {"__name__": "h"}, [], [histogram(3, 1.0, T0)]
)
SMALL_V2 = (
    RequestV2()
    .add({"__name__": "a", "x": "1"}, [(1.5, T0), (0.0, 9)], kind=1, created_ms=5)
    .add({"__name__": "h"}, [], histograms=[histogram(3, 1.0, T0)])
    .data()
)


def told(batch: MetricBatch) -> list[tuple[str, tuple[tuple[str, str], ...], float, int]]:
    return [(item.name, item.labels, item.value, item.at_ns) for item in batch.samples()]


def survived(body: bytes, version: int) -> None:
    try:
        batch = decode_remote_write(body, version, LIMITS)
    except UnreadableFileError as error:
        why = str(error)
    else:
        why = None
    if why is not None:
        assert why
        assert "\n" not in why
        return
    for item in batch.samples():
        assert math.isfinite(item.value)
        assert item.at_ns > 0
        item.name.encode()
    assert all(series.name for series in batch.series)
    assert all(item.count > 0 and item.example for item in batch.diagnostics)


@settings(max_examples=100, deadline=None)
@given(requests)
def test_what_is_written_in_either_version_is_read(
    request: list[tuple[str, dict[str, str], list[tuple[float, int]]]],
) -> None:
    first = b"".join(series_v1({"__name__": name, **of}, numbers) for name, of, numbers in request)
    second = RequestV2()
    for name, of, numbers in request:
        second.add({"__name__": name, **of}, numbers)
    expected = [
        (name, tuple(sorted(of.items())), value, at_ms * 10**6)
        for name, of, numbers in request
        for value, at_ms in numbers
    ]
    assert told(decode_remote_write(packed(first), 1)) == expected
    assert told(decode_remote_write(packed(second.data()), 2)) == expected


@pytest.mark.parametrize(("data", "version"), [(SMALL_V1, 1), (SMALL_V2, 2)])
def test_a_request_cut_at_any_byte_is_understood_or_refused(data: bytes, version: int) -> None:
    for length in range(len(data)):
        survived(packed(data[:length]), version)
    body = packed(data)
    for length in range(len(body)):
        with pytest.raises(UnreadableFileError):
            decode_remote_write(body[:length], version, LIMITS)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255), st.booleans())
def test_a_damaged_byte_never_fails(at: int, change: int, outside: bool) -> None:
    for data, version in ((SMALL_V1, 1), (SMALL_V2, 2)):
        damaged = bytearray(packed(data) if outside else data)
        damaged[at % len(damaged)] ^= change
        survived(bytes(damaged) if outside else packed(bytes(damaged)), version)
        survived(bytes(damaged) if outside else packed(bytes(damaged)), 3 - version)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_survived(body: bytes) -> None:
    for version in (1, 2):
        survived(body, version)
        survived(packed(body), version)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**64 - 1))
def test_every_pattern_of_a_value_is_kept_stale_or_left_out(bits: int) -> None:
    raw = struct.pack("<Q", bits)
    batch = decode_remote_write(packed(series_v1({"__name__": "a"}, [(raw, T0)])), 1)  # type: ignore[list-item]
    value = struct.unpack("<d", raw)[0]
    if bits == 0x7FF0000000000002:
        assert batch.stale.tolist() == [True]
    elif math.isfinite(value):
        assert batch.value.tolist() == [value]
    else:
        assert len(batch) == 0


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 255), st.floats(allow_nan=False))
def test_what_was_seen_before_changes_no_answer(place: int, byte: int, value: float) -> None:
    """Series are remembered by their bytes: a damaged one must not be taken for one that is known."""
    known = series_v1({"__name__": "a", "x": "1"}, [(1.5, T0)]) + series_v1({"__name__": "b"}, [(0.0, T0)])
    body = bytearray(series_v1({"__name__": "a", "x": "1"}, [(value, T0 + 1)]) + known)
    body[place % len(body)] = byte
    _forget()
    fresh = outcome(bytes(body))
    decode_remote_write(packed(known), 1, LIMITS)
    assert outcome(bytes(body)) == fresh


def _forget() -> None:
    remote_write._BY_LABELS, remote_write._KNOWN = LatestSeries(1 << 20), Known(1 << 20)


def outcome(data: bytes) -> object:
    try:
        batch = decode_remote_write(packed(data), 1, LIMITS)
    except UnreadableFileError as error:
        return str(error)
    return told(batch), batch.stale.tolist(), batch.rejected_count, batch.diagnostics
