"""Bursts played against five ways to route: what is dropped, what is late.

A fluid model of loss. In each step every component gets its share of what its stage gets; a node that would need
more of a resource than it has admits the same part of everything that comes, and what a stage drops never reaches
the next. Since nodes are shared by early and late stages, the admitted parts are found as a damped fixed point.
Time at a component is what a shared processor takes, service time / (1 − utilisation), up to a full buffer; a
unit's time is taken as exponential when it is compared with its deadline. An application's deadline is the same
whatever the strategy: slower routing has no more time.

The ways: a plan with the least total work at the normal rates (burst-unaware); the same with a fifth of everything
reserved; a new plan some steps after the rates changed (dynamic adaptation), with and without reservation; and
BARRE's routing, taken at the target of the largest burst and never changed.

Source: Drougas and Kalogeraki, IPDPS 2009, section on evaluation; the model of loss and time is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analytics.bursts.assignment import fractions, routing
from analytics.bursts.constraints import Constraints, constraints
from analytics.bursts.headroom import lexicographic, proportional_headroom
from analytics.bursts.highs import Floats
from analytics.bursts.solver import Outcome, Solver
from analytics.model.burst_answers import SimulatedBursts, Strategy
from analytics.model.bursts import BurstModel

RESERVED_RATIO = 0.2
BUFFER = 50
"""Times its service time that a unit waits at most; what would wait longer is dropped."""
DEADLINE = 20
"""Times what an application's units take with idle nodes and burst-unaware routing: the same for all strategies."""
SETTLED = 1e-9
_MOST_ROUNDS = 500
_NOTHING_LEFT = 1e-12


@dataclass(frozen=True)
class Scenario:
    """When which applications burst.

    ``length`` steps, of which each application bursts for ``burst_steps`` at a time with a pause of ``pause_steps``
    on average; ``reaction_steps`` pass until dynamic adaptation has detected, solved and applied.
    """

    length: int = 400
    burst_steps: int = 10
    pause_steps: int = 30
    reaction_steps: int = 3
    seed: int = 0


def burst_rates(rates: npt.ArrayLike, intensity_ratio: float, scenario: Scenario) -> Floats:
    """(T, Q) Rates with random bursts of one intensity; the same seed bursts at the same times."""
    rng = np.random.default_rng(scenario.seed)
    base = np.asarray(rates, dtype=float)
    bursting = np.zeros((scenario.length, len(base)), dtype=bool)
    for q in range(len(base)):
        step = int(rng.integers(1, 2 * scenario.pause_steps))
        while step < scenario.length:
            bursting[step : step + scenario.burst_steps, q] = True
            step += scenario.burst_steps + int(rng.integers(1, 2 * scenario.pause_steps))
    return np.asarray(base * (1 + intensity_ratio * bursting))


def compare(
    model: BurstModel,
    rates: npt.ArrayLike,
    intensity_ratios: Sequence[float],
    scenario: Scenario | None = None,
) -> tuple[SimulatedBursts, ...]:
    """Every strategy at every intensity, from the same normal rates.

    Raises
    ------
    ValueError
        If an application is in edge form, or the rates are none or do not fit.
    """
    if any(application.edges for application in model.applications):
        raise ValueError("bursts can only be simulated where components of a stage send to all of the next")
    played = scenario or Scenario()
    solver = Solver(constraints(model))
    normal = solver.rows.rates(rates)
    if normal.any() and proportional_headroom(solver, normal) < 1:
        raise ValueError("the rates do not fit even without bursts")
    flow = _Flow(model, solver.rows)
    plans = _Plans(solver, normal)
    deadlines = DEADLINE * flow.idle_times(plans.shares(Strategy.UNAWARE, normal[None, :], 0))
    found = []
    for ratio in intensity_ratios:
        offered = burst_rates(normal, ratio, played)
        for strategy in Strategy:
            shares = plans.shares(strategy, offered, played.reaction_steps)
            found.append(flow.outcome(strategy, ratio, offered, shares, deadlines))
    return tuple(found)


class _Plans:
    """Shares of components under each strategy, for rates as they come."""

    def __init__(self, solver: Solver, normal: Floats) -> None:
        self._solver, self._normal = solver, normal
        self._known: dict[tuple[bool, bytes], Floats] = {}

    def shares(self, strategy: Strategy, offered: Floats, reaction_steps: int) -> Floats:
        """(T, n) or (1, n) shares."""
        if strategy is Strategy.BARRE:
            return self._burst_ready()[None, :]
        reserved = strategy in (Strategy.RESERVED, Strategy.ADAPTIVE_RESERVED)
        if strategy in (Strategy.UNAWARE, Strategy.RESERVED):
            return self._cheapest(self._normal, reserved)[None, :]
        seen = np.vstack([np.tile(self._normal, (reaction_steps, 1)), offered])[: len(offered)]
        return np.array([self._cheapest(step, reserved) for step in seen])

    def _burst_ready(self) -> Floats:
        # These bursts are in proportion to the rates, so the headroom asked for is too.
        weights = self._normal if self._normal.any() else None
        _, levels = lexicographic(self._solver, self._normal, weights)
        best = [level.solution for level in levels if level.solution.outcome is Outcome.OPTIMAL][-1]
        return fractions(self._solver.rows, routing(self._solver, best))

    def _cheapest(self, rates: Floats, reserved: bool) -> Floats:
        """The least work for these rates, or for as large a part of them as fits."""
        key = (reserved, rates.tobytes())
        if key not in self._known:
            limits = self._solver.rows.limits * (1 - RESERVED_RATIO if reserved else 1.0)
            with self._solver.with_limits(limits):
                part = min(proportional_headroom(self._solver, rates) * (1 - SETTLED), 1.0)
                plan = self._solver.cheapest(part * rates).plan
            self._known[key] = fractions(self._solver.rows, plan)
        return self._known[key]


class _Flow:
    """Stages in the order records pass them, and the limits their components share."""

    def __init__(self, model: BurstModel, rows: Constraints) -> None:
        self._rows = rows
        self._stages: list[tuple[int, npt.NDArray[np.int64], list[int], bool]] = []
        self._selectivity: list[float] = []
        for q, application in enumerate(model.applications):
            first = len(self._stages)
            names = [stage.name for stage in application.stages]
            read = {name for stage in application.stages for name in stage.inputs}
            for stage in application.stages:
                members = np.flatnonzero(rows.stage_of == len(self._stages))
                inputs = [first + names.index(name) for name in stage.inputs]
                self._stages.append((q, members, inputs, stage.name not in read))
                self._selectivity.append(stage.selectivity)
        usage = np.asarray(rows.usage.todense())[:, : len(rows.components)]
        limits = np.maximum(rows.limits, rows.limit_unit * _NOTHING_LEFT)
        self._service: Floats = usage / limits[:, None]

    def idle_times(self, shares: Floats) -> Floats:
        """(1, Q) What a unit of each application takes with idle nodes, for (1, n) shares."""
        return self._delays(shares, np.zeros((1, len(self._rows.limits))))

    def outcome(
        self, strategy: Strategy, ratio: float, offered: Floats, shares: Floats, deadlines: Floats
    ) -> SimulatedBursts:
        """Play one series of rates with given shares, against a (1, Q) deadline of each application."""
        admitted = np.ones((len(offered), shares.shape[1]))
        for _ in range(_MOST_ROUNDS):
            arriving, delivered = self._pass(offered, shares, admitted)
            load: Floats = arriving @ self._service.T
            next_ = 0.5 * admitted + 0.5 * self._admitted(load)
            change = float(np.abs(next_ - admitted).max())
            admitted = next_
            if change < SETTLED:
                break
        through = offered * delivered
        delay = self._delays(shares, load)
        late = np.exp(-deadlines / np.maximum(delay, 1e-300)) * (delay > 0)
        total, came = float(offered.sum()), float(through.sum())
        return SimulatedBursts(
            strategy=strategy,
            intensity_ratio=float(ratio),
            offered=total,
            missed=max(total - came, 0.0),
            on_time_ratio=float((through * (1 - late)).sum()) / total if total else 1.0,
            delay=float((through * delay).sum()) / came if came else 0.0,
        )

    def _pass(self, offered: Floats, shares: Floats, admitted: Floats) -> tuple[Floats, Floats]:
        """(T, n) what arrives at each component, and (T, Q) the share of the input that comes out at the end."""
        arriving = np.zeros_like(admitted)
        out: list[Floats] = []
        full: list[Floats] = []
        delivered: list[list[Floats]] = [[] for _ in self._rows.applications]
        for number, (q, members, inputs, last) in enumerate(self._stages):
            came = sum((out[k] for k in inputs), np.zeros(len(offered))) if inputs else offered[:, q]
            due = sum((full[k] for k in inputs), np.zeros(len(offered))) if inputs else offered[:, q]
            arriving[:, members] = shares[:, members] * came[:, None]
            handled = (arriving[:, members] * admitted[:, members]).sum(axis=1)
            out.append(self._selectivity[number] * handled)
            full.append(self._selectivity[number] * due)
            if last:
                delivered[q].append(np.divide(handled, due, out=np.ones(len(due)), where=due > 0))
        return arriving, np.array([np.mean(ends, axis=0) for ends in delivered]).T

    def _admitted(self, load: Floats) -> Floats:
        """(T, n) The part each component admits: that of the fullest limit it needs."""
        part = 1 / np.maximum(load, 1.0)
        result = np.ones((len(load), self._service.shape[1]))
        for row in range(len(self._service)):
            uses = self._service[row] > 0
            result[:, uses] = np.minimum(result[:, uses], part[:, row, None])
        return result

    def _delays(self, shares: Floats, load: Floats) -> Floats:
        """(T, Q) Mean time of what comes through."""
        wait = 1 / np.maximum(1 - load, 1 / BUFFER)
        here = np.zeros((len(load), self._service.shape[1]))
        for row, service in enumerate(self._service):
            here = np.maximum(here, service[None, :] * wait[:, row, None])
        delays = np.zeros((max(len(load), len(shares)), len(self._rows.applications)))
        for q, members, _, _ in self._stages:
            delays[:, q] += (shares[:, members] * here[:, members]).sum(axis=1)
        return delays
