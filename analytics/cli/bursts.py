"""``bursts``: how much the inputs of applications that share nodes can grow before something drops."""

from __future__ import annotations

import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from analytics.bursts.assignment import fractions
from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, node_losses
from analytics.bursts.index import point_index
from analytics.bursts.notation import read_number, read_rates
from analytics.bursts.region import full_region
from analytics.bursts.solver import Solver
from analytics.cli.answer_output import diagnostic_lines, document, table
from analytics.cli.arguments import UsageError
from analytics.model.burst_answers import Headroom, NodeLoss, Region
from analytics.model.bursts import BurstModel, with_capacity, without_node
from analytics.model.bursts_json import burst_model

NAME = "bursts"
HELP = (
    "How much the inputs can grow before something drops, what stops them, and a plan that is ready for it."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL.json", help="nodes and the applications on them")
    parser.add_argument(
        "--at", type=_rates, required=True, metavar="APP=RATE,…", help="the present rate of every application"
    )
    parser.add_argument(
        "--lose", action="append", default=[], metavar="NODE", help="answer as if this node were lost"
    )
    parser.add_argument(
        "--scale",
        action="append",
        type=_scale,
        default=[],
        metavar="NODE.RESOURCE=FACTOR",
        help="answer as if a node had this many times its capacity",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Namespace) -> str:
    """Read the model, solve, and say it.

    Raises
    ------
    UsageError
        If the file is no model, or it has no such application, node or resource.
    """
    try:
        model, odd = burst_model(orjson.loads(options.model.read_bytes()))
        for node, resource, factor in options.scale:
            model = with_capacity(model, node, resource, factor)
        for name in options.lose:
            model = without_node(model, name)
        rates = _in_order(model, options.at)
    except OSError as error:
        raise UsageError(f"{options.model}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{options.model}: {error}".replace("\n", " ")) from error
    solver = Solver(constraints(model))
    answer = headroom(solver, rates)
    losses = node_losses(solver, rates)
    if not options.json:
        return "\n".join([*_lines(solver, answer, losses), *diagnostic_lines(odd)]) + "\n"
    return document(_json(solver, answer, losses), odd)


def _rates(text: str) -> dict[str, float]:
    try:
        return read_rates(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _scale(text: str) -> tuple[str, str, float]:
    place, _, number = text.rpartition("=")
    node, dot, resource = place.rpartition(".")
    if not dot:
        raise ArgumentTypeError(f"{text!r} is not of the form NODE.RESOURCE=FACTOR")
    try:
        return node, resource, read_number(text, number)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


def _in_order(model: BurstModel, rates: dict[str, float]) -> list[float]:
    names = [application.name for application in model.applications]
    for name in rates.keys() - set(names):
        raise ValueError(f"the model has no application {name!r}")
    for name in names:
        if name not in rates:
            raise ValueError(f"--at gives no rate for application {name!r}")
    return [rates[name] for name in names]


def _json(solver: Solver, answer: Headroom, losses: tuple[NodeLoss, ...]) -> dict[str, Any]:
    rows = solver.rows

    def by_application(values: tuple[float, ...]) -> dict[str, float]:
        return dict(zip(rows.applications, values, strict=True))

    shares = fractions(rows, np.array(answer.plan))
    return {
        "version": answer.version,
        "rates": by_application(answer.rates),
        "max_rate": by_application(answer.max_rate),
        "headroom": {
            "all": answer.joint,
            "each": by_application(answer.each),
            "single": answer.single,
            "proportional": answer.proportional,
            "alone": by_application(answer.alone),
        },
        "target": by_application(answer.target),
        "shed": by_application(answer.shed),
        "plan": dict(zip(rows.components, answer.plan, strict=True)),
        "fractions": dict(zip(rows.components, shares.tolist(), strict=True)),
        "binding": [
            {
                "node": limit.node,
                "resource": limit.resource,
                "price": limit.price,
                "gain": limit.gain,
                "level": limit.level,
            }
            for limit in answer.binding
        ],
        "losses": [
            {"node": loss.node, "all": loss.joint, "proportional": loss.proportional} for loss in losses
        ],
        "region": _region(full_region(solver)),
        "index": _index(solver),
    }


def _region(region: Region | None) -> dict[str, Any] | None:
    if region is None:
        return None
    return {
        "applications": region.applications,
        "vertices": region.vertices,
        "pareto": region.pareto,
        "facets": [
            {
                "a": side.weights,
                "b": side.bound,
                "limits": [{"node": node, "resource": resource} for node, resource in side.limits],
            }
            for side in region.facets
        ],
    }


def _index(solver: Solver) -> dict[str, Any] | None:
    began = time.perf_counter()
    index = point_index(solver)
    seconds = time.perf_counter() - began
    return None if index is None else {"points": len(index.points), "seconds": seconds}


def _lines(solver: Solver, answer: Headroom, losses: tuple[NodeLoss, ...]) -> list[str]:
    lines = [_first_line(answer)]
    if answer.joint >= 0:
        lines.append(
            f"Any one, whichever it is, may grow by {answer.single:.6g} without a change of routing;"
            f" all together by a factor of {answer.proportional:.6g}."
        )
    rows = [
        (*(f"{value:.6g}" for value in values), name)
        for name, *values in zip(
            solver.rows.applications,
            answer.rates,
            answer.each,
            answer.alone,
            answer.max_rate,
            strict=True,
        )
    ]
    header = ("rate", "may grow by", "alone by", "at most", "application")
    lines += ["", *table(header, rows), ""]
    for limit in answer.binding:
        lines.append(
            f"{limit.resource} of {limit.node} stops growth{'' if limit.level == 1 else ' of the rest'};"
            f" 10 % more of it buys {limit.gain:.6g}"
        )
    lines += ["", *table(("all may grow by", "if lost"), ((f"{one.joint:.6g}", one.node) for one in losses))]
    return lines


def _first_line(answer: Headroom) -> str:
    if answer.joint >= 0:
        return f"All inputs may grow by {answer.joint:.6g} each."
    return f"The inputs do not fit: {sum(answer.shed):.6g} must be shed."
