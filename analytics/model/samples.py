"""Metric samples as columns: what decoders of metrics give, and what is copied into the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.model.diagnostics import Diagnostic
from analytics.model.metrics import MetricSample


class Kind(StrEnum):
    """How the numbers of a series are meant.

    A *counter* only grows, except when it begins anew; a *delta* says what was added since ``start_ns``; a
    *gauge* is a level; many senders do not say.
    """

    UNKNOWN = "unknown"
    GAUGE = "gauge"
    COUNTER = "counter"
    DELTA = "delta"


class Series(NamedTuple):
    """What a row of numbers is about. ``labels`` are sorted ``(name, value)`` pairs without the name."""

    name: str
    labels: tuple[tuple[str, str], ...]
    kind: Kind = Kind.UNKNOWN


class Numbering:
    """Series that a decoder numbers from 0 on, in the order in which it first meets them.

    It lives for many batches: whoever takes them can keep what is known of a series in an array, by its number.
    """

    def __init__(self) -> None:
        self.series: list[Series] = []


class Numbered(NamedTuple):
    """The numbers of a batch's series, one each."""

    numbering: Numbering
    numbers: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MetricBatch:
    """What one decoder call understood of one body: samples, one an index, in the order in which they came.

    ``position`` points into ``series``. Times are ns since the Unix epoch; ``start_ns`` is when a counter or
    delta began to count, 0 if nobody said. A sample that is ``stale`` says that its series ended: its value is
    NaN, all others are finite. ``rejected_count`` are samples that could not be used and why is in the
    diagnostics; ``histogram_count`` are native histograms among what was used. ``numbered`` is there if the decoder
    numbers its series.
    """

    series: tuple[Series, ...]
    position: NDArray[np.int32]
    at_ns: NDArray[np.int64]
    value: NDArray[np.float64]
    start_ns: NDArray[np.int64]
    stale: NDArray[np.bool_]
    rejected_count: int = 0
    histogram_count: int = 0
    diagnostics: tuple[Diagnostic, ...] = ()
    numbered: Numbered | None = None

    def __len__(self) -> int:
        return len(self.at_ns)

    def complaint(self) -> str:
        """What to tell the sender of what was rejected, in one line; "" if nothing was."""
        if not self.rejected_count:
            return ""
        return "; ".join(f"{item.code} ({item.count:,}): {item.example}" for item in self.diagnostics)

    def samples(self) -> list[MetricSample]:
        """The samples that are not stale, one by one: for few of them."""
        return [
            MetricSample(self.series[position].name, self.series[position].labels, at_ns, value)
            for position, at_ns, value, stale in zip(
                self.position.tolist(),
                self.at_ns.tolist(),
                self.value.tolist(),
                self.stale.tolist(),
                strict=True,
            )
            if not stale
        ]


Row = tuple[int, int, float, int, bool]
"""Position, time, value, start and whether it is stale."""


def batch_of(
    series: Sequence[Series],
    rows: Sequence[Row],
    rejected_count: int = 0,
    diagnostics: tuple[Diagnostic, ...] = (),
) -> MetricBatch:
    """Build a batch from rows."""
    columns: Sequence[Sequence[float]] = list(zip(*rows, strict=True)) if rows else [()] * 5
    return MetricBatch(
        tuple(series),
        np.array(columns[0], np.int32),
        np.array(columns[1], np.int64),
        np.array(columns[2], np.float64),
        np.array(columns[3], np.int64),
        np.array(columns[4], np.bool_),
        rejected_count,
        diagnostics=diagnostics,
    )
