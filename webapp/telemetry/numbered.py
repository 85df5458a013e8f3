"""What is kept of the series that a decoder numbers, by number: those of a delivery are found all at once."""

from __future__ import annotations

from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np

from analytics.model.samples import Numbered, Numbering
from analytics.model.trace import Int64


class Kept:
    """So many whole numbers of every series of a numbering, for as long as that lives. Threads may share them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lock = Lock()
        self._rows: WeakKeyDictionary[Numbering, Int64] = WeakKeyDictionary()

    def get(self, of: Numbered) -> Int64:
        """What is kept of these series: a row for each number, -1 where it is nothing."""
        with self._lock:
            return self._with_room(of.numbering)[:, of.numbers]

    def keep(self, of: Numbered, *values: int | Int64) -> None:
        """Keep these of the series."""
        with self._lock:
            rows = self._with_room(of.numbering)
            for row, value in zip(rows, values, strict=True):
                row[of.numbers] = value

    def _with_room(self, numbering: Numbering) -> Int64:
        rows = self._rows.get(numbering)
        size = len(numbering.series)
        if rows is None or rows.shape[1] < size:
            more = np.full((self._count, 2 * size), -1, np.int64)
            if rows is not None:
                more[:, : rows.shape[1]] = rows
            rows = self._rows[numbering] = more
        return rows
