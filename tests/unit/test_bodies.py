"""Unpacking bodies: whole, damaged, and those that would fill the memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from webapp.api.problems import ProblemError
from webapp.telemetry.bodies import unpack

PACK = {
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
    "": bytes,
    "identity": bytes,
    "GZIP": gzip.compress,
}
MIB = 1 << 20


@given(st.binary(max_size=5_000), st.sampled_from(sorted(PACK)))
def test_what_was_packed_is_unpacked(data: bytes, encoding: str) -> None:
    assert unpack(PACK[encoding](data), encoding) == data


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_several_members_are_one_body(encoding: str) -> None:
    parts = [bytes([number]) * 3_000 for number in range(50)]
    assert unpack(b"".join(map(PACK[encoding], parts)), encoding) == b"".join(parts)


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_cut_anywhere_or_followed_by_rubbish_is_refused(encoding: str) -> None:
    packed = PACK[encoding](bytes(range(256)) * 20)
    for length in range(1, len(packed)):
        with pytest.raises(ProblemError) as refused:
            unpack(packed[:length], encoding)
        assert (refused.value.status, refused.value.code) == (400, "damaged_body")
    with pytest.raises(ProblemError):
        unpack(packed + b"rubbish", encoding)


def _refusal(body: bytes, encoding: str) -> int:
    """The status of the refusal, 0 if the body is good."""
    try:
        unpack(body, encoding)
    except ProblemError as error:
        return error.status
    return 0


@given(st.binary(max_size=300), st.sampled_from(["gzip", "zstd"]))
def test_any_bytes_are_unpacked_or_refused(data: bytes, encoding: str) -> None:
    assert _refusal(data, encoding) in (0, 400)


@given(st.integers(0, 10_000), st.integers(1, 255), st.sampled_from(["gzip", "zstd"]))
def test_one_damaged_byte_is_survived(at: int, flip: int, encoding: str) -> None:
    packed = bytearray(PACK[encoding](bytes(range(256)) * 20))
    packed[at % len(packed)] ^= flip
    assert _refusal(bytes(packed), encoding) in (0, 400, 413)


def _bomb(encoding: str) -> bytes:
    if encoding == "zstd":
        return zstandard.compress(bytes(1 << 30), 1)
    packer = zlib.compressobj(9, wbits=31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(512)) + packer.flush()


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_refused_before_it_fills_the_memory(encoding: str, settings: Any) -> None:
    settings.WEIR_MAX_UNPACKED_BYTES = 8 * MIB
    bomb = _bomb(encoding)
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(ProblemError) as refused:
            unpack(bomb, encoding)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (refused.value.status, refused.value.code) == (413, "body_too_large")
    assert refused.value.retry_after_s
    assert peak < 60 * MIB


def test_many_tiny_members_cost_no_more_than_their_bytes() -> None:
    tiny = gzip.compress(b"")
    assert unpack(tiny * 20_000, "gzip") == b""


def test_another_encoding_is_refused() -> None:
    with pytest.raises(ProblemError) as refused:
        unpack(b"", "br")
    assert refused.value.status == 415
