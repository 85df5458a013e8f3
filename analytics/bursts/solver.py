"""A warm linear-program solver for one model.

One program answers everything. Its columns are c, the rates r and the variables of `constraints`; for each
application a row r ≥ base + direction · c. Because less input is always feasible too, "at least" loses nothing
against "equal", and a c so negative that a rate would fall below 0 is no special case: that rate stops at 0.

Between two questions only bounds, costs and the column of c change, so HiGHS starts from the last basis.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

from analytics.bursts.constraints import Constraints
from analytics.bursts.highs import INFINITY, Bounds, Floats, SolverError, maximiser, solved


class Outcome(StrEnum):
    """How a program ended."""

    OPTIMAL = "optimal"
    UNBOUNDED = "unbounded"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Solution:
    """The answer to one question.

    Attributes
    ----------
    outcome
        Of the program; if it is not optimal the arrays are zeros.
    value
        The largest c or a·r: ``inf`` if nothing limits it, ``-inf`` if nothing fits at all.
    rates, plan
        (Q,) rates and (V,) what each variable handles.
    weights
        (Q,) How much ``value`` falls per unit of each rate's lower bound; at least 0.
    prices
        (M,) How much ``value`` rises per unit of each limit; at least 0.
    """

    outcome: Outcome
    value: float
    rates: Floats
    plan: Floats
    weights: Floats
    prices: Floats


class Solver:
    """The program of one model, kept between questions. Not for several threads at once."""

    def __init__(self, rows: Constraints) -> None:
        self.rows = rows
        self._count = len(rows.applications)
        self._limits = rows.limits
        self._first_limit = self._count + len(rows.flow_lower)
        self._highs = _program(rows)
        self._direction = np.zeros(self._count)
        self._cost = np.zeros(1 + self._count + len(rows.unit))
        self._unit = 1.0

    def along(self, base: npt.ArrayLike, direction: npt.ArrayLike) -> Solution:
        """The largest c such that rates of max(0, base + c · direction) are feasible.

        Parameters
        ----------
        base
            (Q,) Rates; may be negative.
        direction
            (Q,) At least 0 everywhere; where it is 0 the rate must reach its base.

        Raises
        ------
        SolverError
            If HiGHS does not find the answer.
        """
        towards = np.asarray(direction, dtype=float)
        self._turn(towards)
        self._aim(0, np.ones(1))
        self._set_floor(np.asarray(base, dtype=float))
        return self._solve(self._unit)

    def farthest(self, weights: npt.ArrayLike, floor: npt.ArrayLike | None = None) -> Solution:
        """The largest weights·r over feasible rates r ≥ floor (default: 0).

        Raises
        ------
        SolverError
            If HiGHS does not find the answer.
        """
        scaled = np.asarray(weights, dtype=float) * self.rows.rate_unit
        largest = float(np.abs(scaled).max()) or 1.0
        self._turn(np.zeros(self._count))
        self._aim(1, scaled / largest)
        self._set_floor(np.zeros(self._count) if floor is None else np.asarray(floor, dtype=float))
        return self._solve(largest)

    def cheapest(self, rates: npt.ArrayLike) -> Solution:
        """The plan for some rates that takes the least in all, each limit's use counted as a share of it.

        ``value`` is minus that sum.

        Raises
        ------
        SolverError
            If HiGHS does not find the answer.
        """
        self._turn(np.zeros(self._count))
        self._aim(1 + self._count, -np.asarray(self.rows.scaled_usage.sum(axis=0)).ravel())
        self._set_floor(np.asarray(rates, dtype=float))
        return self._solve(1.0)

    @contextmanager
    def with_limits(self, limits: Floats) -> Iterator[None]:
        """Other limits, in the units of ``rows.limits``, for some questions."""
        before, self._limits = self._limits, limits
        self._set_limits()
        try:
            yield
        finally:
            self._limits = before
            self._set_limits()

    @contextmanager
    def without_node(self, node: int) -> Iterator[None]:
        """Nothing runs on a node for some questions: its limits are 0 and so is what its variables handle."""
        name = self.rows.nodes[node]
        gone = np.flatnonzero(self.rows.node_of == node)
        limits = self._limits.copy()
        limits[[one == name for one, _ in self.rows.limit_names]] = 0.0
        shares = [self.rows.least_row[v] for v in gone.tolist() if v in self.rows.least_row]
        with self.with_limits(limits):
            self._open(gone, shares, 0.0)
            try:
                yield
            finally:
                self._open(gone, shares, INFINITY)

    def _open(self, variables: npt.NDArray[np.int64], shares: list[int], upper: float) -> None:
        columns = (1 + self._count + variables).astype(np.int32)
        zeros = np.zeros(len(columns))
        self._highs.changeColsBounds(len(columns), columns, zeros, np.full(len(columns), upper))
        for row in shares:
            self._highs.changeRowBounds(self._count + row, -INFINITY if upper == 0.0 else 0.0, INFINITY)

    def _turn(self, direction: Floats) -> None:
        """Set the column of c, scaled so that c is about 1 where the rates are."""
        if np.array_equal(direction, self._direction):
            return
        moving = direction > 0
        self._unit = float((self.rows.rate_unit[moving] / direction[moving]).min()) if moving.any() else 1.0
        scaled = direction * self._unit / self.rows.rate_unit
        for row, value in enumerate(scaled.tolist()):
            self._highs.changeCoeff(row, 0, -value)
        self._direction = direction.copy()

    def _aim(self, first: int, some: Floats) -> None:
        """Maximise some columns, weighted, and nothing else."""
        cost = np.zeros(len(self._cost))
        cost[first : first + len(some)] = some
        if not np.array_equal(cost, self._cost):
            columns = np.arange(len(cost), dtype=np.int32)
            self._highs.changeColsCost(len(cost), columns, cost)
            self._cost = cost

    def _set_floor(self, base: Floats) -> None:
        rows = np.arange(self._count, dtype=np.int32)
        self._highs.changeRowsBounds(
            self._count, rows, base / self.rows.rate_unit, np.full(self._count, INFINITY)
        )

    def _set_limits(self) -> None:
        count = len(self._limits)
        rows = np.arange(self._first_limit, self._first_limit + count, dtype=np.int32)
        self._highs.changeRowsBounds(
            count, rows, np.full(count, -INFINITY), self._limits / self.rows.limit_unit
        )

    def _solve(self, unit: float) -> Solution:
        status = solved(self._highs)
        if status == highspy.HighsModelStatus.kUnboundedOrInfeasible:
            status = self._which()
        if status == highspy.HighsModelStatus.kOptimal:
            return self._optimal(unit)
        if status == highspy.HighsModelStatus.kUnbounded:
            return self._nothing(Outcome.UNBOUNDED, INFINITY)
        if status == highspy.HighsModelStatus.kInfeasible:
            return self._nothing(Outcome.INFEASIBLE, -INFINITY)
        raise SolverError(f"HiGHS stopped with {self._highs.modelStatusToString(status)}")

    def _which(self) -> highspy.HighsModelStatus:
        """Tell unbounded from infeasible by solving for any feasible point."""
        columns = np.arange(len(self._cost), dtype=np.int32)
        self._highs.changeColsCost(len(columns), columns, np.zeros(len(columns)))
        feasible = solved(self._highs) == highspy.HighsModelStatus.kOptimal
        self._highs.changeColsCost(len(columns), columns, self._cost)
        return highspy.HighsModelStatus.kUnbounded if feasible else highspy.HighsModelStatus.kInfeasible

    def _optimal(self, unit: float) -> Solution:
        found = self._highs.getSolution()
        columns, duals = np.array(found.col_value), np.array(found.row_dual)
        first = 1 + self._count
        return Solution(
            Outcome.OPTIMAL,
            unit * self._highs.getObjectiveValue(),
            np.maximum(columns[1:first], 0.0) * self.rows.rate_unit,
            np.maximum(columns[first:], 0.0) * self.rows.unit,
            np.maximum(-duals[: self._count], 0.0) * unit / self.rows.rate_unit,
            np.maximum(duals[self._first_limit :], 0.0) * unit / self.rows.limit_unit,
        )

    def _nothing(self, outcome: Outcome, value: float) -> Solution:
        rates, limits = np.zeros(self._count), np.zeros(len(self._limits))
        return Solution(outcome, value, rates, np.zeros(len(self.rows.unit)), rates, limits)


def _program(rows: Constraints) -> highspy.Highs:
    """The rows r ≥ base + c · direction (both 0 so far), flow and limits."""
    count, variables = len(rows.applications), len(rows.unit)
    own = sparse.eye_array(count, 1 + count + variables, k=1, format="csr")
    body = sparse.csc_array(
        sparse.block_array(
            [
                [own[:, :1], own[:, 1:]],
                [None, rows.flow],
                [None, sparse.hstack([sparse.csr_array((len(rows.limits), count)), rows.scaled_usage])],
            ]
        )
    )
    lower = np.concatenate([np.zeros(count), rows.flow_lower, np.full(len(rows.limits), -INFINITY)])
    flow_upper = np.where(rows.flow_equal, rows.flow_lower, INFINITY)
    upper = np.concatenate([np.full(count, INFINITY), flow_upper, rows.limits / rows.limit_unit])
    width = body.shape[1]
    least = np.zeros(width)
    least[0] = -INFINITY
    return maximiser(body, np.zeros(width), Bounds(least, np.full(width, INFINITY)), Bounds(lower, upper))
