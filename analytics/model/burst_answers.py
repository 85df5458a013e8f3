"""Answers about bursts, in a form that can be stored and read by pages.

Tuples over applications or components are in the model's order. Nothing limits what is ``inf``; what cannot be
had at any rate is ``-inf``. Rates are in the unit of the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class BindingLimit:
    """A resource of a node that stops growth.

    ``level`` 1 stops the growth of all together, higher ones what could go on. ``price`` is what one unit more of
    the resource adds to that level's headroom, ``gain`` what 10 % more of it really adds (solved again: a price
    holds only up to the next kink).
    """

    node: str
    resource: str
    level: int
    price: float
    gain: float


@dataclass(frozen=True, slots=True)
class Headroom:
    """How much the input rates can grow from ``rates``, and what to do to be ready for it.

    Attributes
    ----------
    version
        Of the model the numbers are for.
    rates
        The operating point.
    max_rate
        The most of each application if the others had none.
    alone
        The most each can grow by while the others stay, with routing adapted to it.
    joint
        The most all can grow by together; negative: what each must shed.
    each
        What each can grow by if those that can still grow after ``joint`` do (lexicographic max–min).
    single
        The most any one can grow by with one routing that need not change, whichever it is. ``joint`` if that is
        negative: then no single application's burst is the question.
    proportional
        What all rates can be multiplied by; below 1 if they do not fit now.
    target
        ``rates`` + ``each``, not below 0; where ``each`` is unlimited, ``rates``.
    shed
        What each must shed now.
    plan
        What each component handles at ``target``.
    binding
        What stops growth, by level and then by price · capacity.
    """

    version: str
    rates: tuple[float, ...]
    max_rate: tuple[float, ...]
    alone: tuple[float, ...]
    joint: float
    each: tuple[float, ...]
    single: float
    proportional: float
    target: tuple[float, ...]
    shed: tuple[float, ...]
    plan: tuple[float, ...]
    binding: tuple[BindingLimit, ...]


@dataclass(frozen=True, slots=True)
class NodeLoss:
    """Headroom after the loss of one node, with routing adapted to it."""

    node: str
    joint: float
    proportional: float


@dataclass(frozen=True, slots=True)
class Facet:
    """A side of a region: ``weights`` · rates ≤ ``bound``, with weights that add up to 1.

    So ``bound`` − weights · rates is how much all can grow by before this side stops them. ``limits`` are the
    (node, resource) pairs that make it.
    """

    weights: tuple[float, ...]
    bound: float
    limits: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Region:
    """All feasible rates of ``applications``, the others staying where they are.

    ``vertices`` are its corners: of two applications in order around it from (0, 0) along the first axis,
    ``facets`` then in the same order. ``pareto`` are the corners where no application can grow without another
    shrinking. Sides on the axes are not listed. Without vertices, nothing fits.
    """

    version: str
    applications: tuple[str, ...]
    vertices: tuple[tuple[float, ...], ...]
    pareto: tuple[tuple[float, ...], ...]
    facets: tuple[Facet, ...]


@dataclass(frozen=True, slots=True)
class Rebalance:
    """Routing that carries bursts without a change; tuples are over components.

    ``fractions`` are the exact shares of each component of its stage and ``joint`` and ``single`` the headroom they
    leave; ``key_groups`` the whole groups out of ``groups`` each gets instead, ``rounded_*`` what those leave.
    """

    version: str
    groups: int
    fractions: tuple[float, ...]
    key_groups: tuple[int, ...]
    joint: float
    single: float
    rounded_joint: float
    rounded_single: float


@dataclass(frozen=True, slots=True)
class Survey:
    """What is computed in advance about a cluster at one operating point: ``maps`` are of pairs of applications."""

    headroom: Headroom
    losses: tuple[NodeLoss, ...]
    maps: tuple[Region, ...]

    @property
    def ratio(self) -> float:
        """By how much all inputs can grow; −0.1: a tenth must be shed."""
        return self.headroom.proportional - 1


class Strategy(StrEnum):
    """A way to get through bursts."""

    UNAWARE = "burst-unaware"
    RESERVED = "static reservation"
    ADAPTIVE = "dynamic adaptation"
    ADAPTIVE_RESERVED = "dynamic + reservation"
    BARRE = "BARRE"


@dataclass(frozen=True, slots=True)
class SimulatedBursts:
    """What became of simulated input under one strategy.

    Attributes
    ----------
    strategy
        How it was routed.
    intensity_ratio
        How much the bursting applications' rates grew: 0.5 is half more.
    offered, missed
        Units that came in and units dropped on the way.
    on_time_ratio
        Share of the offered units that came through within their deadline.
    delay
        Mean time of those that came through, in the model's unit.
    """

    strategy: Strategy
    intensity_ratio: float
    offered: float
    missed: float
    on_time_ratio: float
    delay: float
