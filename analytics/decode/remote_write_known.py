"""Series of remote write by the bytes of their labels, so that one that came before costs one look into a dict.

Prometheus sends every sample with all labels of its series, most often one sample a series, and its fields always
in the same order: first the labels, then the sample. What comes before the sample are the bytes that tell the
series.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from analytics.decode.remote_write_samples import WITH_VALUE
from analytics.model.samples import Numbering, Series


class KnownSeries(Numbering):
    """Numbered series, found by themselves or by the bytes of their labels. Threads may share them."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lock = Lock()
        self._by_series: dict[Series, int] = {}
        self._by_labels: dict[bytes, int] = {}

    @property
    def full(self) -> bool:
        """Whether it is time to begin anew."""
        return self._bytes > self._max_bytes

    def number(self, series: Series) -> int:
        """The number of this series, given now if it has none."""
        if (found := self._by_series.get(series)) is not None:
            return found
        with self._lock:
            found = self._by_series.get(series)
            if found is None:
                found = len(self.series)
                self.series.append(series)
                self._by_series[series] = found
                self._bytes += len(series.name) + sum(len(key) + len(value) for key, value in series.labels)
        return found

    def keep(self, labels: bytes, number: int) -> None:
        """Remember that these bytes are the labels of a series and nothing else."""
        self._by_labels[labels] = number
        self._bytes += len(labels)

    def numbers(self, encoded: Sequence[bytes], tails: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of series that end in tails of so many bytes; -1 if unknown or without tail."""
        get = self._by_labels.get
        if (tails == WITH_VALUE).all():  # a constant saves a quarter of the time
            found = [get(item[:-WITH_VALUE], -1) for item in encoded]
        else:
            found = [
                get(item[:-tail], -1) if tail else -1
                for item, tail in zip(encoded, tails.tolist(), strict=True)
            ]
        return np.array(found, np.int64)


class LatestSeries:
    """The series that are known now: once their names are larger than ``max_bytes``, a request begins anew."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._known = KnownSeries(max_bytes)

    def known(self) -> KnownSeries:
        """For one request. Those of earlier requests stay right, whoever still uses them."""
        if self._known.full:
            self._known = KnownSeries(self._max_bytes)
        return self._known
