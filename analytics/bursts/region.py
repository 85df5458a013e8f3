"""Exact feasible regions: of a pair of applications at the present point, and of up to five in full.

A region is the projection of the linear program on some rates. It is convex and, because less input is always
feasible too, down-closed. Both algorithms ask the program for the farthest feasible point in the direction of a
side that they know; if it is no farther the side is final, else it is a new corner. The duals of that last program
say which limits make the side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from analytics.bursts.constraints import Constraints, Ints
from analytics.bursts.highs import Floats
from analytics.bursts.solver import Outcome, Solution, Solver
from analytics.model.burst_answers import Facet, Region

NO_FARTHER = 2e-6
"""Relative; smaller steps than this are the solver's tolerance, and following them would not end."""
MOST_APPLICATIONS = 5
"""In full: with six, two resources have thousands of sides."""
MOST_SIDES = 2000
_PRICED = 1e-7
_Corners = tuple[tuple[float, ...], ...]


def pair_region(solver: Solver, rates: Sequence[float], first: int, second: int) -> Region | None:
    """The feasible rates of two applications while the others keep theirs.

    Returns
    -------
    Region or None
        Corners around it from (0, 0), sides in the same order; without corners if the others alone do not fit.
        None if nothing limits one of the two.

    Raises
    ------
    ValueError
        If ``rates`` are none, or the two are one.
    """
    if first == second:
        raise ValueError("a map needs two different applications")
    pair = np.array([first, second])
    floor = solver.rows.rates(rates).copy()
    floor[pair] = 0.0
    ends = [solver.farthest(np.eye(len(floor))[q], floor) for q in pair]
    if any(end.outcome is Outcome.UNBOUNDED for end in ends):
        return None
    names = tuple(solver.rows.applications[q] for q in pair)
    if any(end.outcome is Outcome.INFEASIBLE for end in ends):
        return Region(solver.rows.version, names, (), (), ())
    most = np.array([end.value for end in ends])
    if (most <= NO_FARTHER * solver.rows.rate_unit[pair]).any():
        return _flat(solver.rows, names, most, ends)
    return _Slice(solver, floor, pair, most).region(names)


def _flat(rows: Constraints, names: tuple[str, ...], most: Floats, ends: list[Solution]) -> Region:
    """The region if one of the two cannot run at all: a line, or only (0, 0)."""
    corners = ((0.0, 0.0), (float(most[0]), 0.0), (0.0, float(most[1])))
    vertices = tuple(dict.fromkeys(corners))
    facets = tuple(
        Facet(weights, end.value, limits_of(rows, end))
        for weights, end in zip(((1.0, 0.0), (0.0, 1.0)), ends, strict=True)
    )
    return Region(rows.version, names, vertices, vertices[-1:], facets)


@dataclass(frozen=True)
class _Piece:
    """A side between two corners, and the solution that says it is one."""

    right: Floats
    left: Floats
    found: Solution


class _Slice:
    """Sides of a two-dimensional region, found from its ends on the axes."""

    def __init__(self, solver: Solver, floor: Floats, pair: Ints, most: Floats) -> None:
        self._solver, self._floor, self._pair, self._most = solver, floor, pair, most

    def support(self, weights: Floats) -> Solution:
        every = np.zeros(len(self._floor))
        every[self._pair] = weights
        return self._solver.farthest(every, self._floor)

    def normal(self, right: Floats, left: Floats) -> Floats:
        """Of the side between two corners, outwards, adding up to 1."""
        across: Floats = np.maximum(np.array([left[1] - right[1], right[0] - left[0]]), 0.0)
        return across / (float(across.sum()) or 1.0)

    def region(self, names: tuple[str, ...]) -> Region:
        """Its corners and sides, from the first axis to the second."""
        pieces = self._between(self._most * [1.0, 0.0], self._most * [0.0, 1.0])
        corners, facets = [pieces[0].right], list[Facet]()
        for piece in pieces:
            if self._same(piece.right, piece.left):
                continue
            weights = self.normal(corners[-1], piece.left)
            if facets and np.allclose(weights, facets[-1].weights, rtol=0, atol=NO_FARTHER):
                corners[-1] = piece.left
                continue
            facets.append(
                Facet(_numbers(weights), piece.found.value, limits_of(self._solver.rows, piece.found))
            )
            corners.append(piece.left)
        vertices = np.array([np.zeros(2), *corners])
        return Region(self._solver.rows.version, names, *_corners(vertices, self._most), tuple(facets))

    def _between(self, right: Floats, left: Floats) -> list[_Piece]:
        """The sides from one corner to another."""
        weights = self.normal(right, left)
        found = self.support(weights)
        corner = found.rates[self._pair]
        no_farther = found.value <= weights @ right + NO_FARTHER * (weights @ self._most)
        if no_farther or self._same(corner, right) or self._same(corner, left):
            return [_Piece(right, left, found)]
        return [*self._between(right, corner), *self._between(corner, left)]

    def _same(self, one: Floats, other: Floats) -> bool:
        return bool((np.abs(one - other) <= NO_FARTHER * self._most).all())


def full_region(solver: Solver) -> Region | None:
    """All feasible rates of up to five applications.

    Returns
    -------
    Region or None
        Corners sorted by their rates. None if there are more applications, nothing limits one of them, or there
        are more than some thousand sides.
    """
    rows, count = solver.rows, len(solver.rows.applications)
    if count > MOST_APPLICATIONS:
        return None
    ends = [solver.farthest(one) for one in np.eye(count)]
    if any(end.outcome is Outcome.UNBOUNDED for end in ends):
        return None
    if any(end.outcome is Outcome.INFEASIBLE for end in ends):
        return Region(rows.version, rows.applications, (), (), ())
    most = np.array([end.value for end in ends])
    able = np.flatnonzero(most > NO_FARTHER * rows.rate_unit)
    if len(able) == 0:
        return Region(rows.version, rows.applications, ((0.0,) * count,), ((0.0,) * count,), ())
    hull = _Hull(solver, able, most[able])
    found = hull.closed()
    if found is None:
        return None
    points, sides = found
    corners = np.zeros((len(points), count))
    corners[:, able] = points
    corners = corners[np.lexsort(corners.T[::-1])]
    facets = tuple(Facet(_numbers(side.weights), side.bound, side.limits) for side in sides)
    return Region(rows.version, rows.applications, *_corners(corners, np.where(most > 0, most, 1.0)), facets)


@dataclass(frozen=True)
class _Side:
    weights: Floats
    bound: float
    limits: tuple[tuple[str, str], ...]


class _Hull:
    """The convex hull of corners with all they dominate, grown until no side can be moved outwards.

    Rates are scaled by the most of each application, so that all sides are of one size.
    """

    def __init__(self, solver: Solver, able: Ints, most: Floats) -> None:
        self._solver, self._able, self._most = solver, able, most
        self._masks = np.array(list(np.ndindex(*(2,) * len(able))), dtype=float)
        self._final: dict[tuple[int, ...], _Side] = {}

    def closed(self) -> tuple[Floats, list[_Side]] | None:
        """Corners and sides, unscaled; None if there are too many."""
        if len(self._able) == 1:
            side = self._support(np.ones(1))[1]
            return np.array([[0.0], self._most]), [side]
        points = self._with_dominated(np.eye(len(self._able)))
        while len(self._final) < MOST_SIDES:
            hull = ConvexHull(points, qhull_options="Qt Q12")
            found = [self._farther(equation) for equation in hull.equations]
            new = [corner for corner in found if corner is not None]
            if not new:
                return points[hull.vertices] * self._most, self._sides(hull)
            points = np.vstack([points[hull.vertices], self._with_dominated(np.array(new))])
            points = np.unique(points.round(12), axis=0)
        return None

    def _with_dominated(self, corners: Floats) -> Floats:
        """Corners with every choice of their rates set to 0."""
        return np.unique(
            (corners[:, None, :] * self._masks[None, :, :]).reshape(-1, corners.shape[1]), axis=0
        )

    def _farther(self, equation: Floats) -> Floats | None:
        """The farthest feasible point beyond a side; None if the side is one of the region."""
        weights = equation[:-1]
        if (
            self._key(weights) in self._final
            or not (weights > -_PRICED).all()
            or not (weights > _PRICED).any()
        ):
            return None
        corner, side = self._support(np.maximum(weights, 0.0))
        if float(np.maximum(weights, 0.0) @ corner) <= -equation[-1] + NO_FARTHER:
            self._final[self._key(weights)] = side
            return None
        return corner

    def _support(self, weights: Floats) -> tuple[Floats, _Side]:
        every = np.zeros(len(self._solver.rows.applications))
        every[self._able] = weights / self._most
        every /= every.sum()
        found = self._solver.farthest(every)
        return found.rates[self._able] / self._most, _Side(
            every, found.value, limits_of(self._solver.rows, found)
        )

    def _sides(self, hull: ConvexHull) -> list[_Side]:
        """Each side once: Qhull cuts those with many corners in pieces."""
        keys = {self._key(equation[:-1]) for equation in hull.equations}
        sides = [self._final[key] for key in keys if key in self._final]
        return sorted(sides, key=lambda side: tuple(-side.weights))

    @staticmethod
    def _key(weights: Floats) -> tuple[int, ...]:
        return tuple(np.rint(weights / 1e-5).astype(int).tolist())


def limits_of(rows: Constraints, solution: Solution) -> tuple[tuple[str, str], ...]:
    """The (node, resource) pairs a solution is bound by, the most valuable first."""
    worth = solution.prices * rows.limit_unit
    priced = np.flatnonzero(worth > _PRICED * (worth.max(initial=0.0) or 1.0))
    return tuple(rows.limit_names[row] for row in sorted(priced.tolist(), key=lambda row: -float(worth[row])))


def _corners(vertices: Floats, most: Floats) -> tuple[_Corners, _Corners]:
    """Vertices, and those of them that no other dominates."""
    scaled = vertices / most
    every = tuple(_numbers(vertex) for vertex in vertices)
    return every, tuple(
        corner for corner, own in zip(every, scaled, strict=True) if not _dominated(own, scaled)
    )


def _dominated(corner: Floats, corners: Floats) -> bool:
    at_least = np.all(corners >= corner - NO_FARTHER, axis=1)
    more = np.any(corners > corner + NO_FARTHER, axis=1)
    return bool(np.any(at_least & more))


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
