"""Prometheus remote write, versions 1 and 2: a body in snappy's block format to metric samples.

A series that cannot be stored rejects its samples, the others stay good. Native histograms become two series,
``_count`` and ``_sum``; their buckets are not kept. A stale marker is a sample that is stale. Samples keep the
order in which they came, whatever their times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from cramjam import DecompressionError, snappy
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import Oddities
from analytics.decode.json_fields import NS_PER_MS
from analytics.decode.known import Known
from analytics.decode.limits import Budget, Limits, TooLargeError, UnreadableFileError
from analytics.decode.remote_write_known import KnownSeries, LatestSeries
from analytics.decode.remote_write_messages import (
    Histogram,
    Request,
    RequestCount,
    SeriesV1,
    WriteRequest,
)
from analytics.decode.remote_write_messages import Label as LabelMessage
from analytics.decode.remote_write_samples import is_stale, sample_columns, tails
from analytics.decode.series import MAX_LABELS, Label, RefusedSeriesError, checked_label, series_of_checked
from analytics.model.samples import Kind, MetricBatch, Numbered, Series

WRITE_LIMITS = Limits(max_bytes=32 << 20, max_records=1_000_000)
"""For one request: bytes after decompression, and series or samples (whichever are more)."""

_NAME = "__name__"
_KINDS = {1: Kind.COUNTER, 2: Kind.GAUGE, 3: Kind.COUNTER, 4: Kind.GAUGE}
"""By metadata's type: counters, gauges, histograms, gauge histograms."""
_SUMMARY = 5
_SUMMARY_KINDS = (Kind.COUNTER, Kind.GAUGE)
"""Of a summary: its sum and count, its quantiles."""
_KNOWN: Known[object, Series] = Known(16 << 20)
"""Series by their labels as they came: senders send the same ones again and again."""

_BY_LABELS = LatestSeries(16 << 20)
"""Series of version 1 by the bytes of all their labels."""

_VERSIONS = {"prometheus.WriteRequest": 1, "io.prometheus.write.v2.Request": 2}


def write_version(content_type: str) -> int | None:
    """The version of remote write that a Content-Type announces: 1 unless it says otherwise, None if unknown."""
    media, *parameters = (part.strip() for part in content_type.split(";"))
    if media.lower() != "application/x-protobuf":
        return None
    told = [
        value.strip('" ') for key, _, value in (item.partition("=") for item in parameters) if key == "proto"
    ]
    return _VERSIONS.get(told[0]) if told else 1


def decode_remote_write(body: bytes, version: int, limits: Limits = WRITE_LIMITS) -> MetricBatch:
    """The samples of a request.

    Parameters
    ----------
    body
        As it came: protobuf in snappy's block format.
    version
        1 or 2, see :func:`write_version`.
    limits
        For the decompressed bytes, whose declared number is checked before anything is decompressed, and for the
        number of series and of samples.

    Returns
    -------
    MetricBatch
        Samples that were rejected are counted under ``missing_name``, ``bad_name``, ``bad_label``,
        ``duplicate_label``, ``too_many_labels``, ``unknown_symbol`` and ``time_out_of_range``. Left out without
        being rejected: values that are not finite (``not_finite``). ``native_histogram`` counts those reduced.

    Raises
    ------
    UnreadableFileError
        If the body is damaged or something else, ``TooLargeError`` if it is over the limits.
    """
    data = unpack_snappy(body, limits)
    try:
        return _decode_v1(data, limits) if version == 1 else _decode_v2(data, limits)
    except DecodeError as error:
        raise UnreadableFileError(f"no remote write request: {error}") from error


def unpack_snappy(body: bytes, limits: Limits) -> bytes:
    """The content of a body in snappy's block format.

    Raises
    ------
    UnreadableFileError
        If it is damaged; ``TooLargeError`` if it declares more bytes than the limit, before any is allocated.
    """
    try:
        declared = snappy.decompress_raw_len(body)
    except DecompressionError as error:
        raise UnreadableFileError(f"no snappy block: {error}") from error
    if declared > limits.max_bytes:
        raise TooLargeError(
            f"declares {declared:,} bytes, more than {limits.max_bytes:,}, the limit (max-bytes)"
        )
    try:
        return bytes(snappy.decompress_raw(body))
    except DecompressionError as error:
        raise UnreadableFileError(f"damaged snappy block: {error}") from error


class _LabelsV1(dict[Any, Label]):
    """Labels by their bytes, each read once."""

    def __missing__(self, encoded: bytes) -> Label:
        try:
            label = LabelMessage.FromString(encoded)
        except DecodeError as error:
            raise RefusedSeriesError("bad_label", "a label is damaged or no UTF-8") from error
        self[encoded] = checked_label(label.name, label.value)
        return self[encoded]


class _LabelsV2(dict[Any, Label]):
    """Labels by the positions of name and value in the table of symbols, each looked up once."""

    def __init__(self, symbols: Sequence[str]) -> None:
        super().__init__()
        self.symbols = symbols

    def __missing__(self, refs: tuple[int, int]) -> Label:
        if max(refs) >= len(self.symbols):
            raise RefusedSeriesError("unknown_symbol", f"labels_refs point to no symbol: {max(refs)}")
        self[refs] = checked_label(self.symbols[refs[0]], self.symbols[refs[1]])
        return self[refs]


def _decode_v1(data: bytes, limits: Limits) -> MetricBatch:
    encoded_series = list(WriteRequest.FromString(data).timeseries)
    Budget(limits).take_records(len(encoded_series))
    labels = _LabelsV1()

    def series_of(encoded: tuple[bytes, ...], metric_type: int, suffix: str) -> Series:
        key = (suffix, encoded)
        if (found := _KNOWN.get(key)) is not None:
            return found
        made = _series([labels[item] for item in encoded], metric_type, suffix)
        return _KNOWN.keep(key, made, sum(map(len, encoded)))

    known = _BY_LABELS.known()
    last = tails(encoded_series)
    numbers = known.numbers(encoded_series, last.size)
    columns = _Columns(series_of, known.number, MAX_LABELS + 1, Budget(limits))
    for at in np.flatnonzero(numbers < 0).tolist():
        item, size = encoded_series[at], int(last.size[at])
        series = SeriesV1.FromString(item)
        columns.begin(at)
        columns.add(series.labels, series, 0, 0)
        if size:
            _keep(known, item[:-size], series.labels)
    single = np.flatnonzero(numbers >= 0)
    columns.budget.take_records(len(single))
    first = _Samples(single, numbers[single], last.at_ms[single], last.value[single])
    return _numbered(columns.build(first), known)


def _keep(known: KnownSeries, head: bytes, labels: Sequence[bytes]) -> None:
    """Remember the series of these bytes, if they are its labels and nothing else.

    A message is one field after the other, so whatever follows such a head later is what follows its labels.
    """
    series = _KNOWN.get(("", tuple(labels)))
    try:
        alone = SeriesV1.FromString(head)
    except DecodeError:
        return
    if series is not None and alone.labels == labels and not alone.samples and not alone.histograms:
        known.keep(head, known.number(series))


def _numbered(batch: MetricBatch, known: KnownSeries) -> MetricBatch:
    """The batch with positions instead of numbers, and its series."""
    size = int(batch.position.max(initial=-1)) + 1
    is_used = np.zeros(size, np.bool_)
    is_used[batch.position] = True
    used = np.flatnonzero(is_used)
    place = np.empty(size, np.int32)
    place[used] = np.arange(len(used))
    series = tuple([known.series[number] for number in used.tolist()])
    return replace(batch, series=series, position=place[batch.position], numbered=Numbered(known, used))


def _decode_v2(data: bytes, limits: Limits) -> MetricBatch:
    Budget(limits).take_records(len(RequestCount.FromString(data).timeseries))
    request = Request.FromString(data)
    try:
        labels = _LabelsV2([symbol.decode() for symbol in request.symbols])
    except UnicodeDecodeError as error:
        raise UnreadableFileError("no remote write request: a symbol is no UTF-8") from error

    def series_of(refs: tuple[int, ...], metric_type: int, suffix: str) -> Series:
        if len(refs) % 2:
            raise RefusedSeriesError("unknown_symbol", "labels_refs are no pairs")
        told = [labels[pair] for pair in zip(refs[::2], refs[1::2], strict=True)]
        key = (suffix, metric_type, tuple(told))
        if (found := _KNOWN.get(key)) is not None:
            return found
        size = sum(len(name) + len(value) for name, value in told)
        return _KNOWN.keep(key, _series(told, metric_type, suffix), size)

    positions: dict[Series, int] = {}
    columns = _Columns(
        series_of,
        lambda made: positions.setdefault(made, len(positions)),
        2 * (MAX_LABELS + 1),
        Budget(limits),
    )
    for series in request.timeseries:
        columns.add(series.labels_refs, series, series.metadata.type, series.created_timestamp)
    return replace(columns.build(), series=tuple(positions))


@dataclass(frozen=True, eq=False)
class _Samples:
    """Samples that were read already; ``item`` says in which series of the request each came."""

    item: NDArray[np.int64]
    position: NDArray[np.int64]
    at_ms: NDArray[np.int64]
    value: NDArray[np.float64]


@dataclass
class _Columns:
    """Collects the encoded samples of all series, to be read at once.

    ``series`` makes a series of its labels, ``place`` gives it its position.
    """

    series: Callable[[Any, int, str], Series]
    place: Callable[[Series], int]
    most: int
    budget: Budget
    oddities: Oddities = field(default_factory=Oddities)
    rejected_count: int = 0
    histogram_count: int = 0
    item: int = 0
    seen: dict[object, int | RefusedSeriesError] = field(default_factory=dict)
    raw: list[bytes] = field(default_factory=list)
    runs: list[tuple[int, int, int, int]] = field(default_factory=list)
    histograms: list[tuple[int, int, float, int]] = field(default_factory=list)

    def begin(self, item: int) -> None:
        """Say which series of the request is added next."""
        self.item = item

    def add(self, encoded: Any, series: Any, metric_type: int, created_ms: int) -> None:
        """Take in a series with its samples and histograms."""
        samples, histograms = series.samples, series.histograms
        count = len(samples) + len(histograms)
        self.budget.take_records(count)
        if len(encoded) > self.most:
            self._reject("too_many_labels", f"a series has more than {MAX_LABELS} labels", count)
            return
        key = tuple(encoded)
        if samples:
            position = self._position(key, metric_type, "", len(samples))
            if position is not None:
                self.raw.extend(samples)
                self.runs.append((position, len(samples), created_ms, self.item))
        for item in histograms:
            self._add_histogram(Histogram.FromString(item), key, created_ms)

    def _position(self, encoded: object, metric_type: int, suffix: str, count: int) -> int | None:
        key = (suffix, encoded) if suffix else encoded
        found = self.seen.get(key)
        if found is None:
            try:
                series = self.series(encoded, metric_type, suffix)
                found = self.place(series)  # labels in another order are the same series
            except RefusedSeriesError as error:
                found = error
            self.seen[key] = found
        if isinstance(found, int):
            return found
        self._reject(found.code, str(found), count)
        return None

    def _add_histogram(self, histogram: Any, encoded: tuple[object, ...], created_ms: int) -> None:
        count = self._position(encoded, 3, "_count", 1)
        total = self._position(encoded, 3, "_sum", 0)
        if count is None or total is None:
            return
        self.histogram_count += 1
        self.oddities.add("native_histogram", "count and sum are kept, buckets are not")
        stale = is_stale(np.array([histogram.sum]))[0]
        counted = histogram.sum if stale else float(histogram.count_int or histogram.count_float)
        self.histograms.append((count, histogram.timestamp, counted, created_ms))
        self.histograms.append((total, histogram.timestamp, histogram.sum, created_ms))

    def _reject(self, code: str, example: str, count: int) -> None:
        if count:
            self.oddities.add(code, example, count)
            self.rejected_count += count

    def build(self, others: _Samples | None = None) -> MetricBatch:
        """Everything as columns, with ``others`` in their places; the caller adds the series."""
        at_ms, value, start_ms = sample_columns(self.raw)
        runs = np.array(self.runs, np.int64).reshape(-1, 4)
        position, created_ms, item = (np.repeat(runs[:, column], runs[:, 1]) for column in (0, 2, 3))
        start_ms = np.where(start_ms > 0, start_ms, created_ms)
        if others is not None and not len(item):
            position, at_ms, value = others.position, others.at_ms, others.value
            start_ms = np.zeros(len(others.item), np.int64)
        elif others is not None:
            order = np.argsort(np.concatenate([item, others.item]), kind="stable")
            position = np.concatenate([position, others.position])[order]
            at_ms = np.concatenate([at_ms, others.at_ms])[order]
            value = np.concatenate([value, others.value])[order]
            start_ms = np.concatenate([start_ms, np.zeros(len(others.item), np.int64)])[order]
        if self.histograms:
            positions, times, values, starts = zip(*self.histograms, strict=True)
            position = np.concatenate([position, np.array(positions, np.int64)])
            at_ms = np.concatenate([at_ms, np.array(times, np.int64)])
            value = np.concatenate([value, np.array(values, np.float64)])
            start_ms = np.concatenate([start_ms, np.array(starts, np.int64)])
        return self._checked(position, at_ms, value, start_ms)

    def _checked(
        self,
        position: NDArray[np.int64],
        at_ms: NDArray[np.int64],
        value: NDArray[np.float64],
        start_ms: NDArray[np.int64],
    ) -> MetricBatch:
        stale = is_stale(value)
        timely = (at_ms > 0) & (at_ms <= LATEST_NS // NS_PER_MS)
        says = np.isfinite(value) | stale
        if not timely.all():
            bad = at_ms[~timely]
            self._reject("time_out_of_range", f"a sample's time is {bad[0]} ms", len(bad))
        if not says[timely].all():
            odd = value[timely & ~says]
            self.oddities.add("not_finite", f"a value is {odd[0]}", len(odd))
        keep = timely & says
        start_ms = np.where((start_ms > 0) & (start_ms <= at_ms), start_ms, 0)
        return MetricBatch(
            series=(),
            position=position[keep].astype(np.int32),
            at_ns=at_ms[keep] * NS_PER_MS,
            value=np.where(stale, np.nan, value)[keep],
            start_ns=start_ms[keep] * NS_PER_MS,
            stale=stale[keep],
            rejected_count=self.rejected_count,
            histogram_count=self.histogram_count,
            diagnostics=self.oddities.diagnostics(),
        )


def _series(labels: list[Label], metric_type: int, suffix: str) -> Series:
    names = [label for label in labels if label[0] == _NAME]
    if len(names) > 1:
        raise RefusedSeriesError("duplicate_label", f"{names[0][1]:.60} has two names")
    for label in names:
        labels.remove(label)
    name = names[0][1] if names else ""
    kind = _SUMMARY_KINDS["quantile" in dict(labels)] if metric_type == _SUMMARY else _KINDS.get(metric_type)
    return series_of_checked(name and name + suffix, labels, kind or Kind.UNKNOWN)
