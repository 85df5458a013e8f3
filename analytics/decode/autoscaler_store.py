"""What the Flink autoscaler keeps in its JDBC tables: events, scaling history and the metrics it collected.

``t_flink_autoscaler_event_handler`` has a row an event; one that repeats within an interval is *updated in place*,
so the table says when an event was first and last seen, and is no record of what happened in between.
``t_flink_autoscaler_state_store`` has a JSON document a job and type, replaced with every decision.

Source: apache/flink-kubernetes-operator, ``flink-autoscaler-plugin-jdbc`` (``postgres_schema.sql``,
``JdbcAutoScalerStateStore``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import Oddities, clean_name
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.trace import Records, TraceBatch

SCALING_HISTORY, COLLECTED_METRICS = "scalingHistory", "collectedMetrics"
READ_STATES = (SCALING_HISTORY, COLLECTED_METRICS)
"""State types that are read. The others say nothing that these and Flink itself do not."""

EVENT, RESCALE = "autoscaler", "autoscaler-scaling"
MAX_LABEL_CHARS = 500


@dataclass(frozen=True, slots=True)
class Event:
    """A row of events; times in ns since 1970."""

    id: int
    first_ns: int
    last_ns: int
    reason: str
    message: str
    count: int


def decode_autoscaler(
    states: Iterable[tuple[str, str]], events: Iterable[Event], names: Mapping[str, str]
) -> TraceBatch:
    """What the tables say of one job.

    Parameters
    ----------
    states
        Type and value of each of its states; types not in ``READ_STATES`` are passed over.
    names
        Operator names by vertex id, as far as they are known.

    Returns
    -------
    TraceBatch
        Annotations of kind ``autoscaler`` (events) and ``autoscaler-scaling`` (a vertex got another parallelism),
        and samples named ``autoscaler_<metric>`` with the label ``operator`` if they are of one. What cannot be
        used is counted under ``bad_state``, ``bad_time`` and ``not_finite``.
    """
    odd = Oddities()
    annotations = [_event(item) for item in events]
    metrics: list[MetricSample] = []
    for kind, value in states:
        if kind not in READ_STATES:
            continue
        try:
            document = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            odd.add("bad_state", f"{kind}: {error}")
            continue
        if kind == SCALING_HISTORY:
            annotations += _history(document, names, odd)
        else:
            metrics += _collected(document, names, odd)
    return TraceBatch(
        Records.of([]), metrics=tuple(metrics), annotations=tuple(annotations), diagnostics=odd.diagnostics()
    )


def _event(item: Event) -> Annotation:
    times = f" ({item.count} times)" if item.count > 1 else ""
    label = _text(f"{item.reason}{times}: {' '.join(item.message.split())}")
    return Annotation(EVENT, f"event {item.id}", label, item.first_ns, max(item.first_ns, item.last_ns))


def _history(document: Any, names: Mapping[str, str], odd: Oddities) -> Iterator[Annotation]:
    for vertex, at_text, summary in _nested(document, SCALING_HISTORY, odd):
        at_ns = _time_ns(at_text)
        before, after = (
            summary.get(field) if isinstance(summary, dict) else None
            for field in ("currentParallelism", "newParallelism")
        )
        if at_ns is None:
            odd.add("bad_time", f"{SCALING_HISTORY}: {at_text!r:.60}")
        elif not (isinstance(before, int) and isinstance(after, int)):
            odd.add("bad_state", f"{SCALING_HISTORY}: a summary of {vertex:.60} has no parallelism")
        else:
            label = _text(f"{names.get(vertex, vertex)}: {before} → {after}")
            yield Annotation(RESCALE, _text(f"{vertex} {at_text}")[:200], label, at_ns, at_ns)


def _collected(document: Any, names: Mapping[str, str], odd: Oddities) -> Iterator[MetricSample]:
    for at_text, part, found in _nested(document, COLLECTED_METRICS, odd):
        at_ns = _time_ns(at_text)
        if at_ns is None:
            odd.add("bad_time", f"{COLLECTED_METRICS}: {at_text!r:.60}")
        elif part == "globalMetrics":
            yield from _samples({"": found}, at_ns, names, odd)
        elif part == "vertexMetrics":
            yield from _samples(found, at_ns, names, odd)


def _samples(found: Any, at_ns: int, names: Mapping[str, str], odd: Oddities) -> Iterator[MetricSample]:
    for vertex, metric, told in _nested(found, COLLECTED_METRICS, odd):
        value = _number(told)
        if value is None:
            odd.add("not_finite", f"{metric:.60} is {told!r:.60}")
            continue
        labels = (("operator", _text(names.get(vertex, vertex))),) if vertex else ()
        yield MetricSample(f"autoscaler_{_text(metric).lower()}"[:200], labels, at_ns, value)


def _nested(document: Any, what: str, odd: Oddities) -> Iterator[tuple[str, str, Any]]:
    """Outer key, inner key and value of an object of objects."""
    if not isinstance(document, dict):
        odd.add("bad_state", f"{what} is no object")
        return
    for outer, inner in document.items():
        if not isinstance(inner, dict):
            odd.add("bad_state", f"{what}: {outer:.60} is no object")
            continue
        for key, value in inner.items():
            yield outer, key, value


def _number(told: Any) -> float | None:
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None  # NaN and the infinities are strings
    value = float(told)
    return value if math.isfinite(value) else None


def _time_ns(text: str) -> int | None:
    """Of ``2026-11-21T17:00:00.123456789Z``."""
    try:
        at = datetime.fromisoformat(text[:40])
    except ValueError:
        return None
    if at.tzinfo is None:
        return None
    at_ns = int(at.timestamp()) * 10**9 + at.microsecond * 1000
    return at_ns if 0 < at_ns <= LATEST_NS else None


def _text(text: str) -> str:
    return (clean_name(text) or "?")[:MAX_LABEL_CHARS]
