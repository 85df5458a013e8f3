"""The files of DS2's own controller: topology, rates and source rates, as comma-separated text.

A line that begins with ``#`` is a comment, blank lines are skipped, fields are trimmed. Offline, a file
holds many epochs: the k-th row of an instance, by timestamp, is its epoch k, as instances stamp their rows
at times of their own. Online, a directory holds a file an instance and epoch,
``name-<instance>-<epoch>.<ext>``: the name says the epoch.

Source: strymon-system/ds2, ``controller/src/dataflow/parse.rs``.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from analytics.decode.limits import UnreadableFileError
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.rates import InstanceRates, OperatorRates, RateWindow
from analytics.model.topology import Edge, Operator, Topology

USE_OBSERVED = -1.0
"""The rate that stands for *what was observed* in a file of source rates."""

_ONLINE_NAME = re.compile(r".+-\d+-(\d+)")
_RATE_FIELDS = 8


@dataclass(frozen=True, slots=True)
class RateRow:
    """A row of a rates file; the rates are in records per second, ``at_ns`` is whatever the engine stamped."""

    operator_id: str
    instance: str
    total: int
    at_ns: float
    rates_per_s: tuple[float, float, float, float]


def parse_topology(data: bytes, name: str) -> Topology:
    """The graph of rows ``id1,name1,instances1,id2,name2,instances2``, an edge each.

    Raises
    ------
    UnreadableFileError
        If a row is none, an operator is stated twice and differently, or there is no edge.
    """
    operators: dict[str, Operator] = {}
    edges: list[Edge] = []
    for number, fields in _rows(data, name):
        if len(fields) != 6:
            raise UnreadableFileError(f"{name}, line {number}: 6 fields make an edge, not {len(fields)}")
        for field in (0, 3):
            operator = _operator(fields[field : field + 3], f"{name}, line {number}")
            if operators.setdefault(operator.id, operator) != operator:
                raise UnreadableFileError(
                    f"{name}, line {number}: operator {operator.id} was stated otherwise"
                )
        edge = Edge(fields[0], fields[3])
        if edge not in edges:
            edges.append(edge)
    if not edges:
        raise UnreadableFileError(f"{name}: no edge")
    return Topology(
        job_id="", job_name="", state="", at_ms=None, operators=tuple(operators.values()), edges=tuple(edges)
    )


def parse_source_rates(data: bytes, name: str) -> dict[str, float]:
    """Records per second *per instance* by source, of rows ``source_id,rate``; `USE_OBSERVED` is one of them.

    Raises
    ------
    UnreadableFileError
        If a row is none, or a source is stated twice.
    """
    found: dict[str, float] = {}
    for number, fields in _rows(data, name):
        if len(fields) != 2:
            raise UnreadableFileError(f"{name}, line {number}: a source and its rate are expected")
        rate = _number(fields[1])
        if rate is None or fields[0] in found:
            problem = "is no rate" if rate is None else "was stated before"
            raise UnreadableFileError(f"{name}, line {number}: {fields[rate is None]!r} {problem}")
        found[fields[0]] = rate
    return found


def parse_rates(data: bytes, name: str) -> tuple[list[RateRow], tuple[Diagnostic, ...]]:
    """The rows ``operator,instance,instances,timestamp,true_proc,true_out,observed_proc,observed_out``.

    Rows that cannot be used are counted. A rate that is no number becomes NaN: the row is there, its
    number is not.

    Raises
    ------
    UnreadableFileError
        If it is no text.
    """
    rows, odd = [], []
    for number, fields in _rows(data, name):
        row = _rate_row(fields)
        if row is None:
            odd.append(Diagnostic("bad_rate_row", 1, f"{name}, line {number}"))
        else:
            rows.append(row)
    return rows, merge(odd)


def epoch_of(file_name: str) -> int | None:
    """The epoch a file is named after (its name without folders and extension), or None if it is not."""
    match = _ONLINE_NAME.fullmatch(file_name.rpartition(".")[0] or file_name)
    return None if match is None else int(match[1])


def offline_epochs(rows: Iterable[RateRow]) -> tuple[dict[int, RateWindow], tuple[Diagnostic, ...]]:
    """Windows by epoch, numbered per instance by timestamp.

    Instances that have fewer epochs than others of their operator are counted: their last ones are
    missing, and those before may belong elsewhere.
    """
    instances: dict[tuple[str, str], dict[float, RateRow]] = {}
    repeated = 0
    for row in rows:
        by_time = instances.setdefault((row.operator_id, row.instance), {})
        repeated += row.at_ns in by_time
        by_time.setdefault(row.at_ns, row)
    epochs: dict[int, list[RateRow]] = {}
    for by_time in instances.values():
        for epoch, at_ns in enumerate(sorted(by_time)):
            epochs.setdefault(epoch, []).append(by_time[at_ns])
    uneven = sum(len(by_time) != len(epochs) for by_time in instances.values())
    odd = [Diagnostic("repeated_rate_row", repeated, "the first is used")] if repeated else []
    if uneven:
        odd.append(Diagnostic("fewer_epochs", uneven, f"instances with fewer than {len(epochs)} epochs"))
    return {epoch: _window(epochs[epoch]) for epoch in sorted(epochs)}, merge(odd)


def online_epoch(rows: Sequence[RateRow]) -> tuple[RateWindow, tuple[Diagnostic, ...]]:
    """The window of the rows of one epoch; an instance's second row is counted and not used."""
    first: dict[tuple[str, str], RateRow] = {}
    for row in rows:
        first.setdefault((row.operator_id, row.instance), row)
    repeated = len(rows) - len(first)
    odd = (Diagnostic("repeated_rate_row", repeated, "the first is used"),) if repeated else ()
    return _window(list(first.values())), odd


def _rows(data: bytes, name: str) -> Iterator[tuple[int, list[str]]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFileError(f"{name}: no UTF-8 text") from error
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if line.strip() and not line.startswith("#"):
            try:
                fields = next(csv.reader([line], skipinitialspace=True))
            except csv.Error as error:
                raise UnreadableFileError(f"{name}, line {number}: {error}") from error
            yield number, [field.strip() for field in fields]


def _operator(fields: Sequence[str], where: str) -> Operator:
    operator_id, name, instances = fields
    if not operator_id or not re.fullmatch(r"\d{1,9}", instances) or not int(instances):
        raise UnreadableFileError(
            f"{where}: {','.join(fields)!r} is no operator with its number of instances"
        )
    return Operator(operator_id, name, int(instances))


def _rate_row(fields: Sequence[str]) -> RateRow | None:
    if (
        len(fields) != _RATE_FIELDS
        or not fields[0]
        or not fields[1]
        or not re.fullmatch(r"\d{1,9}", fields[2])
    ):
        return None
    at_ns = _whole_or_float(fields[3])
    if at_ns is None:
        return None
    rates = [_number(field) for field in fields[4:]]
    first, second, third, fourth = (math.nan if rate is None else rate for rate in rates)
    return RateRow(fields[0], fields[1], int(fields[2]), at_ns, (first, second, third, fourth))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole_or_float(text: str) -> float | None:
    """Nanoseconds since 1970 do not fit a float."""
    if re.fullmatch(r"-?\d{1,30}", text):
        return int(text)
    value = _number(text)
    return value if value is not None and math.isfinite(value) else None


def _window(rows: Sequence[RateRow]) -> RateWindow:
    by_operator: dict[str, list[RateRow]] = {}
    for row in rows:
        by_operator.setdefault(row.operator_id, []).append(row)
    operators = []
    for operator_id, found in by_operator.items():
        totals = {row.total for row in found}
        expected = totals.pop() if len(totals) == 1 else 0
        instances = tuple(InstanceRates(number, *row.rates_per_s) for number, row in enumerate(found))
        operators.append(OperatorRates(operator_id, expected, instances))
    times = [int(row.at_ns) for row in rows]
    return RateWindow(min(times, default=0), max(times, default=0), tuple(operators))
