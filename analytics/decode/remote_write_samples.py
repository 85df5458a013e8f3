"""Samples of remote write from their bytes to columns.

Nearly every sample is a double and a time of six varint bytes, or the time alone when the value is zero; those are
read all at once. Others, in any form the wire format allows, go through protobuf.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from analytics.decode.remote_write_messages import Sample

STALE = np.uint64(0x7FF0000000000002)
"""The NaN with which Prometheus says that a series ended."""

_VALUE_TAG, _TIME_TAG = 0x09, 0x10
_TIME_BYTES = 6
_WITH_VALUE, _WITHOUT_VALUE = 10 + _TIME_BYTES, 1 + _TIME_BYTES
_HEAD_WITH_VALUE = bytes([2 << 3 | 2, _WITH_VALUE, _VALUE_TAG])
_HEAD_WITHOUT_VALUE = bytes([2 << 3 | 2, _WITHOUT_VALUE, _TIME_TAG])


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
    for length, time_at in ((_WITH_VALUE, _WITH_VALUE - _TIME_BYTES), (_WITHOUT_VALUE, 1)):
        where = np.flatnonzero(lengths == length)
        if not len(where):
            continue
        cells = np.frombuffer(b"".join([raw[at] for at in where.tolist()]), np.uint8).reshape(-1, length)
        good = _is_usual(cells, time_at)
        where, cells = where[good], cells[good]
        at_ms[where] = _varints(cells[:, time_at:])
        if length == _WITH_VALUE:
            value[where] = np.ascontiguousarray(cells[:, 1:9]).view("<f8")[:, 0]
        done[where] = True
    for at in np.flatnonzero(~done).tolist():
        sample = Sample.FromString(raw[at])
        at_ms[at], value[at], start_ms[at] = sample.timestamp, sample.value, sample.start_timestamp
    return at_ms, value, start_ms


def usual_end(series: bytes) -> int:
    """How long the encoded sample is in which a series of version 1 ends, if it is a usual one; 0 if it is not."""
    if series[-_WITH_VALUE - 2 : -_WITH_VALUE + 1] == _HEAD_WITH_VALUE:
        return _WITH_VALUE
    return _WITHOUT_VALUE if series[-_WITHOUT_VALUE - 2 : -_WITHOUT_VALUE + 1] == _HEAD_WITHOUT_VALUE else 0


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
