"""A cache of what the linear program said before, with bounds that certify it.

Each program leaves two things that hold everywhere. Its duals a are a side of the region, a · r ≤ b, so headroom is
at most (b − a·p) / (a·w) at any p. Its routing carries at any p what `fixed_headroom` says, so headroom is at least
that. If the two agree the answer is as good as the program's; if not, the program runs and both are cached.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.bursts.assignment import loads, routing
from analytics.bursts.highs import INFINITY, Floats
from analytics.bursts.solver import Outcome, Solver

AGREEMENT = 0.01
"""How far the bounds may lie apart, as a share of the headroom with no input at all."""
MOST_CUTS = 2000
MOST_ROUTINGS = 64


@dataclass(frozen=True)
class Sandwich:
    """Headroom is from ``lower``, which ``routing`` (V,) carries, to ``upper``; ``solved``: by the program."""

    lower: float
    upper: float
    routing: Floats | None
    solved: bool


class CutCache:
    """Sides and routings of one model met so far. Not for several threads at once."""

    def __init__(self, solver: Solver, weights: npt.ArrayLike | None = None) -> None:
        self._solver = solver
        count = len(solver.rows.applications)
        self._towards = np.ones(count) if weights is None else solver.rows.rates(weights)
        self._cuts = np.zeros((0, count))
        self._bounds = np.zeros(0)
        self._routings: list[Floats] = []
        self._loads = np.zeros((0, count))
        self._growth = np.zeros(0)
        base = self._learn(np.zeros(count))
        self._agreement = AGREEMENT * base.upper if np.isfinite(base.upper) else 0.0

    def __len__(self) -> int:
        return len(self._bounds)

    def upper(self, rates: npt.NDArray[np.float64]) -> Floats:
        """(T,) The most the headroom can be at each of (T, Q) rates: one matrix product for a whole history."""
        if not len(self):
            return np.full(len(rates), INFINITY)
        return np.asarray((self._bounds[:, None] - self._cuts @ rates.T).min(axis=0))

    def look(self, rates: Floats) -> Sandwich:
        """What is known without solving anything."""
        upper = float((self._bounds - self._cuts @ rates).min()) if len(self) else INFINITY
        if not self._routings:
            return Sandwich(-INFINITY, upper, None, solved=False)
        limits = self._solver.rows.limits
        room = limits - (self._loads @ rates).reshape(-1, len(limits))
        growth = self._growth.reshape(-1, len(limits))
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.where(growth > 0, room / growth, np.where(room < 0, -INFINITY, INFINITY)).min(axis=1)
        best = int(least.argmax())
        return Sandwich(float(least[best]), upper, self._routings[best], solved=False)

    def answer(self, rates: npt.ArrayLike, agreement: float | None = None) -> Sandwich:
        """Headroom from the cache if its bounds agree to within ``agreement``, else from the program.

        Raises
        ------
        ValueError
            If the rates are none.
        """
        start = self._solver.rows.rates(rates)
        known = self.look(start)
        if known.upper - known.lower <= (self._agreement if agreement is None else agreement):
            return known
        return self._learn(start)

    def _learn(self, rates: Floats) -> Sandwich:
        solution = self._solver.along(rates, self._towards)
        if solution.outcome is not Outcome.OPTIMAL:
            return Sandwich(solution.value, solution.value, None, solved=True)
        self._add_cut(solution.weights)
        per_input = routing(self._solver, solution)
        unit_loads = loads(self._solver.rows, per_input)
        kept = self._routings[-(MOST_ROUTINGS - 1) :]
        rows = len(self._solver.rows.limits)
        self._loads = np.vstack([self._loads[-len(kept) * rows :] if kept else self._loads[:0], unit_loads])
        self._growth = self._loads @ self._towards
        self._routings = [*kept, per_input]
        return Sandwich(solution.value, solution.value, per_input, solved=True)

    def _add_cut(self, weights: Floats) -> None:
        """Keep a side, scaled to weights · towards = 1, with the bound a second program proves."""
        along = float(weights @ self._towards)
        if along <= 0 or len(self) >= MOST_CUTS:
            return
        cut = weights / along
        known = (np.abs(self._cuts - cut) <= 1e-9 * np.abs(cut).max()).all(axis=1)
        if known.any():
            return
        proof = self._solver.farthest(cut)
        if proof.outcome is Outcome.OPTIMAL:
            self._cuts = np.vstack([self._cuts, cut])
            self._bounds = np.append(self._bounds, proof.value)
