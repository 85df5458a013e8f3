"""How much the inputs can grow before something drops: the exact answers of the linear program.

Source: Drougas and Kalogeraki, IPDPS 2009 (equal burst); the lexicographic extension fixes, level by level, the
applications whose rate rows have a positive dual, for these are at their bound in every optimum.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.bursts.constraints import Constraints
from analytics.bursts.highs import INFINITY, Floats
from analytics.bursts.single import single_headroom
from analytics.bursts.solver import Outcome, Solution, Solver
from analytics.model.burst_answers import BindingLimit, Headroom, NodeLoss

POSITIVE_DUAL = 1e-7
ROUNDING = 1e-8
TEN_PERCENT_MORE = 1.1


@dataclass(frozen=True)
class Level:
    """One step of the lexicographic max–min: the program's base and direction and its solution."""

    base: Floats
    direction: Floats
    solution: Solution


def joint_headroom(solver: Solver, rates: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Solution:
    """The largest c such that rates + c · weights fit; negative if the rates do not.

    Parameters
    ----------
    weights
        (Q,) How much each application's burst counts; default 1 each.

    Raises
    ------
    ValueError
        If rates or weights are no rates, or all weights are 0.
    """
    start = solver.rows.rates(rates)
    return solver.along(start, _weights(solver.rows, weights))


def lexicographic(
    solver: Solver, rates: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> tuple[Floats, tuple[Level, ...]]:
    """What each application can grow by when those that can go on after the others stopped do.

    Returns
    -------
    array
        (Q,) Growth; ``inf`` where nothing limits it, ``-inf`` everywhere if nothing fits at all.
    tuple of Level
        The steps; the last optimal one has the plan.

    Raises
    ------
    ValueError
        As in `joint_headroom`.
    """
    start, towards = solver.rows.rates(rates), _weights(solver.rows, weights)
    growth = np.full(len(start), INFINITY)
    growth[towards == 0] = 0.0
    levels: list[Level] = []
    while np.isinf(growth).any():
        open_ = np.isinf(growth)
        direction = np.where(open_, towards, 0.0)
        # Asking for a hair less of what is fixed keeps rounding from making the next level infeasible.
        fixed = start + np.where(open_, 0.0, growth) - ROUNDING * solver.rows.rate_unit
        base = np.where(open_ | (towards == 0), start, fixed)
        solution = solver.along(base, direction)
        levels.append(Level(base, direction, solution))
        if solution.outcome is not Outcome.OPTIMAL:
            return (
                np.full(len(start), -INFINITY) if solution.outcome is Outcome.INFEASIBLE else growth
            ), tuple(levels)
        tight = open_ & (solution.weights * towards > POSITIVE_DUAL)
        if not tight.any():
            tight = open_
        growth[tight] = solution.value * towards[tight]
    return growth, tuple(levels)


def max_rates(solver: Solver) -> Floats:
    """(Q,) The most each application can take if the others have no input."""
    return np.array([solver.farthest(one).value for one in np.eye(len(solver.rows.applications))])


def alone_headroom(solver: Solver, rates: npt.ArrayLike) -> Floats:
    """(Q,) What each application can grow by while the others keep their rates; ``-inf`` if they do not fit."""
    start = solver.rows.rates(rates)
    return np.array([solver.along(start, one).value for one in np.eye(len(start))])


def proportional_headroom(solver: Solver, rates: npt.ArrayLike) -> float:
    """What all rates can be multiplied by; ``inf`` if they are 0 or nothing limits them."""
    start = solver.rows.rates(rates)
    return solver.along(np.zeros(len(start)), start).value if start.any() else INFINITY


def node_losses(
    solver: Solver, rates: npt.ArrayLike, only: Collection[str] | None = None
) -> tuple[NodeLoss, ...]:
    """Headroom after the loss of each node, one at a time; of those named in ``only``, None: of all."""
    start = solver.rows.rates(rates)
    losses = []
    for number, name in enumerate(solver.rows.nodes):
        if only is not None and name not in only:
            continue
        with solver.without_node(number):
            joint = joint_headroom(solver, start).value
            losses.append(NodeLoss(name, joint, proportional_headroom(solver, start)))
    return tuple(losses)


def headroom(solver: Solver, rates: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> Headroom:
    """Every answer about one operating point.

    Raises
    ------
    ValueError
        As in `joint_headroom`.
    """
    start = solver.rows.rates(rates)
    growth, levels = lexicographic(solver, start, weights)
    joint = levels[0].solution.value
    alone = alone_headroom(solver, start)
    target = np.maximum(start + np.where(np.isfinite(growth), growth, 0.0), 0.0)
    if joint == -INFINITY:
        target = np.zeros(len(start))
    single = single_headroom(solver.rows, start, joint, _most_single(alone, weights), weights).value
    return Headroom(
        version=solver.rows.version,
        rates=_numbers(start),
        max_rate=_numbers(max_rates(solver)),
        alone=_numbers(alone),
        joint=joint,
        each=_numbers(growth),
        single=single,
        proportional=proportional_headroom(solver, start),
        target=_numbers(target),
        shed=_numbers(np.maximum(start - target, 0.0)),
        plan=_numbers(plan_at(solver, levels, target)[: len(solver.rows.components)]),
        binding=binding_limits(solver, levels),
    )


def plan_at(solver: Solver, levels: Sequence[Level], target: Floats) -> Floats:
    """(V,) What each component and edge handles at the point the levels ended in."""
    last = levels[-1].solution
    if last.outcome is Outcome.OPTIMAL:
        return last.plan
    return solver.farthest(np.zeros(len(target)), target).plan


def binding_limits(solver: Solver, levels: Sequence[Level]) -> tuple[BindingLimit, ...]:
    """What stops growth at each level, the most worth adding to first, with what 10 % more of it buys."""
    found: dict[tuple[str, str], BindingLimit] = {}
    limits = solver.rows.limits
    for number, level in enumerate(levels, 1):
        prices = level.solution.prices
        worth = prices * limits
        priced = np.flatnonzero(prices * solver.rows.limit_unit > POSITIVE_DUAL * _scale(level))
        for row in sorted(priced.tolist(), key=lambda row: -float(worth[row])):
            node, resource = solver.rows.limit_names[row]
            if (node, resource) in found:
                continue
            more = limits.copy()
            more[row] *= TEN_PERCENT_MORE
            with solver.with_limits(more):
                gain = solver.along(level.base, level.direction).value - level.solution.value
            found[node, resource] = BindingLimit(node, resource, number, float(prices[row]), max(gain, 0.0))
    return tuple(found.values())


def _scale(level: Level) -> float:
    """How large headroom can be about: prices far below are noise."""
    return float(max(abs(level.solution.value), np.abs(level.solution.rates).max(initial=0.0))) or 1.0


def _weights(rows: Constraints, weights: npt.ArrayLike | None) -> Floats:
    if weights is None:
        return np.ones(len(rows.applications))
    checked = rows.rates(weights)
    if not checked.any():
        raise ValueError("at least one weight must be above 0")
    return checked


def _most_single(alone: Floats, weights: npt.ArrayLike | None) -> float:
    """No routing lets any one grow by more than what each could with a routing of its own."""
    towards = np.ones(len(alone)) if weights is None else np.asarray(weights, dtype=float)
    return float((alone[towards > 0] / towards[towards > 0]).min())


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
