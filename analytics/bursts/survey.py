"""Everything that is computed in advance about one cluster: what a page shows before anybody asks for more."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, node_losses
from analytics.bursts.index import PointIndex, point_index
from analytics.bursts.region import pair_region
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import Survey
from analytics.model.bursts import BurstModel, machines

MOST_MAPPED = 8
"""Applications of which all pairs are mapped, those with most load: 28 maps still fit a screen."""

MOST_LOST = 200
"""Nodes up to which the loss of each is computed; of a larger cluster none is."""


def survey(model: BurstModel, rates: tuple[float, ...]) -> Survey:
    """Headroom at these rates, after the loss of each machine, and the map of every pair of applications.

    Of many applications only those are mapped that stand closest to what they could take alone.

    Raises
    ------
    ValueError
        If the rates are not one number of at least 0 for each application.
    """
    solver = Solver(constraints(model))
    answer = headroom(solver, rates)
    maps = []
    for first, second in combinations(mapped(answer.rates, answer.max_rate), 2):
        region = pair_region(solver, rates, first, second)
        if region is not None:
            maps.append(region)
    lost = machines(model)
    losses = node_losses(solver, rates, frozenset(lost)) if len(lost) <= MOST_LOST else ()
    return Survey(answer, losses, tuple(maps))


def mapped(rates: tuple[float, ...], most: tuple[float, ...]) -> list[int]:
    """The applications that are mapped, in the model's order."""
    if len(rates) <= MOST_MAPPED:
        return list(range(len(rates)))
    load = [rate / end if end else np.inf for rate, end in zip(rates, most, strict=True)]
    fullest = sorted(range(len(rates)), key=lambda q: -load[q])[:MOST_MAPPED]
    return sorted(fullest)


def axis_index(model: BurstModel) -> PointIndex | None:
    """BARRE's index of one point an application, as the paper's size of 12 at 12 applications suggests.

    None if nothing limits an application.
    """
    return point_index(Solver(constraints(model)), tolerance=float("inf"))
