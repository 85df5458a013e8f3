"""Samples of remote write from their bytes to columns.

Nearly every sample is a double and a time of six varint bytes, or the time alone when the value is zero; those are
read all at once. Others, in any form the wire format allows, go through protobuf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.decode.remote_write_messages import Sample

STALE = np.uint64(0x7FF0000000000002)
"""The NaN with which Prometheus says that a series ended."""

_VALUE_TAG, _TIME_TAG = 0x09, 0x10
_TIME_BYTES = 6
_VALUED, _BARE = 10 + _TIME_BYTES, 1 + _TIME_BYTES
"""Bytes of a usual sample with its value, and of one whose value is zero."""

WITH_VALUE, WITHOUT_VALUE = 2 + _VALUED, 2 + _BARE
"""The same with tag and length before them, as a series of version 1 ends."""

_WORDS = 3
_LAST, _USUAL_LAST = np.uint64(0x8080_8080_8080_FF00), np.uint64(0x0080_8080_8080_1000)
"""Of the last eight bytes: the tag of the time, five bytes that go on and one that does not."""


@dataclass(frozen=True, eq=False)
class Tails:
    """The samples in which encoded series of version 1 end: how many bytes each takes (0 if it is no usual one)."""

    size: NDArray[np.int64]
    at_ms: NDArray[np.int64]
    value: NDArray[np.float64]


def tails(encoded: Sequence[bytes]) -> Tails:
    """What each encoded series ends in, read all at once; whether a label only looks so is for others to tell."""
    joined = np.frombuffer(b"".join([bytes(8 * _WORDS), *encoded]), np.uint8)
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    windows = np.lib.stride_tricks.sliding_window_view(joined, 8 * _WORDS)
    early, middle, last = windows[np.cumsum(lengths)].view("<u8").T
    timely = (last & _LAST) == _USUAL_LAST
    # Little-endian words: the bytes 12 10 09 stand 18 from the end, or 12 07 stand 9 from the end.
    valued = timely & (lengths >= WITH_VALUE) & (early >> 48 == 0x1012) & (middle & 0xFF == _VALUE_TAG)
    zero = timely & (lengths >= WITHOUT_VALUE) & (middle >> 56 == 0x12) & (last & 0xFF == _BARE)
    at_ms = np.zeros(len(encoded), np.uint64)
    for group in range(_TIME_BYTES):
        at_ms |= last >> (16 + group) & (0x7F << 7 * group)
    return Tails(
        size=np.where(valued, WITH_VALUE, np.where(zero, WITHOUT_VALUE, 0)),
        at_ms=at_ms.view(np.int64),
        value=np.where(valued, middle >> 8 | last << 56, 0).view(np.float64),
    )


def sample_columns(
    raw: Sequence[bytes],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Times in ms, values (stale markers with their bits), and starts in ms (0 if not told) of encoded samples.

    Raises
    ------
    DecodeError
        If one is damaged.
    """
    at_ms = np.zeros(len(raw), np.int64)
    value = np.zeros(len(raw), np.float64)
    start_ms = np.zeros(len(raw), np.int64)
    lengths = np.fromiter(map(len, raw), np.int64, len(raw))
    done = np.zeros(len(raw), np.bool_)
    for length, time_at in ((_VALUED, _VALUED - _TIME_BYTES), (_BARE, 1)):
        where = np.flatnonzero(lengths == length)
        if not len(where):
            continue
        cells = np.frombuffer(b"".join([raw[at] for at in where.tolist()]), np.uint8).reshape(-1, length)
        good = _is_usual(cells, time_at)
        where, cells = where[good], cells[good]
        at_ms[where] = _varints(cells[:, time_at:])
        if length == _VALUED:
            value[where] = np.ascontiguousarray(cells[:, 1:9]).view("<f8")[:, 0]
        done[where] = True
    for at in np.flatnonzero(~done).tolist():
        sample = Sample.FromString(raw[at])
        at_ms[at], value[at], start_ms[at] = sample.timestamp, sample.value, sample.start_timestamp
    return at_ms, value, start_ms


def is_stale(value: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which values are stale markers; other NaN are not."""
    return np.asarray(value.view(np.uint64) == STALE)


def _is_usual(cells: NDArray[np.uint8], time_at: int) -> NDArray[np.bool_]:
    """Whether the tags are where they should be and the time is one varint to the end."""
    usual = (cells[:, time_at - 1] == _TIME_TAG) & (cells[:, -1] < 0x80)
    usual &= (cells[:, time_at:-1] >= 0x80).all(axis=1)
    if time_at > 1:
        usual &= cells[:, 0] == _VALUE_TAG
    return np.asarray(usual)


def _varints(cells: NDArray[np.uint8]) -> NDArray[np.int64]:
    value = np.zeros(len(cells), np.int64)
    for at in range(cells.shape[1]):
        value |= (cells[:, at].astype(np.int64) & 0x7F) << (7 * at)
    return value
