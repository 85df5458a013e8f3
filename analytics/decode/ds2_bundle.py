"""The logs of DS2's controller as one file: its topology and its rates, one after the other or in a ZIP archive.

Rows tell by themselves what they are: six fields are an edge, eight are rates, two a source's rate. If every file
of an archive that holds rates is named after its instance and epoch, the names say the epochs; otherwise the k-th
row of an instance is its epoch k. See :mod:`analytics.decode.ds2_files` for the rows.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO, cast

from analytics.decode.ds2_files import (
    RateRow,
    epoch_of,
    offline_epochs,
    online_epoch,
    parse_rates,
    parse_topology,
)
from analytics.decode.limits import Budget, LimitedFile, UnreadableFileError, about, opened
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.rates import RateWindow
from analytics.model.topology import Topology
from analytics.model.trace import Records, TraceBatch

ZIP = b"PK\x03\x04"
SECOND_NS = 1_000_000_000
_EDGE, _RATES, _SOURCE_RATE = 6, 8, 2


@dataclass
class _Rows:
    """What was found: the text of all edges, and the rows of rates by the file they are in."""

    edges: list[bytes] = field(default_factory=list)
    rates: dict[str, list[RateRow]] = field(default_factory=dict)
    odd: list[Diagnostic] = field(default_factory=list)


def read_ds2(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """Topology and rates as one batch: no records, but rates epoch by epoch.

    Returns
    -------
    TraceBatch
        Rows that cannot be used are counted under ``bad_rate_row`` and ``unknown_row``, source rates under
        ``source_rates_left_out``, since what a source should deliver is a setting of its job.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, or there is no topology or no rates; ``TooLargeError`` if it is
        over the limits.
    """
    found = _Rows()
    for path in paths:
        with about(path):
            for name, data in _texts(path, budget):
                _sort(found, name, data)
    if not found.edges:
        raise UnreadableFileError("no topology: rows of id,name,instances,id,name,instances are needed too")
    topology = parse_topology(b"\n".join(found.edges), "topology")
    windows, odd = _epochs(found)
    if not windows:
        raise UnreadableFileError(
            "no rates: rows of operator,instance,instances,timestamp and four rates are needed too"
        )
    return TraceBatch(
        Records.of([]),
        operators=tuple(dict.fromkeys(operator.name or operator.id for operator in topology.operators)),
        rates=_in_order(topology, windows),
        diagnostics=merge([*found.odd, *odd]),
    )


def _texts(path: Path, budget: Budget) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file; an archive's members are read within the budget, whatever they claim."""
    with path.open("rb") as file:
        packed = file.read(len(ZIP)) == ZIP
    if not packed:
        with opened(path, budget) as text:
            yield path.name, text.read()
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = PurePosixPath(member.filename)
                if member.is_dir() or name.name.startswith(".") or "__MACOSX" in name.parts:
                    continue
                budget.take_records()
                with archive.open(member) as inner:
                    yield member.filename, LimitedFile(cast(BinaryIO, inner), budget).read()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, ValueError) as error:
        raise UnreadableFileError(f"damaged or protected ZIP archive: {error}") from error


def _sort(found: _Rows, name: str, data: bytes) -> None:
    """Each row to its kind. The others are left blank, so that the numbers of lines stay right."""
    lines = data.removeprefix(b"\xef\xbb\xbf").splitlines()
    kinds = [line.count(b",") + 1 if line.strip() and not line.startswith(b"#") else 0 for line in lines]
    found.edges += [line for line, kind in zip(lines, kinds, strict=True) if kind == _EDGE]
    if _RATES in kinds:
        text = b"\n".join(line if kind == _RATES else b"" for line, kind in zip(lines, kinds, strict=True))
        found.rates[name], odd = parse_rates(text, name)
        found.odd += odd
    told = sum(kind == _SOURCE_RATE for kind in kinds)
    if told:
        says = f"{name}: say on the job's Scaling tab what its sources should deliver"
        found.odd.append(Diagnostic("source_rates_left_out", told, says))
    strange = [at for at, kind in enumerate(kinds, 1) if kind not in (0, _EDGE, _RATES, _SOURCE_RATE)]
    if strange:
        found.odd.append(Diagnostic("unknown_row", len(strange), f"{name}, line {strange[0]}"))


def _epochs(found: _Rows) -> tuple[list[RateWindow], tuple[Diagnostic, ...]]:
    named = {name: epoch_of(PurePosixPath(name).name) for name in found.rates}
    if len(named) < 2 or None in named.values():
        windows, odd = offline_epochs(row for rows in found.rates.values() for row in rows)
        return list(windows.values()), odd
    by_epoch: dict[int, list[RateRow]] = {}
    for name, rows in found.rates.items():
        by_epoch.setdefault(cast(int, named[name]), []).extend(rows)
    told = [online_epoch(by_epoch[epoch]) for epoch in sorted(by_epoch) if by_epoch[epoch]]
    return [window for window, _ in told], merge(item for _, odd in told for item in odd)


def _in_order(topology: Topology, windows: Sequence[RateWindow]) -> tuple[tuple[Topology, RateWindow], ...]:
    """By time. A row says when its epoch ended: it began when the one before ended, the first as long before."""
    ordered = sorted(windows, key=lambda window: window.end_ns)
    ends = [window.end_ns for window in ordered]
    first = ends[1] - ends[0] if len(ends) > 1 and ends[1] > ends[0] else SECOND_NS
    starts = [ends[0] - first, *ends[:-1]]
    return tuple(
        (topology, replace(window, start_ns=start))
        for window, start in zip(ordered, starts, strict=True)
        if start < window.end_ns
    )
