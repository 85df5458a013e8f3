"""How much any one application can grow by, whichever it is, under one routing that does not change.

This is what BARRE really wants; the joint headroom is only sufficient for it. With shares φ of routing as variables
(per application, of a stage's input) the load of node n when application q grows by c is

    Σ over all applications of p · cost · φ  +  c · cost · φ of q alone,

which is linear in φ for a fixed c. If some φ does for c it does for less, so c is found by bisection; every φ found
on the way gives a better lower bound in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass

import highspy
import numpy as np
import numpy.typing as npt
from scipy import sparse

from analytics.bursts.constraints import Constraints
from analytics.bursts.highs import INFINITY, Bounds, Floats, SolverError, maximiser, solved

PRECISION = 1e-9
"""Of the result, as a share of the upper bound the search starts with."""


@dataclass(frozen=True)
class SingleHeadroom:
    """``value`` as in `single_headroom`; ``shares`` (V,): what each variable handles per input of its application.

    ``shares`` is None if the routing need not be known: the value is not positive or has no bound.
    """

    value: float
    shares: Floats | None


def single_headroom(
    rows: Constraints, rates: Floats, least: float, most: float, weights: npt.ArrayLike | None = None
) -> SingleHeadroom:
    """The largest c such that one routing carries ``rates`` with any one application at p + c · weight.

    Parameters
    ----------
    least, most
        Bounds to start from: the joint headroom, and the least that any application can grow by alone.

    Returns
    -------
    SingleHeadroom
        ``least`` if that is not positive (then the rates themselves hardly fit).
    """
    if least <= 0 or most == INFINITY:
        return SingleHeadroom(least if least <= 0 else most, None)
    towards = np.ones(len(rates)) if weights is None else np.asarray(weights, dtype=float)
    program = _Program(rows, rates, towards)
    found = program.routing(least * (1 - PRECISION))
    if found is None:
        raise SolverError("a joint plan was no plan for single bursts")
    low, shares = max(least, program.carried(found)), found
    high, tolerance = max(most, low), PRECISION * most
    risen = True
    while high - low > tolerance:
        # After a step up the bound may be exact already, which one more program just above it proves.
        middle = low + tolerance if risen else (low + high) / 2
        found = program.routing(middle)
        risen = found is not None
        if found is None:
            high = middle
        else:
            low, shares = max(middle, program.carried(found)), found
    return SingleHeadroom(low, shares * rows.unit / rows.rate_unit[rows.application_of])


class _Program:
    """Maximise the slack t of every limit for one c; only the factors of c change between questions.

    Columns: t, shares (scaled: at a rate of 1 unit), load of each limit at the present rates.
    """

    def __init__(self, rows: Constraints, rates: Floats, towards: Floats) -> None:
        self._variables = len(rows.unit)
        self._usage = sparse.coo_array(rows.scaled_usage)
        self._limits = rows.limits / rows.limit_unit
        owner = rows.application_of[self._usage.col]
        present = rates / rows.rate_unit
        self._now = self._usage.data * present[owner]
        self._growth = self._usage.data * (towards / rows.rate_unit)[owner]
        # One row for each pair of a limit and an application that uses it.
        key = self._usage.row.astype(np.int64) * len(rates) + owner
        pairs, self._pair = np.unique(key, return_inverse=True)
        self._pair_limit = pairs // len(rates)
        self._first_pair = len(rows.flow_lower) + len(self._limits)
        matrix = self._matrix(rows)
        most = np.full(matrix.shape[1], INFINITY)
        least = np.zeros(matrix.shape[1])
        least[0], most[0] = -INFINITY, 1.0
        cost = np.eye(1, matrix.shape[1])[0]
        self._highs = maximiser(matrix, cost, Bounds(least, most), self._bounds(rows))

    def _matrix(self, rows: Constraints) -> sparse.csc_array:
        limits, pairs = len(self._limits), len(self._pair_limit)
        flow = sparse.csc_array(rows.flow)[:, len(rows.rate_unit) :]
        now = sparse.coo_array(
            (self._now, (self._usage.row, self._usage.col)), shape=(limits, self._variables)
        )
        # Limits of 0 get no slack: nothing can be spared of nothing.
        slack = (self._limits[self._pair_limit] > 0).astype(float)
        growth = sparse.coo_array(
            (self._growth, (self._pair, self._usage.col)), shape=(pairs, self._variables)
        )
        own = sparse.coo_array((np.ones(pairs), (np.arange(pairs), self._pair_limit)), shape=(pairs, limits))
        return sparse.csc_array(
            sparse.block_array(
                [
                    [sparse.csc_array((flow.shape[0], 1)), flow, None],
                    [None, now, -sparse.eye_array(limits)],
                    [sparse.csc_array(slack[:, None]), growth, own],
                ]
            )
        )

    def _bounds(self, rows: Constraints) -> Bounds:
        # Input is 1 for every application, so its column moves to the other side.
        inputs = -np.asarray(sparse.csc_array(rows.flow)[:, : len(rows.rate_unit)].sum(axis=1)).ravel()
        limits, pairs = len(self._limits), len(self._pair_limit)
        lower = np.concatenate([inputs, np.zeros(limits), np.full(pairs, -INFINITY)])
        upper = np.concatenate(
            [
                np.where(rows.flow_equal, inputs, INFINITY),
                np.zeros(limits),
                self._limits[self._pair_limit],
            ]
        )
        return Bounds(lower, upper)

    def routing(self, growth: float) -> Floats | None:
        """Scaled shares that carry this growth of any one application; None if there are none."""
        values = (growth * self._growth).tolist()
        rows = (self._first_pair + self._pair).tolist()
        columns = (1 + self._usage.col).tolist()
        for row, column, value in zip(rows, columns, values, strict=True):
            self._highs.changeCoeff(row, column, value)
        status = solved(self._highs)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"HiGHS stopped with {self._highs.modelStatusToString(status)}")
        if self._highs.getObjectiveValue() < 0:
            return None
        found: Floats = np.array(self._highs.getSolution().col_value)
        return np.maximum(found[1 : 1 + self._variables], 0.0)

    def carried(self, shares: Floats) -> float:
        """The growth of any one application that these scaled shares carry."""
        limits, pairs = len(self._limits), len(self._pair_limit)
        load = np.bincount(self._usage.row, self._now * shares[self._usage.col], limits)
        growth = np.bincount(self._pair, self._growth * shares[self._usage.col], pairs)
        room = (self._limits - load)[self._pair_limit]
        used = growth > 0
        return float((room[used] / growth[used]).min(initial=INFINITY))
