"""``scale``: the parallelism a policy asks for, epoch by epoch, from DS2's own files."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

from analytics.cli.answer_output import diagnostic_lines, document, table
from analytics.cli.arguments import UsageError
from analytics.cli.scale_input import read_observations
from analytics.model.decisions import Decision, OperatorDecision
from analytics.model.topology import Topology
from analytics.scaling import ds2
from analytics.scaling.policies import POLICIES, decide_window

NAME = "scale"
HELP = "The parallelism every operator needs, by one of several policies, from rates in DS2's files."


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--policy", required=True, choices=sorted(POLICIES))
    parser.add_argument(
        "--topology",
        required=True,
        type=Path,
        metavar="FILE",
        help="edges: id,name,instances,id,name,instances",
    )
    parser.add_argument(
        "--rates",
        required=True,
        nargs="+",
        action="extend",
        type=Path,
        metavar="FILE_OR_DIR",
        help="rows of rates, or directories of files named NAME-INSTANCE-EPOCH.EXT",
    )
    parser.add_argument(
        "--source-rates", type=Path, metavar="FILE", help="source,records/s per instance; -1: as observed"
    )
    parser.add_argument(
        "--factor",
        type=_factor,
        default=0.0,
        metavar="F",
        help="ds2: ask for 1 + F times the need (default: 0)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")


def run(options: Namespace) -> str:
    """Read, decide every epoch by itself, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read, or a factor is given to a policy that has none.
    """
    if options.factor and options.policy != ds2.NAME:
        raise UsageError(f"--factor belongs to ds2, not to {options.policy}")
    observations, odd = read_observations(options.topology, options.rates, options.source_rates)
    decided = {
        epoch: decide_window(options.policy, seen, options.factor) for epoch, seen in observations.items()
    }
    topology = next(iter(observations.values())).topology
    if options.json:
        epochs = [
            {"epoch": epoch, "operators": _json(decision, topology)} for epoch, decision in decided.items()
        ]
        return document({"epochs": epochs}, odd or None)
    lines: list[str] = []
    for epoch, decision in decided.items():
        lines += [f"epoch {epoch}", *_table(decision, topology), ""]
    return "\n".join([*lines, *diagnostic_lines(odd)]).rstrip() + "\n"


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise ArgumentTypeError(f"{text!r} is no factor of at least 0")
    return factor


def _json(decision: Decision, topology: Topology) -> dict[str, Any]:
    names = {operator.id: operator.name for operator in topology.operators}
    return {
        item.operator_id: {
            "name": names[item.operator_id],
            "current": item.current,
            "need": item.need,
            "parallelism": item.parallelism,
            "status": item.status.value,
            "reason": None if item.reason is None else item.reason.value,
            "target_rate_per_s": item.target_rate_per_s,
            "true_processing_rate_per_s": item.true_processing_per_s,
            "true_output_rate_per_s": item.true_output_per_s,
        }
        for item in decision.operators
    }


def _table(decision: Decision, topology: Topology) -> list[str]:
    header = ("now", "need", "asked", "target/s", "true in/s", "true out/s", "operator")
    names = {operator.id: operator.name for operator in topology.operators}
    rows = [_row(item, names[item.operator_id]) for item in decision.operators]
    return [*table(header, rows), *([decision.note] if decision.note else [])]


def _row(item: OperatorDecision, name: str) -> tuple[str, ...]:
    words = "" if item.reason is None else f" – cannot decide: {item.reason.words}"
    return (
        str(item.current),
        _number(item.need),
        "-" if item.parallelism is None else str(item.parallelism),
        _number(item.target_rate_per_s),
        _number(item.true_processing_per_s),
        _number(item.true_output_per_s),
        f"{name}{words}" + (f" ({item.note})" if item.note else ""),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
