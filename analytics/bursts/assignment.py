"""From a solution to routing that needs no change when a burst comes.

Routing is what each component handles per input of its application. Taken from the plan at p + headroom and used
at p already, it carries every burst up to the headroom, joint or single: less input loads every node less. Of what
must be rounded (to key groups) headroom has a closed form, since with fixed routing loads are linear in the rates:

    c = min over limits of (limit − load at p) / (load of one unit more of every application)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.bursts.constraints import Constraints, Ints
from analytics.bursts.headroom import lexicographic
from analytics.bursts.highs import INFINITY, Floats
from analytics.bursts.solver import Outcome, Solution, Solver
from analytics.model.burst_answers import Rebalance
from analytics.model.diagnostics import Diagnostic

KEY_GROUPS = 128
"""Flink's default for small jobs."""
_NOTHING = 1e-12


def fractions(rows: Constraints, plan: Floats) -> Floats:
    """(n,) The share of its stage that each component handles; equal shares where a stage handles nothing."""
    handled = plan[: len(rows.components)]
    stages = len(rows.stage_input)
    total = np.bincount(rows.stage_of, handled, stages)[rows.stage_of]
    count = np.bincount(rows.stage_of, minlength=stages)[rows.stage_of]
    idle = total <= _NOTHING * rows.unit[: len(handled)]
    return np.where(idle, 1 / count, handled / np.where(idle, 1.0, total))


def routing(solver: Solver, solution: Solution) -> Floats:
    """(V,) What each component and edge handles per input of its application, taken from a solution.

    An application without input in the solution gets equal shares; in edge form, the shares of its largest rate.
    """
    rows = solver.rows
    rates = solution.rates[rows.application_of]
    idle = rates <= _NOTHING * rows.rate_unit[rows.application_of]
    per_input: Floats = np.where(
        idle, _equal(rows, solution.plan), solution.plan / np.where(idle, 1.0, rates)
    )
    for q in set(rows.application_of[len(rows.components) :][idle[len(rows.components) :]].tolist()):
        most = solver.farthest(np.eye(len(rows.applications))[q])
        if most.value > _NOTHING * rows.rate_unit[q]:
            mine = rows.application_of == q
            per_input[mine] = most.plan[mine] / most.rates[q]
    return per_input


def _equal(rows: Constraints, plan: Floats) -> Floats:
    """(V,) What each handles per input if stages that handle nothing share equally."""
    handled = fractions(rows, plan) * rows.stage_input[rows.stage_of]
    targets = np.array([target for _, target in rows.edges], dtype=np.int64)
    ways = np.bincount(targets, minlength=len(handled))
    return np.concatenate([handled, handled[targets] / ways[targets]])


def loads(rows: Constraints, per_input: Floats) -> Floats:
    """(M, Q) What one unit of each application's input takes of each limit under fixed routing."""
    taken = rows.usage.tocoo()
    count = len(rows.applications)
    key = taken.row.astype(np.int64) * count + rows.application_of[taken.col]
    flat: Floats = np.bincount(key, taken.data * per_input[taken.col], len(rows.limits) * count).astype(float)
    return flat.reshape(len(rows.limits), count)


def fixed_headroom(
    rows: Constraints, unit_loads: Floats, rates: npt.ArrayLike, weights: npt.ArrayLike | None = None
) -> float:
    """What all can grow by with this routing; negative if the rates do not fit.

    Parameters
    ----------
    unit_loads
        (M, Q) As `loads` gives them.
    """
    towards = np.ones(len(rows.applications)) if weights is None else rows.rates(weights)
    return _least(rows, rows.limits - unit_loads @ rows.rates(rates), unit_loads @ towards)


def fixed_single_headroom(rows: Constraints, unit_loads: Floats, rates: npt.ArrayLike) -> float:
    """What any one can grow by with this routing, whichever it is."""
    room = rows.limits - unit_loads @ rows.rates(rates)
    return min(_least(rows, room, unit_loads[:, q]) for q in range(unit_loads.shape[1]))


def _least(rows: Constraints, room: Floats, growth: Floats) -> float:
    grows = growth > 0
    full = room < -1e-9 * rows.limit_unit
    if (full & ~grows).any():
        return -INFINITY
    return float((room[grows] / growth[grows]).min(initial=INFINITY))


def rebalance(
    solver: Solver, rates: npt.ArrayLike, groups: int = KEY_GROUPS
) -> tuple[Rebalance, tuple[Diagnostic, ...]]:
    """Routing for the largest burst from these rates, exact and rounded to whole key groups.

    Returns
    -------
    Rebalance
        Shares and groups of each component, and what headroom they leave.
    tuple of Diagnostic
        ``not_rounded``: applications in edge form, whose shares follow from their edges.

    Raises
    ------
    ValueError
        If ``groups`` is below 1 or the rates are none.
    """
    if groups < 1:
        raise ValueError("a stage needs at least one key group")
    rows, start = solver.rows, solver.rows.rates(rates)
    _, levels = lexicographic(solver, start)
    best = [level.solution for level in levels if level.solution.outcome is Outcome.OPTIMAL]
    solution = best[-1] if best else solver.farthest(np.zeros(len(start)))
    per_input = routing(solver, solution)
    shares = fractions(rows, per_input)
    rounding = _Rounding(rows, per_input, shares, groups, start)
    counts = rounding.improved(rounding.nearest())
    rounded = rounding.routing(counts)
    exact_loads, rounded_loads = loads(rows, per_input), loads(rows, rounded)
    names = (rows.applications[q] for q in sorted(rounding.edge_form))
    return Rebalance(
        version=rows.version,
        groups=groups,
        fractions=tuple(shares.tolist()),
        key_groups=tuple(counts.tolist()),
        joint=fixed_headroom(rows, exact_loads, start),
        single=fixed_single_headroom(rows, exact_loads, start),
        rounded_joint=fixed_headroom(rows, rounded_loads, start),
        rounded_single=fixed_single_headroom(rows, rounded_loads, start),
    ), tuple(Diagnostic("not_rounded", 1, name) for name in names)


@dataclass
class _Rounding:
    """Key groups of each component; those of a stage add up to ``groups``."""

    rows: Constraints
    per_input: Floats
    shares: Floats
    groups: int
    rates: Floats

    @property
    def edge_form(self) -> set[int]:
        """Applications whose shares follow from their edges."""
        return set(self.rows.application_of[len(self.rows.components) :].tolist())

    def nearest(self) -> Ints:
        """Largest remainders: every component within one group of its exact share."""
        exact = self.shares * self.groups
        counts = np.floor(exact + 1e-9).astype(np.int64)
        for stage in range(len(self.rows.stage_input)):
            mine = np.flatnonzero(self.rows.stage_of == stage)
            missing = self.groups - int(counts[mine].sum())
            order = np.argsort(counts[mine] - exact[mine], kind="stable")
            counts[mine[order[:missing]]] += 1
        return counts

    def routing(self, counts: Ints) -> Floats:
        """(V,) What each handles per input with these groups."""
        handled = len(counts)
        free = ~np.isin(self.rows.application_of[:handled], list(self.edge_form))
        rounded = self.per_input.copy()
        stage = self.rows.stage_input[self.rows.stage_of]
        rounded[:handled] = np.where(free, counts / self.groups * stage, rounded[:handled])
        return rounded

    def improved(self, counts: Ints) -> Ints:
        """Move one group at a time off the limit that binds, while that helps."""
        best = self._headroom(counts)
        for _ in range(len(counts)):
            moves = [(self._headroom(moved), moved) for moved in self._moves(counts)]
            value, moved = max(moves, key=lambda move: move[0], default=(-INFINITY, counts))
            if value <= best + 1e-12 * abs(best):
                return counts
            best, counts = value, moved
        return counts

    def _headroom(self, counts: Ints) -> float:
        return fixed_headroom(self.rows, loads(self.rows, self.routing(counts)), self.rates)

    def _moves(self, counts: Ints) -> list[Ints]:
        """One group from a component on the binding limit to another of its stage.

        Shares may leave the bounds of their components by what rounding needs, less than one group.
        """
        least = np.floor(self.rows.least_share * self.groups + 1e-9)
        most = np.ceil(self.rows.most_share * self.groups - 1e-9)
        unit_loads = loads(self.rows, self.routing(counts))
        growth = unit_loads.sum(axis=1)
        room = self.rows.limits - unit_loads @ self.rates
        left = np.divide(room, growth, out=np.full(len(room), INFINITY), where=growth > 0)
        if not len(left):
            return []
        row = self.rows.usage[[int(left.argmin())]].tocoo()
        moves = []
        for source in row.col.tolist():
            if source >= len(counts) or counts[source] <= least[source]:
                continue
            if int(self.rows.application_of[source]) in self.edge_form:
                continue
            for target in np.flatnonzero(self.rows.stage_of == self.rows.stage_of[source]).tolist():
                if target != source and counts[target] < most[target]:
                    moved = counts.copy()
                    moved[[source, target]] += [-1, 1]
                    moves.append(moved)
        return moves
