"""Critical participation as JSON and as a table. Here numbers become names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analytics.model.activity import ActivityType
from analytics.model.diagnostics import Diagnostic
from analytics.model.results import Float64, WindowEdges, WindowStatus, WindowSummary
from analytics.model.trace import NONE

TABLE_ROWS = 4


@dataclass(frozen=True, slots=True)
class Names:
    """Names of workers and operators by number."""

    workers: tuple[str, ...]
    operators: tuple[str, ...]

    def in_words(self, sentence: str) -> str:
        """The sentence with every ``worker 3`` by its name."""
        return re.sub(r"\b([Ww]orker) (\d+)\b", self._named, sentence)

    def _named(self, match: re.Match[str]) -> str:
        number = int(match[2])
        if number >= len(self.workers):
            return match[0]
        name = self.workers[number]
        return name if name.lower().startswith("worker") else f"{match[1]} {name}"


def as_json(summary: WindowSummary, names: Names) -> dict[str, Any]:
    """One window. ``log10_paths`` is null if there are no paths to count.

    Window ``index`` goes from ``origin + index · width`` to the next; ``start_ns`` and ``end_ns`` are what of it
    lies within the trace.

    ``operator`` is the critical participation of the operator's processing by each worker that ran it (SnailTrail
    section 6); ``operator_total`` that of all its activities and messages. Under ``conventional``, ``operator``
    and ``operator_total`` are plain durations by the window's length.
    """
    counted = summary.status is WindowStatus.OK or summary.cp_total > 0
    return {
        "index": summary.index,
        "start_ns": summary.start_ns,
        "end_ns": summary.end_ns,
        "status": summary.status.value,
        "reason": names.in_words(summary.reason),
        "log10_paths": _finite(summary.log10_paths) if counted else None,
        "cp_total": _finite(summary.cp_total),
        "cp": _groups(
            summary,
            names,
            summary.activity_cp,
            summary.worker_cp,
            summary.operator_cp,
            summary.channel_cp,
            "cp",
        ),
        "conventional": _groups(
            summary,
            names,
            summary.activity_conventional,
            summary.worker_conventional,
            summary.operator_conventional,
            summary.channel_conventional,
            "conventional",
        ),
    }


def edges_json(edges: WindowEdges, names: Names) -> list[dict[str, Any]]:
    """Every edge of a window; ``on_path`` marks its representative critical path."""
    return [
        {
            "src": [names.workers[edges.src[i]], int(edges.src_ns[i])],
            "dst": [names.workers[edges.dst[i]], int(edges.dst_ns[i])],
            "type": ActivityType(edges.type[i]).label,
            "operator": None if edges.operator[i] == NONE else names.operators[edges.operator[i]],
            "cp": _finite(edges.cp[i]),
            "paths_share": _finite(edges.share[i]),
            "on_path": bool(edges.on_path[i]),
        }
        for i in range(len(edges.src))
    ]


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics as objects."""
    return [{"code": item.code, "count": item.count, "example": item.example} for item in diagnostics]


def as_table(summaries: Sequence[WindowSummary], names: Names, diagnostics: Iterable[Diagnostic]) -> str:
    """For people: what limits each window most, beside the conventional profile."""
    lines = []
    for summary in summaries:
        start_s, length_ms = summary.start_ns / 1e9, (summary.end_ns - summary.start_ns) / 1e6
        lines.append(f"\n{start_s:.3f} s + {length_ms:,.1f} ms   {summary.status.value}")
        if summary.reason:
            lines.append(f"  {names.in_words(summary.reason)}")
        lines += _table_rows(as_json(summary, names))
    lines += [f"\n{item.code} × {item.count}: {item.example}" for item in diagnostics]
    return "\n".join(lines).lstrip("\n") + "\n" if lines else "No activities.\n"


def _table_rows(window: dict[str, Any]) -> list[str]:
    rows = []
    for group in ("activity", "worker", "operator"):
        cp, conventional = window["cp"][group], window["conventional"][group]
        largest = sorted(cp, key=lambda name: (-cp[name], name))[:TABLE_ROWS]
        rows += [
            f"  {group:<9} {cp[name]:7.1%} critical {conventional.get(name, 0):7.1%} busy  {name}"
            for name in largest
            if cp[name] > 0
        ]
    channels = sorted(window["cp"]["channel"], key=lambda item: -item["cp"])[:TABLE_ROWS]
    return rows + [
        f"  {'channel':<9} {item['cp']:7.1%} critical               {item['src']} → {item['dst']}"
        for item in channels
        if item["cp"] > 0
    ]


def _groups(
    summary: WindowSummary,
    names: Names,
    activity: Float64,
    worker: Float64,
    operator: Float64,
    channel: Float64,
    value_name: str,
) -> dict[str, Any]:
    processing, total = _operators(summary, operator, names, per_worker=value_name == "cp")
    return {
        "activity": {kind.label: _finite(activity[kind]) for kind in ActivityType},
        "worker": {
            names.workers[i]: _finite(value) for i, value in zip(summary.worker_ids, worker, strict=True)
        },
        "operator": processing,
        "operator_total": total,
        "channel": _channels(summary, channel, names, value_name),
    }


def _operators(
    summary: WindowSummary, values: Float64, names: Names, *, per_worker: bool
) -> tuple[dict[str, float], dict[str, float]]:
    processing: dict[str, float] = {}
    total: dict[str, float] = {}
    for position in np.argsort(summary.operator_ids, kind="stable"):
        operator = summary.operator_ids[position]
        if operator == NONE:
            continue
        name, value = names.operators[operator], _finite(values[position])
        total[name] = total.get(name, 0.0) + value
        if summary.operator_types[position] == ActivityType.PROCESSING:
            workers = max(int(summary.operator_workers[position]), 1) if per_worker else 1
            processing[name] = value / workers
    return processing, total


def _channels(summary: WindowSummary, values: Float64, names: Names, value_name: str) -> list[dict[str, Any]]:
    sums: dict[tuple[str, str], float] = {}
    for src, dst, value in zip(summary.channel_src, summary.channel_dst, values, strict=True):
        ends = names.workers[src], names.workers[dst]
        sums[ends] = sums.get(ends, 0.0) + _finite(value)
    return [{"src": src, "dst": dst, value_name: sums[src, dst]} for src, dst in sorted(sums)]


def _finite(value: float) -> float:
    """A plain float; JSON has no NaN."""
    return float(value) if math.isfinite(value) else 0.0
