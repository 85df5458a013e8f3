"""What ``scale`` reads: DS2's files as one observation an epoch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analytics.cli.arguments import UsageError
from analytics.decode.ds2_files import (
    USE_OBSERVED,
    RateRow,
    epoch_of,
    offline_epochs,
    online_epoch,
    parse_rates,
    parse_source_rates,
    parse_topology,
)
from analytics.decode.limits import UnreadableFileError
from analytics.model.decisions import Reason
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.rates import Observation, RateWindow, SourceTarget, TargetMethod
from analytics.model.topology import Topology
from analytics.scaling.rates import source_targets, totals

MOST_BYTES = 1 << 30


def read_observations(
    topology_file: Path, rate_paths: Sequence[Path], source_rates_file: Path | None
) -> tuple[dict[int, Observation], tuple[Diagnostic, ...]]:
    """An observation for every epoch there are rates of, in the order of epochs.

    Raises
    ------
    UsageError
        If a file cannot be read or makes no sense, there are no rates, or a rate is given for what is no source.
    """
    try:
        topology = parse_topology(_bytes(topology_file), str(topology_file))
        given = {} if source_rates_file is None else _source_rates(source_rates_file, topology)
        windows, odd = _windows(rate_paths)
    except UnreadableFileError as error:
        raise UsageError(str(error)) from error
    if not windows:
        raise UsageError("no rates in " + ", ".join(map(str, rate_paths)))
    return {
        epoch: Observation(topology, window, _targets(topology, window, given))
        for epoch, window in windows.items()
    }, odd


def _source_rates(path: Path, topology: Topology) -> dict[str, float]:
    found = parse_source_rates(_bytes(path), str(path))
    strangers = sorted(set(found) - {operator.id for operator in topology.sources()})
    if strangers and topology.sources():
        raise UsageError(f"{path}: {', '.join(strangers)}: no source of the topology")
    return found


def _windows(paths: Sequence[Path]) -> tuple[dict[int, RateWindow], tuple[Diagnostic, ...]]:
    files: list[Path] = []
    for path in paths:
        files += _listed(path) if path.is_dir() else [path]
    named = {path: epoch_of(path.name) for path in files}
    if all(path.is_dir() for path in paths) and None not in named.values():
        return _online({path: epoch for path, epoch in named.items() if epoch is not None})
    rows, odd = _rows(files)
    windows, more = offline_epochs(rows)
    return windows, merge([*odd, *more])


def _online(named: dict[Path, int]) -> tuple[dict[int, RateWindow], tuple[Diagnostic, ...]]:
    windows: dict[int, RateWindow] = {}
    diagnostics: list[Diagnostic] = []
    for epoch in sorted(set(named.values())):
        rows, odd = _rows([path for path, number in named.items() if number == epoch])
        if rows:
            windows[epoch], more = online_epoch(rows)
            diagnostics += more
        diagnostics += odd
    return windows, merge(diagnostics)


def _rows(files: Sequence[Path]) -> tuple[list[RateRow], list[Diagnostic]]:
    rows: list[RateRow] = []
    diagnostics: list[Diagnostic] = []
    for path in files:
        found, odd = parse_rates(_bytes(path), str(path))
        rows += found
        diagnostics += odd
    return rows, diagnostics


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}") from error


def _bytes(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError(f"{path}: larger than {MOST_BYTES:,} bytes")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error


def _targets(topology: Topology, window: RateWindow, given: dict[str, float]) -> tuple[SourceTarget, ...]:
    """Rates given are per instance; `USE_OBSERVED` asks for what the source was seen to deliver."""
    configured = {
        operator.id: given[operator.id] * operator.parallelism
        for operator in topology.sources()
        if given.get(operator.id, USE_OBSERVED) != USE_OBSERVED
    }
    observed = [operator for operator in topology.sources() if given.get(operator.id) == USE_OBSERVED]
    rates = {item.operator_id: item for item in window.operators}
    found = []
    for operator in observed:
        sums = totals(operator, rates.get(operator.id), source=True)
        if not isinstance(sums, Reason) and sums.observed_output is not None:
            found.append(SourceTarget(operator.id, sums.observed_output, TargetMethod.OBSERVED_OUTPUT))
    skipped = {operator.id for operator in observed}
    computed = source_targets(topology, window, configured)
    return (*found, *(target for target in computed if target.operator_id not in skipped))
