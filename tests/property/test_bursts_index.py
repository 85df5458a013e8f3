"""BARRE's index, the cache of cuts and rounded routing: what they promise must be true of the linear program."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.bursts.assignment import (
    fixed_headroom,
    fixed_single_headroom,
    fractions,
    loads,
    rebalance,
    routing,
)
from analytics.bursts.constraints import constraints
from analytics.bursts.cuts import CutCache
from analytics.bursts.headroom import headroom, joint_headroom, lexicographic
from analytics.bursts.index import (
    Found,
    Lookup,
    PointIndex,
    StaleIndexError,
    packed,
    planned,
    point_index,
    unpacked,
)
from analytics.bursts.single import single_headroom
from analytics.bursts.solver import Solver
from analytics.model.bursts import with_capacity, without_node
from tests.support.burst_models import random_document, random_model, read, with_edges, worked_example

SEEDS = range(6)


def solver_of(seed: int, applications: int = 4) -> Solver:
    return Solver(constraints(random_model(seed, applications=applications, nodes=6, resources=1 + seed % 3)))


def points(solver: Solver, seed: int, count: int = 20) -> np.ndarray:
    """Rates that fit, more or less far from the edge."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        shape = rng.uniform(0, 1, len(solver.rows.applications))
        found.append(rng.uniform(0, 0.99) * solver.along(np.zeros(len(shape)), shape).value * shape)
    return np.array(found)


def carries(solver: Solver, plan: np.ndarray, rates: np.ndarray) -> bool:
    """Whether a plan handles at least these rates at every stage within every limit, by its own arithmetic."""
    rows = solver.rows
    fits = rows.usage @ plan <= rows.limits + 1e-6 * rows.limit_unit
    handled = np.bincount(rows.stage_of, plan[: len(rows.components)])
    application = {int(stage): int(rows.application_of[i]) for i, stage in enumerate(rows.stage_of)}
    due = np.array([rows.stage_input[k] * rates[application[k]] for k in range(len(handled))])
    return bool(fits.all() and (handled >= due - 1e-6 * rows.rate_unit.max()).all())


def index_of(solver: Solver, tolerance: float = 0.02) -> PointIndex:
    index = point_index(solver, tolerance)
    assert index is not None
    return index


def test_the_index_of_the_worked_example_is_as_derived_by_hand() -> None:
    # The first side's middle is (1/8, 1/10), its normal (4, 5): 0.55 + 23·t = 0.8 where the ray ends.
    solver = Solver(constraints(read(worked_example())))
    index = index_of(solver)
    t = 0.25 / 23
    assert index.points[:3].tolist() == [
        pytest.approx([0.25, 0.0]),
        pytest.approx([0.0, 0.2]),
        pytest.approx([0.125 + 4 * t, 0.1 + 5 * t]),
    ]
    assert index.complete
    assert len(index.sides) == len(index.points) - 1


@pytest.mark.parametrize("seed", SEEDS)
def test_every_point_of_the_index_fits_and_its_plan_carries_it(seed: int) -> None:
    solver = solver_of(seed)
    index = index_of(solver)
    for point, plan in zip(index.points, index.plans, strict=True):
        assert joint_headroom(solver, point).value >= -1e-7
        assert carries(solver, plan, point)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_plan_served_fits_at_the_point_and_at_every_promised_corner(seed: int) -> None:
    solver = solver_of(seed)
    lookup = Lookup(index_of(solver))
    sources = set()
    for rates in points(solver, seed):
        plan = planned(solver, lookup, rates)
        sources.add(plan.found)
        exact = joint_headroom(solver, rates).value
        assert plan.growth <= exact + 1e-7
        assert carries(solver, plan.plan, rates)
        assert carries(solver, plan.plan, rates + plan.growth)
        # With its shares fixed, each corner between p and p + c fits without another routing.
        shares = np.divide(
            plan.plan,
            plan.target[solver.rows.application_of],
            out=np.zeros(len(plan.plan)),
            where=plan.target[solver.rows.application_of] > 1e-9,
        )
        for corner in np.ndindex(*(2,) * len(rates)):
            burst = rates + max(plan.growth, 0.0) * np.array(corner)
            load = solver.rows.usage @ (shares * burst[solver.rows.application_of])
            assert (load <= solver.rows.limits + 1e-6 * solver.rows.limit_unit).all()
    assert Found.NEAR in sources


def test_a_point_beyond_all_sides_is_answered_by_the_program() -> None:
    solver = Solver(constraints(read(worked_example())))
    axes = point_index(solver, tolerance=np.inf)
    assert axes is not None
    assert len(axes.points) == 2
    lookup = Lookup(axes)
    # Growing (1/4 − 1/100, 0) by the same each passes the corner on the first axis.
    plan = planned(solver, lookup, (0.05, 0.05))
    assert (plan.found, plan.growth) == (Found.NEAR, pytest.approx(1 / 9 - 0.05))
    outside = Lookup(
        PointIndex(axes.version, np.array([[0.1, 0.2], [0.16, 0.16]]), axes.plans, axes.sides, 2, True)
    )
    beyond = planned(solver, outside, (0.2, 0.02))
    assert (beyond.found, beyond.growth) == (Found.PROGRAM, pytest.approx(0.05))


def test_an_index_of_another_model_is_refused() -> None:
    model = read(worked_example())
    lookup = Lookup(index_of(Solver(constraints(model))))
    with pytest.raises(StaleIndexError, match="the index is for model"):
        planned(Solver(constraints(with_capacity(model, "A", "cpu", 1.01))), lookup, (0.05, 0.05))


@pytest.mark.parametrize("count", [1, 2, 7])
def test_any_number_of_applications_has_an_index(count: int) -> None:
    solver = solver_of(3, count)
    lookup = Lookup(index_of(solver))
    for rates in points(solver, 3, 5):
        assert planned(solver, lookup, rates).growth <= joint_headroom(solver, rates).value + 1e-7


def test_an_index_can_be_stored_and_other_bytes_are_refused() -> None:
    index = index_of(solver_of(1))
    again = unpacked(packed(index))
    assert (again.version, again.programs, again.complete) == (index.version, index.programs, index.complete)
    for name in ("points", "plans", "sides"):
        assert np.array_equal(getattr(again, name), getattr(index, name))
    for body in (b"", b"no index", packed(index)[:-30]):
        with pytest.raises(ValueError, match="no point index"):
            unpacked(body)


def test_a_model_without_limits_has_no_index() -> None:
    document = worked_example()
    for stage in document["applications"]["app1"]["stages"]:
        for component in stage["components"]:
            component["cost"] = {}
    assert point_index(Solver(constraints(read(document)))) is None


@pytest.mark.parametrize("seed", SEEDS)
def test_the_bounds_of_the_cache_hold_the_program_between_them(seed: int) -> None:
    solver = solver_of(seed, 6)
    lookup = Lookup(index_of(solver, 0.2))
    cache = CutCache(solver)
    for rates in points(solver, seed, 40):
        exact = joint_headroom(solver, rates).value
        plan = lookup.plan(rates, solver.rows.version)
        if plan is not None:
            assert plan.growth <= exact + 1e-7
        known = cache.look(rates)
        assert known.lower - 1e-7 <= exact <= known.upper + 1e-7
        assert cache.upper(rates[None, :])[0] == pytest.approx(known.upper)
        answer = cache.answer(rates)
        assert answer.lower - 1e-7 <= exact <= answer.upper + 1e-7
        assert answer.routing is not None
        carried = fixed_headroom(solver.rows, loads(solver.rows, answer.routing), rates)
        assert carried >= answer.lower - 1e-6
        again = cache.look(rates)
        assert again.upper == pytest.approx(exact, abs=1e-6)


def test_a_drifting_input_hardly_needs_the_program() -> None:
    solver = solver_of(2, 8)
    cache = CutCache(solver)
    rng = np.random.default_rng(2)
    rates = 0.4 * joint_headroom(solver, np.zeros(8)).value * rng.uniform(0.5, 1.5, 8)
    solved = 0
    for _ in range(300):
        rates = rates * rng.uniform(0.99, 1.01, 8)
        solved += cache.answer(rates).solved
    assert solved < 60


@pytest.mark.parametrize("seed", SEEDS)
def test_routing_from_the_target_keeps_all_of_the_headroom(seed: int) -> None:
    solver = solver_of(seed)
    rows = solver.rows
    for rates in points(solver, seed, 5):
        _, levels = lexicographic(solver, rates)
        per_input = routing(solver, levels[-1].solution)
        unit_loads = loads(rows, per_input)
        exact = joint_headroom(solver, rates).value
        assert fixed_headroom(rows, unit_loads, rates) == pytest.approx(exact, abs=1e-6)
        assert fixed_single_headroom(rows, unit_loads, rates) >= exact - 1e-6
        shares = fractions(rows, per_input)
        assert np.bincount(rows.stage_of, shares) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_routing_lets_any_one_grow_by_more_than_the_single_headroom(seed: int) -> None:
    solver = solver_of(seed)
    rows = solver.rows
    rates = points(solver, seed, 3)[-1]
    answer = headroom(solver, rates)
    found = single_headroom(rows, rates, answer.joint, min(answer.alone))
    assert found.value == pytest.approx(answer.single)
    assert answer.joint - 1e-9 <= answer.single <= min(answer.alone) + 1e-9
    assert found.shares is not None
    unit_loads = loads(rows, found.shares)
    assert fixed_single_headroom(rows, unit_loads, rates) == pytest.approx(found.value, rel=1e-6)
    # No mixture of this routing with another does better.
    rng = np.random.default_rng(seed)
    for _ in range(30):
        solution = solver.along(rates, rng.uniform(0.1, 1, len(rates)))
        other = routing(solver, solution)
        share = rng.uniform()
        mixed = share * found.shares + (1 - share) * other
        assert fixed_single_headroom(rows, loads(rows, mixed), rates) <= found.value + 1e-6


@pytest.mark.parametrize(("seed", "groups"), [(seed, groups) for seed in SEEDS for groups in (1, 8, 128)])
def test_rounded_shares_are_whole_groups_and_say_what_they_carry(seed: int, groups: int) -> None:
    solver = solver_of(seed)
    rows = solver.rows
    rates = points(solver, seed, 3)[0]
    answer, odd = rebalance(solver, rates, groups)
    assert odd == ()
    counts = np.array(answer.key_groups)
    assert np.bincount(rows.stage_of, counts).tolist() == [groups] * len(rows.stage_input)
    assert (counts >= 0).all()
    per_input = counts / groups * rows.stage_input[rows.stage_of]
    load = rows.usage @ (per_input * (rates + answer.rounded_joint)[rows.application_of])
    assert (load <= rows.limits + 1e-6 * rows.limit_unit).all()
    assert answer.joint == pytest.approx(joint_headroom(solver, rates).value, abs=1e-6)
    assert answer.rounded_joint <= answer.joint + 1e-6
    if groups == 128:
        assert answer.rounded_joint >= 0.8 * answer.joint - 0.02 * rows.rate_unit.max()


def test_edges_are_not_rounded_but_told() -> None:
    solver = Solver(constraints(read(with_edges())))
    answer, odd = rebalance(solver, (0.01, 0.01), 4)
    assert [(item.code, item.example) for item in odd] == [("not_rounded", "app1")]
    assert answer.joint == pytest.approx(joint_headroom(solver, (0.01, 0.01)).value, abs=1e-6)
    with pytest.raises(ValueError, match="key group"):
        rebalance(solver, (0.01, 0.01), 0)


def test_an_application_that_cannot_run_still_gets_shares() -> None:
    for document in (worked_example(), with_edges()):
        lost = Solver(constraints(without_node(read(document), "dest1")))
        answer, _ = rebalance(lost, (0.0, 0.05))
        assert np.isfinite(answer.fractions).all()
        assert answer.joint <= 1e-9


def test_a_negative_headroom_is_certified_too() -> None:
    solver = Solver(constraints(read(random_document(5, applications=3))))
    cache = CutCache(solver)
    rates = np.full(3, 1.5 * joint_headroom(solver, np.zeros(3)).value)
    answer = cache.answer(rates)
    assert answer.lower == pytest.approx(joint_headroom(solver, rates).value, abs=1e-6)
    assert answer.lower < 0
