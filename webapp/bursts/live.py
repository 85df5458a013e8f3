"""What a page asks while somebody looks: the same model with other capacities, costs or rates, solved at once.

Solvers stay warm between questions, one for each changed model. They are not for several threads at once, so each
has a lock.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from analytics.bursts.assignment import KEY_GROUPS, rebalance
from analytics.bursts.constraints import constraints
from analytics.bursts.cuts import CutCache
from analytics.bursts.headroom import binding_limits, lexicographic, proportional_headroom
from analytics.bursts.region import pair_region
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import BindingLimit, Rebalance, Region
from analytics.model.bursts import BurstModel, with_application_cost, with_capacity
from analytics.model.diagnostics import Diagnostic

KEPT_SOLVERS = 24


@dataclass(frozen=True, slots=True)
class Change:
    """What is tried out: a node's capacity, an application's cost per record, the loss of a node ("": none).

    The capacity is of one ``resource``, "": of all that the node has. Each ratio is of what it is now.
    ``rate_ratio`` is of ``rate_of``'s input, "": of all.
    """

    node: str = ""
    capacity_ratio: float = 1.0
    application: str = ""
    cost_ratio: float = 1.0
    rate_of: str = ""
    rate_ratio: float = 1.0
    lost: str = ""
    resource: str = ""

    @property
    def is_nothing(self) -> bool:
        """Whether all is as it is."""
        return not self.lost and self.capacity_ratio == self.cost_ratio == self.rate_ratio == 1.0


NOTHING = Change()


@dataclass(frozen=True, slots=True)
class Live:
    """Answers about one point. ``fits_ratio`` is of what was asked beside it; ``took_ms`` is the solver's time."""

    rates: tuple[float, ...]
    joint: float
    each: tuple[float, ...]
    target: tuple[float, ...]
    proportional: float
    binding: tuple[BindingLimit, ...]
    region: Region | None
    fits_ratio: float | None
    took_ms: float


class _Warm:
    """A solver with its lock, and what it has shown to hold everywhere."""

    def __init__(self, model: BurstModel) -> None:
        self.solver = Solver(constraints(model))
        self.lock = threading.Lock()

    @cached_property
    def cuts(self) -> CutCache:
        return CutCache(self.solver)


_warm: OrderedDict[tuple[object, ...], _Warm] = OrderedDict()
_guard = threading.Lock()


@contextmanager
def solver(model: BurstModel, change: Change = NOTHING) -> Iterator[Solver]:
    """The warm solver of a model, changed in this way; nobody else uses it meanwhile."""
    found = _kept(model, change)
    with found.lock:
        rows = found.solver.rows
        lost = rows.nodes.index(change.lost) if change.lost in rows.nodes else None
        with nullcontext() if lost is None else found.solver.without_node(lost):
            yield found.solver


@contextmanager
def solver_and_cuts(model: BurstModel) -> Iterator[tuple[Solver, CutCache]]:
    """The warm solver of a model as it is, and the cache of its cuts; nobody else uses them meanwhile."""
    found = _kept(model, NOTHING)
    with found.lock:
        yield found.solver, found.cuts


def _kept(model: BurstModel, change: Change) -> _Warm:
    node = (change.node, change.resource, change.capacity_ratio) if change.capacity_ratio != 1.0 else None
    cost = (change.application, change.cost_ratio) if change.cost_ratio != 1.0 else None
    key = (model.version, node, cost)
    with _guard:
        found = _warm.get(key)
        if found is not None:
            _warm.move_to_end(key)
    if found is None:
        found = _Warm(_changed(model, change))
        with _guard:
            found = _warm.setdefault(key, found)
            while len(_warm) > KEPT_SOLVERS:
                _warm.popitem(last=False)
    return found


def _changed(model: BurstModel, change: Change) -> BurstModel:
    node = next((one for one in model.nodes if one.name == change.node), None)
    if node is not None and change.capacity_ratio != 1.0:
        for resource in node.capacity:
            if change.resource in ("", resource):
                model = with_capacity(model, node.name, resource, change.capacity_ratio)
    if change.cost_ratio != 1.0 and any(one.name == change.application for one in model.applications):
        model = with_application_cost(model, change.application, change.cost_ratio)
    return model


def changed_rates(model: BurstModel, rates: Sequence[float], change: Change) -> tuple[float, ...]:
    """The operating point as it is tried out."""
    return tuple(
        rate * change.rate_ratio if change.rate_of in ("", one.name) else rate
        for one, rate in zip(model.applications, rates, strict=True)
    )


def solve(
    model: BurstModel,
    rates: Sequence[float],
    change: Change,
    pair: tuple[int, int] | None = None,
    beside: Sequence[float] | None = None,
) -> Live:
    """Headroom, what binds, and the map of a pair, as things would be.

    Parameters
    ----------
    beside
        (Q,) Other rates of which it is asked by how much they fit (``fits_ratio``, at least 1 if they do).

    Raises
    ------
    ValueError
        If the rates are not one number of at least 0 for each application.
    """
    began = time.perf_counter()
    start = changed_rates(model, rates, change)
    with solver(model, change) as warm:
        growth, levels = lexicographic(warm, start)
        joint = levels[0].solution.value
        target = np.maximum(np.array(start) + np.where(np.isfinite(growth), growth, 0.0), 0.0)
        found = Live(
            rates=start,
            joint=joint,
            each=tuple(growth.tolist()),
            target=tuple(target.tolist()),
            proportional=proportional_headroom(warm, start),
            binding=binding_limits(warm, levels),
            region=None if pair is None else pair_region(warm, start, *pair),
            fits_ratio=None if beside is None else proportional_headroom(warm, beside),
            took_ms=0.0,
        )
    return replace(found, took_ms=1e3 * (time.perf_counter() - began))


def routing(
    model: BurstModel, rates: Sequence[float], groups: int = KEY_GROUPS
) -> tuple[Rebalance, tuple[Diagnostic, ...]]:
    """Routing that carries every burst up to the headroom, exact and rounded to key groups.

    Raises
    ------
    ValueError
        If the rates are none, or the groups too few.
    """
    with solver(model) as warm:
        return rebalance(warm, rates, groups)
