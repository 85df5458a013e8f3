"""Which series may be stored, and collecting samples of them: shared by all decoders of metrics."""

from __future__ import annotations

import math
from collections.abc import Iterable

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import Oddities
from analytics.model.samples import Kind, MetricBatch, Row, Series, batch_of

MAX_LABELS = 64
MAX_NAME_CHARS = 200
MAX_VALUE_CHARS = 1_000

Label = tuple[str, str]


class RefusedSeriesError(ValueError):
    """This series cannot be stored; ``code`` says which kind of mistake it is."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def series_of(name: str, pairs: Iterable[Label], kind: Kind = Kind.UNKNOWN) -> Series:
    """The series of this name and these labels, in any order; a label without value is none.

    Raises
    ------
    RefusedSeriesError
        ``missing_name``, ``bad_name``, ``too_many_labels``, ``bad_label`` or ``duplicate_label``.
    """
    return series_of_checked(name, [checked_label(key, value) for key, value in pairs], kind)


def checked_label(key: str, value: str) -> Label:
    """A label that can be stored.

    Raises
    ------
    RefusedSeriesError
        ``bad_label`` if it is too long, has no name, or a NUL.
    """
    if not key or len(key) > MAX_NAME_CHARS or len(value) > MAX_VALUE_CHARS or "\0" in key or "\0" in value:
        limits = f"a name has 1 to {MAX_NAME_CHARS} characters, a value up to {MAX_VALUE_CHARS}, no NUL"
        raise RefusedSeriesError("bad_label", f"label {key!r:.60}: {limits}")
    return key, value


def series_of_checked(name: str, pairs: Iterable[Label], kind: Kind) -> Series:
    """A series from labels that were checked one by one before, because many series share them.

    Raises
    ------
    RefusedSeriesError
        See :func:`series_of`.
    """
    if not name:
        raise RefusedSeriesError("missing_name", "a series has no name")
    if len(name) > MAX_NAME_CHARS or "\0" in name:
        raise RefusedSeriesError("bad_name", f"{name!r:.60}: over {MAX_NAME_CHARS} characters, or a NUL")
    labels = [pair for pair in pairs if pair[1]]
    if len(labels) > MAX_LABELS:
        raise RefusedSeriesError("too_many_labels", f"{name:.60} has {len(labels)} labels, over {MAX_LABELS}")
    if len(dict(labels)) < len(labels):
        raise RefusedSeriesError("duplicate_label", f"{name:.60} has a label twice")
    labels.sort()
    return Series(name, tuple(labels), kind)


class SampleBuilder:
    """Collects samples; those that cannot be stored are counted with the reason."""

    def __init__(self) -> None:
        self.oddities = Oddities()
        self.rejected_count = 0
        self._positions: dict[Series, int] = {}
        self._rows: list[Row] = []

    def series(self, name: str, pairs: Iterable[Label], kind: Kind) -> int | None:
        """The position of this series; None, counted as an oddity, if it cannot be stored."""
        try:
            series = series_of(name, pairs, kind)
        except RefusedSeriesError as error:
            self.oddities.add(error.code, str(error))
            return None
        return self._positions.setdefault(series, len(self._positions))

    def reject(self, code: str, example: str) -> None:
        """Count a sample that cannot be used."""
        self.oddities.add(code, example)
        self.rejected_count += 1

    def add(self, position: int, at_ns: int, value: float, start_ns: int = 0, *, stale: bool = False) -> None:
        """Keep a sample. One that is neither finite nor stale says nothing and is left out."""
        if not stale and not math.isfinite(value):
            self.oddities.add("not_finite", f"a value is {value}")
            return
        kept = 0 < start_ns <= at_ns
        self._rows.append((position, at_ns, math.nan if stale else value, start_ns if kept else 0, stale))

    def build(self) -> MetricBatch:
        """Everything collected, as one batch."""
        return batch_of(tuple(self._positions), self._rows, self.rejected_count, self.oddities.diagnostics())


def time_is_plausible(at_ns: int) -> bool:
    """Whether a time is after 1970 and fits the model."""
    return 0 < at_ns <= LATEST_NS
