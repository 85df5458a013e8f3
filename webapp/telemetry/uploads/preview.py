"""What was understood of a file, in a few numbers and its first rows, before anything of it is stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from analytics.model.activity import TYPE_COUNT, ActivityType
from analytics.model.trace import NONE, Int64, Records, TraceBatch

FIRST_ROWS = 12
FIRST_NAMES = 50
LONGEST_DAYS = 366
MOST_WINDOWS = 200_000
"""More windows than that of one file are more likely a wrong unit of time than a long trace."""

GOOD_WINDOWS = 20
"""As many windows a trace should at least have, so that one sees how its limiter changes."""

_MS_NS, _SECOND_NS, _DAY_NS = 1_000_000, 1_000_000_000, 86_400_000_000_000
_SHORT = (_SECOND_NS, 100 * _MS_NS, 10 * _MS_NS, _MS_NS)
_LONG = (_SECOND_NS, 10 * _SECOND_NS, 60 * _SECOND_NS, 600 * _SECOND_NS)


def of(batch: TraceBatch) -> dict[str, Any]:
    """The preview of a trace as JSON values; times are ns since 1970, None without records."""
    records = batch.records
    first_ns, last_ns = span_of(records)
    return {
        "records": len(records),
        "workers": len(batch.workers),
        "worker_names": [worker.name for worker in batch.workers[:FIRST_NAMES]],
        "operators": len(batch.operators),
        "operator_names": list(batch.operators[:FIRST_NAMES]),
        "metrics": len(batch.metrics),
        "annotations": len(batch.annotations),
        "epochs": len(batch.rates),
        "epochs_ns": [batch.rates[0][1].start_ns, batch.rates[-1][1].end_ns] if batch.rates else None,
        "from_ns": first_ns,
        "to_ns": last_ns,
        "window_ns": None if first_ns is None or last_ns is None else window_for(last_ns - first_ns),
        "types": _types(records),
        "rows": _rows(batch),
    }


def span_of(records: Records) -> tuple[int | None, int | None]:
    """The earliest and the latest time of any record."""
    if len(records) == 0:
        return None, None
    return (
        int(min(records.start_ns.min(), records.end_ns.min())),
        int(max(records.start_ns.max(), records.end_ns.max())),
    )


def window_for(length_ns: int) -> int:
    """A width of windows (ns) for a new job: a second, unless a trace of this length has too few or too many."""
    if length_ns < GOOD_WINDOWS * _SECOND_NS:
        return next((width for width in _SHORT if length_ns >= GOOD_WINDOWS * width), _MS_NS)
    return next((width for width in _LONG if length_ns <= MOST_WINDOWS * width), _LONG[-1])


def why_not_storable(preview: dict[str, Any], window_ns: int) -> str:
    """Why a trace cannot be analysed in windows of this width; "" if it can."""
    if preview["from_ns"] is None:
        from_ns, to_ns = preview.get("epochs_ns") or (0, 0)
        if not (preview["metrics"] or preview["annotations"] or to_ns):
            return "there is nothing in it that could be used"
        return _too_long(to_ns - from_ns)
    length_ns = preview["to_ns"] - preview["from_ns"]
    if why := _too_long(length_ns):
        return why
    count = length_ns // window_ns + 1
    if count > MOST_WINDOWS + 1:
        return (
            f"the job is analysed in windows of {window_ns / 1e9:g} s, and the file would fill {count:,} of them, "
            f"more than {MOST_WINDOWS:,}: store it as a job of its own"
        )
    return ""


def _too_long(length_ns: int) -> str:
    if length_ns <= LONGEST_DAYS * _DAY_NS:
        return ""
    return (
        f"its records lie {length_ns // _DAY_NS:,} days apart, more than {LONGEST_DAYS}: "
        "some of its times must be wrong"
    )


def _types(records: Records) -> list[dict[str, Any]]:
    """Count and summed length (ns) of every activity type, the most frequent first."""
    counts = np.bincount(records.type, minlength=TYPE_COUNT)
    lengths: Int64 = np.maximum(records.end_ns - records.start_ns, 0)
    sums = np.bincount(records.type, weights=lengths.astype(np.float64), minlength=TYPE_COUNT)
    return [
        {"type": ActivityType(code).label, "count": int(counts[code]), "time_ns": int(sums[code])}
        for code in np.argsort(-counts, kind="stable").tolist()
        if counts[code]
    ]


def _rows(batch: TraceBatch) -> list[dict[str, Any]]:
    """The first records by start."""
    first = batch.records.take(np.argsort(batch.records.start_ns, kind="stable")[:FIRST_ROWS])
    return [
        {
            "type": ActivityType(int(first.type[i])).label,
            "worker": batch.workers[first.worker[i]].name,
            "peer": None if first.peer[i] == NONE else batch.workers[first.peer[i]].name,
            "operator": None if first.operator[i] == NONE else batch.operators[first.operator[i]],
            "start_ns": int(first.start_ns[i]),
            "end_ns": int(first.end_ns[i]),
        }
        for i in range(len(first))
    ]
