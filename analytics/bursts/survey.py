"""Everything that is computed in advance about one cluster: what a page shows before anybody asks for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np

from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, max_rates, node_losses
from analytics.bursts.index import PointIndex, point_index
from analytics.bursts.region import pair_region
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import Headroom, NodeLoss, Region, Survey
from analytics.model.bursts import BurstModel, machines

_Item = TypeVar("_Item")

MOST_MAPPED = 8
"""Applications of which all pairs are mapped, those with most load: 28 maps still fit a screen."""

MOST_LOST = 200
"""Nodes up to which the loss of each is computed; of a larger cluster none is."""


@dataclass(frozen=True)
class Part:
    """One of several parts of a survey: every so manieth loss and map; the first part has the headroom too.

    A map is None if nothing limits one of its two applications.
    """

    losses: tuple[NodeLoss, ...]
    maps: tuple[Region | None, ...]
    headroom: Headroom | None = None


def survey(model: BurstModel, rates: tuple[float, ...]) -> Survey:
    """Headroom at these rates, after the loss of each machine, and the map of every pair of applications.

    Of many applications only those are mapped that stand closest to what they could take alone.

    Raises
    ------
    ValueError
        If the rates are not one number of at least 0 for each application.
    """
    return joined([part(model, rates, 0, 1)])


def part(model: BurstModel, rates: tuple[float, ...], number: int, parts: int) -> Part:
    """The part ``number`` (from 0) of ``parts`` of a survey, so that several processes can share a large one.

    Raises
    ------
    ValueError
        As in `survey`.
    """
    solver = Solver(constraints(model))
    most = rates
    if (
        len(rates) > MOST_MAPPED
    ):  # before all else: a solver that has solved more would tell other last digits
        most = tuple(max_rates(solver).tolist())
    answer = headroom(solver, rates) if number == 0 else None
    pairs = list(combinations(mapped(rates, most), 2))[number::parts]
    maps = tuple(pair_region(solver, rates, first, second) for first, second in pairs)
    lost = machines(model)
    mine = frozenset(lost[number::parts]) if len(lost) <= MOST_LOST else frozenset()
    return Part(node_losses(solver, rates, mine), maps, answer)


def joined(parts: Sequence[Part]) -> Survey:
    """The survey of all its parts, in their order.

    Raises
    ------
    ValueError
        If the first is missing.
    """
    answer = parts[0].headroom if parts else None
    if answer is None:
        raise ValueError("the first part of a survey is missing")
    maps = _interleaved([part.maps for part in parts])
    losses = _interleaved([part.losses for part in parts])
    return Survey(answer, tuple(losses), tuple(found for found in maps if found is not None))


def _interleaved(turns: Sequence[Sequence[_Item]]) -> list[_Item]:
    longest = max(map(len, turns))
    return [turn[at] for at in range(longest) for turn in turns if at < len(turn)]


def mapped(rates: tuple[float, ...], most: tuple[float, ...]) -> list[int]:
    """The applications that are mapped, in the model's order.

    Every part of a survey must choose the same, so it must be given the same to the last digit. Loads that hardly
    differ count as equal, lest the choice change with every answer.
    """
    if len(rates) <= MOST_MAPPED:
        return list(range(len(rates)))
    load = [round(rate / end, 5) if end else np.inf for rate, end in zip(rates, most, strict=True)]
    fullest = sorted(range(len(rates)), key=lambda q: -load[q])[:MOST_MAPPED]
    return sorted(fullest)


def axis_index(model: BurstModel) -> PointIndex | None:
    """BARRE's index of one point an application, as the paper's size of 12 at 12 applications suggests.

    None if nothing limits an application.
    """
    return point_index(Solver(constraints(model)), tolerance=float("inf"))
