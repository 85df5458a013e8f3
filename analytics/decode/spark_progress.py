"""Structured Streaming's own report on a micro-batch, as metrics and an annotation."""

from __future__ import annotations

import math
from datetime import datetime

from analytics.decode.batch import BatchBuilder
from analytics.decode.json_fields import LATEST_MS, NS_PER_MS, Event, items, mapping, text, whole
from analytics.model.metrics import Annotation, MetricSample

MAX_OPERATORS = 32

_STATE_METRICS = {
    "state_rows": "numRowsTotal",
    "state_rows_updated": "numRowsUpdated",
    "state_rows_removed": "numRowsRemoved",
    "state_rows_dropped_by_watermark": "numRowsDroppedByWatermark",
    "state_memory_bytes": "memoryUsedBytes",
    "state_commit_ms": "commitTimeMs",
}


def add_progress(event: Event, batch: BatchBuilder, where: str) -> None:
    """Read a ``QueryProgressEvent`` into the batch.

    Metrics are stamped with the batch's end and labelled with the query's name, or its id if it has none:
    ``input_rows``, ``input_rows_per_s``, ``processed_rows_per_s``, ``output_rows``, ``batch_duration_ms``,
    ``batch_phase_ms`` (label ``phase``), ``watermark_lag_ms``, and for each stateful operator (label
    ``operator``) the ``state_*`` metrics. The annotation ``micro_batch`` spans the batch.
    """
    progress = mapping(event, "progress")
    query = (text(progress, "name") or text(progress, "id"))[:200]
    start_ms, number = _timestamp_ms(progress), whole(progress, "batchId")
    if not query or start_ms is None or number is None:
        batch.oddities.add("unreadable_progress", f"{where}: needs a query, a time and a batch number")
        return
    phases = mapping(progress, "durationMs")
    duration_ms = whole(progress, "batchDuration") or whole(phases, "triggerExecution") or 0
    start_ns, end_ns = start_ms * NS_PER_MS, (start_ms + max(duration_ms, 0)) * NS_PER_MS
    rows = sum(whole(source, "numInputRows") or 0 for source in items(progress, "sources"))
    values = _totals(progress, start_ms) | {("batch_duration_ms", "", ""): duration_ms}
    values |= {("batch_phase_ms", "phase", phase): phases[phase] for phase in sorted(phases)}
    values |= _state(progress)
    for (name, label, of), value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            labels = [("query", query), *([(label, of)] if label else [])]
            batch.metrics.append(MetricSample(name, tuple(sorted(labels)), end_ns, float(value)))
    label = f"batch {number:,} · {rows:,} rows"
    batch.annotations.append(Annotation("micro_batch", f"{query}/{number}", label, start_ns, end_ns))


_Values = dict[tuple[str, str, str], object]


def _totals(progress: Event, start_ms: int) -> _Values:
    sources = items(progress, "sources")
    output = whole(mapping(progress, "sink"), "numOutputRows")
    watermark_ms = _iso_ms(text(mapping(progress, "eventTime"), "watermark"))
    return {
        ("input_rows", "", ""): _sum(sources, "numInputRows"),
        ("input_rows_per_s", "", ""): _sum(sources, "inputRowsPerSecond"),
        ("processed_rows_per_s", "", ""): _sum(sources, "processedRowsPerSecond"),
        # Spark says -1 when the sink cannot tell.
        ("output_rows", "", ""): output if output is not None and output >= 0 else None,
        # The watermark starts at 1970, before any row was seen.
        ("watermark_lag_ms", "", ""): start_ms - watermark_ms if watermark_ms else None,
    }


def _state(progress: Event) -> _Values:
    values: _Values = {}
    seen: dict[str, int] = {}
    for operator in items(progress, "stateOperators")[:MAX_OPERATORS]:
        name = text(operator, "operatorName")[:100] or "state"
        seen[name] = seen.get(name, 0) + 1
        label = name if seen[name] == 1 else f"{name} #{seen[name]}"
        values |= {(metric, "operator", label): operator.get(key) for metric, key in _STATE_METRICS.items()}
    return values


def _sum(parts: list[Event], field: str) -> float | None:
    """Sum over the parts that report it; None if none does."""
    found = [value for part in parts if isinstance(value := part.get(field), int | float)]
    return float(sum(found)) if found else None


def _timestamp_ms(progress: Event) -> int | None:
    return _iso_ms(text(progress, "timestamp"))


def _iso_ms(stamp: str) -> int | None:
    """Milliseconds since 1970, None if it is no time after it."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return None
    value = round(moment.timestamp() * 1000)
    return value if 0 < value <= LATEST_MS else None
