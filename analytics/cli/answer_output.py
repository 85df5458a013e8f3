"""Answers as JSON and as lines for people. Here numbers become names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from analytics.cli.critical_path_output import Names, diagnostics_json
from analytics.model.activity import ActivityType
from analytics.model.answers import Answer, Dimension, TargetKind, to_json
from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import NONE

_WORKER_FIELDS = frozenset({"worker", "peer", "src", "dst"})


def worker_name(names: Names, number: int) -> str | None:
    """A worker's name; None for no worker."""
    return None if number == NONE else names.workers[number]


def operator_name(names: Names, number: int) -> str | None:
    """An operator's name; None for no operator."""
    return None if number == NONE else names.operators[number]


def name_of(names: Names, kind: TargetKind | Dimension, number: int, peer: int = NONE) -> str:
    """What a target or a compared group is called."""
    if kind.value == "activity":
        return ActivityType(number).label
    if kind.value == "operator":
        return names.operators[number]
    sender = names.workers[number]
    return sender if peer == NONE else f"{sender} → {names.workers[peer]}"


def answer_json(answer: Answer, names: Names) -> dict[str, Any]:
    """An answer with names in place of numbers; an infinite factor is the word ``infinite``."""
    named: dict[str, Any] = _named(to_json(answer), names)
    return named


def document(payload: dict[str, Any], diagnostics: Iterable[Diagnostic] | None = None) -> str:
    """One JSON document, with the diagnostics if there are any to tell."""
    if diagnostics is not None:
        payload = {**payload, "diagnostics": diagnostics_json(diagnostics)}
    return orjson.dumps(payload, option=orjson.OPT_APPEND_NEWLINE).decode()


def _named(value: Any, names: Names) -> Any:
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"kind", "id"}:
        return {"kind": value["kind"], "name": name_of(names, TargetKind(value["kind"]), value["id"])}
    return {key: _named_field(key, item, names) for key, item in value.items()}


def _named_field(key: str, value: Any, names: Names) -> Any:
    if key in _WORKER_FIELDS:
        return worker_name(names, value)
    if key == "operator":
        return operator_name(names, value)
    if key == "type":
        return ActivityType(value).label
    return _named(value, names)


def duration_words(duration_ns: float) -> str:
    """A duration in the unit that suits it: ``850 ns``, ``1.50 ms``, ``2.00 s``."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if abs(duration_ns) >= size:
            return f"{duration_ns / size:,.2f} {unit}"
    return f"{duration_ns:.0f} ns"


def factor_words(factor: float) -> str:
    """``2×``, ``1.5×``, ``∞×``."""
    return "∞×" if factor == float("inf") else f"{factor:g}×"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with aligned columns: the last to the left, as it is a name, the others to the right."""
    lines = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    return [
        "  ".join([*(cell.rjust(width) for cell, width in zip(line[:-1], widths, strict=False)), line[-1]])
        for line in lines
    ]


def diagnostic_lines(diagnostics: Iterable[Diagnostic]) -> list[str]:
    """What was odd about the input, for people."""
    return [f"{item.code} × {item.count}: {item.example}" for item in diagnostics]
