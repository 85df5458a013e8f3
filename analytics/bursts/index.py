"""BARRE's point index: feasible points found once, combined to a plan wherever the inputs are.

Building it: the points on the axes make one side. From the middle of a side a ray goes outwards, along the side's
normal, to the edge of the region; if that is farther than a tolerance it is a new point, and the side is replaced
by those with one corner swapped for it.

Using it: a point p is projected along (1, …, 1), as all inputs grow together; the nearest projected points come
from an R-tree; and among the sides around them one has p + c·1 = Σ a·point with all a ≥ 0. Then Σ a·plan is
feasible, since the region is convex. Where the paper has holes (the nearest point need not belong to the right
side, and p may lie beyond all sides) every side is tried and then the linear program answers.

Dominated points stay in the index, unlike in the paper: dropping one drops the sides around it.

Source: Drougas and Kalogeraki, IPDPS 2009.
"""

from __future__ import annotations

import io
import zipfile
from collections import deque
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from rtree import index as rtree_index

from analytics.bursts.constraints import Ints
from analytics.bursts.headroom import lexicographic
from analytics.bursts.highs import INFINITY, Floats
from analytics.bursts.solver import Outcome, Solution, Solver

TOLERANCE = 0.05
MOST_PROGRAMS = 300
NEAREST = 3
INSIDE = 1e-9
"""Barycentric coordinates above minus this count as 0."""


class StaleIndexError(ValueError):
    """The index was made for another version of the model."""


@dataclass(frozen=True)
class PointIndex:
    """Points on the edge of a model's region, with plans; made by `point_index`.

    Attributes
    ----------
    version
        Of the model.
    points, plans
        (P, Q) rates and (P, V) what each variable handles there.
    sides
        (S, Q) The points that are each side's corners.
    programs
        How many linear programs it took.
    complete
        Whether no side can be moved by more than the tolerance; otherwise the number of programs ran out.
    """

    version: str
    points: Floats
    plans: Floats
    sides: Ints
    programs: int
    complete: bool


class Found(StrEnum):
    """Where a plan came from."""

    NEAR = "near"
    ANY_SIDE = "any_side"
    PROGRAM = "program"


@dataclass(frozen=True)
class Plan:
    """``growth``: what all inputs can grow by with ``plan`` (V,), which handles ``target`` (Q,) and less."""

    growth: float
    target: Floats
    plan: Floats
    found: Found


def point_index(
    solver: Solver, tolerance: float = TOLERANCE, most_programs: int = MOST_PROGRAMS
) -> PointIndex | None:
    """Build the index of a model; None if nothing limits an application or nothing fits.

    Parameters
    ----------
    tolerance
        How far a ray must go to make a new point, as a share of the length of where it starts.
    """
    count = len(solver.rows.applications)
    ends = [solver.farthest(one) for one in np.eye(count)]
    if any(end.outcome is not Outcome.OPTIMAL for end in ends):
        return None
    found = [_scaled_to(solver, end, end.value * one) for end, one in zip(ends, np.eye(count), strict=True)]
    final: list[tuple[int, ...]] = []
    open_ = deque([tuple(range(count))])
    programs = count
    while open_:
        side = open_.popleft()
        moved = None
        if programs < most_programs and count > 1:
            programs += 1
            moved = _ray(solver, np.array([found[k][0] for k in side]), tolerance)
        if moved is None:
            final.append(side)
            continue
        found.append(moved)
        open_.extend((*side[:k], *side[k + 1 :], len(found) - 1) for k in range(count))
    return PointIndex(
        solver.rows.version,
        np.array([point for point, _ in found]),
        np.array([plan for _, plan in found]),
        np.array(final, dtype=np.int64),
        programs,
        programs < most_programs,
    )


def _ray(solver: Solver, corners: Floats, tolerance: float) -> tuple[Floats, Floats] | None:
    """The end of the ray from the middle of a side with its plan, if that is far enough."""
    middle = corners.mean(axis=0)
    scale = np.where(corners.max(axis=0) > 0, corners.max(axis=0), 1.0)
    # Scaled for the solution only: with points P in rows, the normal n has P·n = 1.
    normal = np.linalg.lstsq(corners / scale, np.ones(len(corners)), rcond=None)[0] / scale
    normal = np.maximum(normal, 0.0)
    if not normal.any():
        return None
    direction = normal / np.linalg.norm(normal)
    solution = solver.along(middle, direction)
    if solution.outcome is not Outcome.OPTIMAL or solution.value <= tolerance * np.linalg.norm(middle):
        return None
    return _scaled_to(solver, solution, middle + solution.value * direction)


def _scaled_to(solver: Solver, solution: Solution, point: Floats) -> tuple[Floats, Floats]:
    """A point a solution dominates, and the solution's plan with each application scaled down to it."""
    share = np.divide(point, solution.rates, out=np.zeros(len(point)), where=solution.rates > 0)
    return point, solution.plan * np.minimum(share, 1.0)[solver.rows.application_of]


class Lookup:
    """A point index made ready for questions: R-tree, sides around each point, barycentric matrices."""

    def __init__(self, index: PointIndex) -> None:
        self.index = index
        count = index.points.shape[1]
        self._basis = _across(count)
        corners = index.points[index.sides]
        self._unit = float(index.points.max()) or 1.0
        matrices = np.ones((len(corners), count + 1, count + 1))
        matrices[:, :count, :count] = corners.transpose(0, 2, 1) / self._unit
        matrices[:, :count, count] = -1.0
        matrices[:, count, count] = 0.0
        usable = np.linalg.cond(matrices) < 1e12
        self._sides = index.sides[usable]
        self._inverse = np.linalg.inv(matrices[usable])
        self._around = [
            np.flatnonzero((self._sides == point).any(axis=1)) for point in range(len(index.points))
        ]
        self._tree = self._planted()

    def _planted(self) -> rtree_index.Index:
        projected = self.index.points @ self._basis
        boxes = ((k, (*point, *point), None) for k, point in enumerate(projected.tolist()))
        properties = rtree_index.Property(dimension=projected.shape[1])
        return rtree_index.Index(boxes, properties=properties)

    def plan(self, rates: Floats, version: str) -> Plan | None:
        """A plan for these rates grown by the same amount each; None beyond all sides.

        Raises
        ------
        StaleIndexError
            If the index is not of this version of the model.
        """
        if version != self.index.version:
            raise StaleIndexError(f"the index is for model {self.index.version}, not {version}")
        projected = (rates @ self._basis).tolist()
        for point in self._tree.nearest((*projected, *projected), NEAREST):
            plan = self._among(self._around[point], rates, Found.NEAR)
            if plan is not None:
                return plan
        return self._among(np.arange(len(self._sides)), rates, Found.ANY_SIDE)

    def _among(self, sides: Ints, rates: Floats, found: Found) -> Plan | None:
        """The best of those of some sides that the rates, all grown by the same, lie on."""
        weights = self._inverse[sides] @ np.append(rates / self._unit, 1.0)
        inside = np.flatnonzero(weights[:, :-1].min(axis=1, initial=INFINITY) >= -INSIDE)
        if not len(inside):
            return None
        best = inside[weights[inside, -1].argmax()]
        shares = np.maximum(weights[best, :-1], 0.0)
        shares = shares / shares.sum()
        corners = self._sides[sides[best]]
        target = shares @ self.index.points[corners]
        growth = float((target - rates).min())
        return Plan(growth, target, shares @ self.index.plans[corners], found)


def planned(solver: Solver, lookup: Lookup | None, rates: npt.ArrayLike) -> Plan:
    """A plan from the index if there is one, or where it has none for the rates from the lexicographic program.

    Raises
    ------
    StaleIndexError
        If the index is not of the solver's model.
    ValueError
        If the rates are none.
    """
    start = solver.rows.rates(rates)
    plan = None if lookup is None else lookup.plan(start, solver.rows.version)
    if plan is not None and plan.growth >= 0:
        return plan
    _, levels = lexicographic(solver, start)
    last = levels[-1].solution
    return Plan(levels[0].solution.value, last.rates, last.plan, Found.PROGRAM)


def _across(count: int) -> Floats:
    """(Q, max(Q − 1, 2)) Orthonormal columns, each across (1, …, 1); R-trees want two dimensions at least."""
    basis = np.zeros((count, max(count - 1, 2)))
    for k in range(1, count):
        basis[:k, k - 1] = 1.0
        basis[k, k - 1] = -float(k)
        basis[:, k - 1] /= np.sqrt(k * (k + 1))
    return basis


def packed(index: PointIndex) -> bytes:
    """The index as bytes to store; `unpacked` reads them."""
    body = io.BytesIO()
    arrays = {name: getattr(index, name) for name in ("points", "plans", "sides")}
    numbers = np.array([index.programs, index.complete], dtype=np.int64)
    np.savez_compressed(body, version=np.array(index.version), numbers=numbers, **arrays)
    return body.getvalue()


def unpacked(body: bytes) -> PointIndex:
    """The index of `packed`.

    Raises
    ------
    ValueError
        If these bytes are no index.
    """
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as stored:
            programs, complete = stored["numbers"].tolist()
            points, plans, sides = (stored[name] for name in ("points", "plans", "sides"))
            return PointIndex(str(stored["version"]), points, plans, sides, programs, bool(complete))
    except (OSError, KeyError, EOFError, zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"these bytes are no point index: {error}") from error
