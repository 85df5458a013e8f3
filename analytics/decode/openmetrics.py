"""What a scraped endpoint exposes, as Prometheus text or OpenMetrics, as samples at the time of the scrape.

The parsers are those of the official Python client. They refuse the whole text for one bad line, as Prometheus
does. Of a native histogram the count and the sum are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_fd_to_metric_families as openmetrics_families
from prometheus_client.parser import text_fd_to_metric_families as text_families
from prometheus_client.samples import Sample

from analytics.decode.limits import Budget, Limits, UnreadableFileError
from analytics.decode.series import SampleBuilder, time_is_plausible
from analytics.model.samples import Kind, MetricBatch

SCRAPE_LIMITS = Limits(max_bytes=16 << 20, max_records=200_000)
"""For one scrape: bytes after decompression, and samples."""

MAX_LINE_CHARS = 1 << 16
"""The parsers take time that grows with the square of a line's length."""

_INSTANCE = "instance"
_OF_TYPE = {
    "counter": Kind.COUNTER,
    "gauge": Kind.GAUGE,
    "histogram": Kind.COUNTER,
    "gaugehistogram": Kind.GAUGE,
    "info": Kind.GAUGE,
    "stateset": Kind.GAUGE,
}


def decode_exposition(
    body: bytes, content_type: str, scraped_at_ns: int, instance: str, limits: Limits = SCRAPE_LIMITS
) -> MetricBatch:
    """The samples of one scrape.

    Parameters
    ----------
    body, content_type
        The endpoint's answer, already decompressed; ``application/openmetrics-text`` is OpenMetrics, all else
        Prometheus text.
    scraped_at_ns
        The time of samples that have none of their own, which is nearly all.
    instance
        Which endpoint it was: the label ``instance`` of samples without one, as endpoints of a job expose the same
        series.

    Returns
    -------
    MetricBatch
        Samples are rejected, with the reason counted, for the same reasons as in the other decoders of metrics;
        values that are not finite are left out and counted under ``not_finite``.

    Raises
    ------
    UnreadableFileError
        If a line cannot be read (the error has its number), or it is no text; ``TooLargeError`` if it is over the
        limits.
    """
    budget = Budget(limits)
    budget.take_bytes(len(body))
    try:
        lines = _Lines(body.decode(), strict=_is_openmetrics(content_type))
    except UnicodeDecodeError as error:
        raise UnreadableFileError("no exposition: it is no UTF-8") from error
    parse = openmetrics_families if lines.strict else text_families
    samples = SampleBuilder()
    for family in _families(parse, lines):
        for sample in family.samples:
            budget.take_records()
            _add(samples, family, sample, lines, scraped_at_ns, instance)
    return samples.build()


class _Lines:
    """The lines as the parsers want them; remembers where it is, and counters that are not called ``_total``."""

    def __init__(self, text: str, *, strict: bool) -> None:
        self.text = text
        self.strict = strict
        self.number = 0
        self.plain_counters: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        for number, line in enumerate(self.text.split("\n"), start=1):
            self.number = number
            if len(line) > MAX_LINE_CHARS:
                raise ValueError(f"it is longer than {MAX_LINE_CHARS:,} characters")
            words = [] if self.strict else line.split(None, 3)
            if words[:2] == ["#", "TYPE"] and words[3:] == ["counter"] and not words[2].endswith("_total"):
                self.plain_counters.add(words[2])
            if line:
                yield line + "\n"


def _families(parse: Callable[[Any], Iterable[Metric]], lines: _Lines) -> Iterator[Metric]:
    try:
        yield from parse(iter(lines))
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError) as error:
        # the parsers answer a bad line with any of these, mostly the first
        why = " ".join(str(error).split())[:200] or "not understood"
        raise UnreadableFileError(f"line {lines.number}: {why}") from error


def _add(
    samples: SampleBuilder, family: Metric, sample: Sample, lines: _Lines, scraped_at_ns: int, instance: str
) -> None:
    at_ns = scraped_at_ns if sample.timestamp is None else _milliseconds_ns(float(sample.timestamp))
    if not time_is_plausible(at_ns):
        samples.reject("time_out_of_range", f"{sample.name:.60} is at {at_ns} ns")
        return
    labels = {_INSTANCE: instance, **(sample.labels or {})}
    values = {_name(family, sample, lines): sample.value}
    if sample.native_histogram is not None:
        samples.oddities.add("native_histogram", "count and sum are kept, buckets are not")
        histogram = sample.native_histogram
        values = {f"{sample.name}_count": histogram.count_value, f"{sample.name}_sum": histogram.sum_value}
    for name, value in values.items():
        position = samples.series(name, labels.items(), _kind(family, sample))
        if position is None:
            samples.rejected_count += 1
            return
        samples.add(position, at_ns, _number(value))


def _milliseconds_ns(at_s: float) -> int:
    """A time to the millisecond; 0, which is none, for what is no time."""
    return round(at_s * 1_000) * 1_000_000 if math.isfinite(at_s) else 0


def _number(value: float) -> float:
    """The value, which the parser may give as a whole number too large for a float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _name(family: Metric, sample: Sample, lines: _Lines) -> str:
    """The name as it was exposed: the parser of Prometheus text adds ``_total`` to counters."""
    return family.name if family.name in lines.plain_counters else sample.name


def _kind(family: Metric, sample: Sample) -> Kind:
    if family.type == "summary":
        return Kind.GAUGE if "quantile" in sample.labels else Kind.COUNTER
    if sample.name.endswith("_created"):
        return Kind.GAUGE
    return _OF_TYPE.get(family.type, Kind.UNKNOWN)


def _is_openmetrics(content_type: str) -> bool:
    return content_type.split(";")[0].strip().lower() == "application/openmetrics-text"
