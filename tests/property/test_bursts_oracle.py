"""Exact answers beside an independent program, and what must hold of any model."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, joint_headroom, lexicographic, max_rates, node_losses
from analytics.bursts.region import full_region, pair_region
from analytics.bursts.solver import Outcome, Solver
from analytics.model.bursts import BurstModel, with_capacity, without_node
from tests.support.burst_models import random_document, random_model, read

SEEDS = range(8)


def solver_of(model: BurstModel) -> Solver:
    return Solver(constraints(model))


def linprog_along(document: dict[str, Any], base: np.ndarray, direction: np.ndarray) -> float:
    """The largest c with base + c·direction carried, by flows between the components of neighbouring stages.

    Written from the paper's flow equations with scipy, sharing nothing with the code: variables are c and a flow
    for each pair of neighbours, unscaled, with equal rates.
    """
    columns: list[dict[str, float]] = []  # a flow's arrivals by row key
    rows: dict[str, float] = {}
    upper: dict[str, float] = {
        f"node {node} {name}": amount
        for node, has in document["nodes"].items()
        for name, amount in has.items()
    }
    c: dict[str, float] = {}
    for q, (app, body) in enumerate(document["applications"].items()):
        rows[f"in {app}"] = base[q]
        c[f"in {app}"] = -direction[q]
        before = None
        for stage in body["stages"]:
            sources = [None] if before is None else before["components"]
            for source, target in product(sources, stage["components"]):
                flow = {f"node {target['node']} {name}": cost for name, cost in target["cost"].items()}
                if source is None:
                    flow[f"in {app}"] = 1.0
                else:
                    flow[f"out {source['name']}"] = 1.0
                if stage is not body["stages"][-1]:
                    flow[f"out {target['name']}"] = -stage["selectivity"]
                    rows[f"out {target['name']}"] = 0.0
                columns.append(flow)
            before = stage
    keys, limits = list(rows), list(upper)
    equal = np.array([[c.get(key, 0.0)] + [flow.get(key, 0.0) for flow in columns] for key in keys])
    most = np.array([[0.0] + [flow.get(key, 0.0) for flow in columns] for key in limits])
    found = linprog(
        [-1.0] + [0.0] * len(columns),
        A_ub=most,
        b_ub=[upper[key] for key in limits],
        A_eq=equal,
        b_eq=[rows[key] for key in keys],
        bounds=[(None, None)] + [(0, None)] * len(columns),
        method="highs",
    )
    return float(-found.fun) if found.success else -np.inf


def point(solver: Solver, seed: int, load: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shape = rng.uniform(0.2, 1.0, len(solver.rows.applications))
    return load * solver.along(np.zeros(len(shape)), shape).value * shape


@pytest.mark.parametrize(("seed", "resources"), [(seed, 1 + seed % 3) for seed in SEEDS])
def test_every_answer_is_that_of_the_independent_program(seed: int, resources: int) -> None:
    document = random_document(seed, applications=4, nodes=6, resources=resources)
    solver = solver_of(read(document))
    ones, none = np.ones(4), np.zeros(4)
    for load in (0.0, 0.5, 0.95, 1.2):
        rates = point(solver, seed, load)
        scale = max(rates.max(), 1.0)
        joint = joint_headroom(solver, rates).value
        assert joint == pytest.approx(linprog_along(document, rates, ones), abs=1e-6 * scale)
        if load <= 1:
            answer = headroom(solver, rates)
            assert answer.alone == pytest.approx(
                [linprog_along(document, rates, one) for one in np.eye(4)], abs=1e-6 * scale
            )
        if load:
            assert headroom(solver, rates).proportional == pytest.approx(
                linprog_along(document, none, rates), rel=1e-6
            )
            assert linprog_along(document, none, rates) == pytest.approx(1 / load, rel=1e-6)
    assert max_rates(solver) == pytest.approx(
        [linprog_along(document, none, one) for one in np.eye(4)], rel=1e-6
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_growth_in_turn_is_the_best_smallest_then_the_best_next(seed: int) -> None:
    document = random_document(seed, applications=4, nodes=6, resources=2)
    solver = solver_of(read(document))
    rates = point(solver, seed, 0.5)
    growth, levels = lexicographic(solver, rates)
    assert linprog_along(document, rates + 0.999999 * growth, np.ones(4)) >= -1e-6
    order = np.argsort(growth)
    for place in range(4):
        # Of those from this place on, none can have more while those before keep theirs.
        least = growth[order[place]]
        rest = order[growth[order] >= least - 1e-9]
        direction = np.zeros(4)
        direction[rest] = 1.0
        base = np.where(direction > 0, rates, rates + growth - 1e-9)
        assert linprog_along(document, base, direction) == pytest.approx(least, abs=1e-6)
    assert len(levels) <= 4


@pytest.mark.parametrize("seed", SEEDS)
def test_adding_the_same_to_all_takes_it_from_the_headroom(seed: int) -> None:
    solver = solver_of(random_model(seed, applications=5, resources=2))
    rates = point(solver, seed, 0.3)
    joint = joint_headroom(solver, rates).value
    for step in (0.1 * joint, 0.9 * joint, 2 * joint):
        assert joint_headroom(solver, rates + step).value == pytest.approx(joint - step, abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_less_input_is_feasible_and_more_capacity_never_harms(seed: int) -> None:
    model = random_model(seed, applications=4, resources=2)
    solver = solver_of(model)
    rates = point(solver, seed, 1.0)
    rng = np.random.default_rng(seed)
    for _ in range(5):
        less = rates * rng.uniform(0, 1, 4)
        assert joint_headroom(solver, less).value >= -1e-9
    before = joint_headroom(solver, 0.5 * rates).value
    for node in model.nodes:
        for resource in node.capacity:
            larger = solver_of(with_capacity(model, node.name, resource, 1.3))
            assert joint_headroom(larger, 0.5 * rates).value >= before - 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pairs_map_is_the_program_everywhere(seed: int) -> None:
    solver = solver_of(random_model(seed, applications=4, resources=1 + seed % 3))
    rates = point(solver, seed, 0.6)
    region = pair_region(solver, rates, 0, 2)
    assert region is not None
    weights = np.array([side.weights for side in region.facets])
    bounds = np.array([side.bound for side in region.facets])
    most = np.array(region.vertices).max(axis=0)
    rng = np.random.default_rng(seed)
    for pair in rng.uniform(0, 1.1, (100, 2)) * most:
        inside = (bounds - weights @ pair).min()
        there = rates.copy()
        there[[0, 2]] = pair
        fits = solver.along(there, np.array([1.0, 0.0, 1.0, 0.0]))
        tolerance = 1e-5 * most.max()
        if (pair + inside >= 0).all():
            assert fits.value == pytest.approx(inside, abs=tolerance)
        else:
            # One of the two would shed more than it has; the other must then shed more.
            assert fits.value <= inside + tolerance
    for vertex in region.vertices:
        assert (bounds - weights @ np.array(vertex)).min() >= -1e-5 * most.max()
    assert set(region.pareto) <= set(region.vertices)


@pytest.mark.parametrize(("seed", "count"), [(0, 1), (1, 2), (2, 3), (3, 3), (4, 4), (5, 5)])
def test_the_full_region_is_the_program_everywhere(seed: int, count: int) -> None:
    solver = solver_of(random_model(seed, applications=count, resources=2 if count < 4 else 1))
    region = full_region(solver)
    assert region is not None
    weights = np.array([side.weights for side in region.facets])
    bounds = np.array([side.bound for side in region.facets])
    most = max_rates(solver)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        rates = rng.uniform(0, 1.1, count) * most * rng.uniform(0.2, 1)
        joint = joint_headroom(solver, rates).value
        # One of the sides, or the axes of those that would shed more than they have.
        if (rates + joint >= 0).all():
            assert joint == pytest.approx((bounds - weights @ rates).min(), abs=2e-5 * most.max())
    corners = np.array(region.vertices)
    assert (corners @ weights.T <= bounds + 1e-5 * most.max()).all()
    assert np.allclose(corners.max(axis=0), most, rtol=1e-6)
    for corner in corners[:20]:
        assert joint_headroom(solver, corner).value >= -1e-5 * most.max()


def test_a_warm_solver_answers_as_a_cold_one_whatever_was_asked_before() -> None:
    model = random_model(11, applications=6, resources=2)
    warm = solver_of(model)
    rng = np.random.default_rng(11)
    for step in range(40):
        rates = point(warm, step, rng.uniform(0, 1.5))
        with warm.without_node(step % 5):
            warm.along(rates, rng.uniform(0, 1, 6))
        warm.farthest(rng.uniform(0, 1, 6))
        direction = np.where(rng.random(6) < 0.3, 0.0, rng.uniform(0.1, 3, 6))
        direction[step % 6] = 1.0
        one, other = warm.along(0.5 * rates, direction), solver_of(model).along(0.5 * rates, direction)
        assert one.outcome is other.outcome is Outcome.OPTIMAL
        assert one.value == pytest.approx(other.value, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("seed", SEEDS)
def test_losing_each_node_warm_is_the_model_without_it(seed: int) -> None:
    document = random_document(seed, applications=3, nodes=4, resources=2)
    for body in document["applications"].values():
        for component in body["stages"][0]["components"]:
            component |= {"least_share": 0.1, "fixed": {"r0": 0.01}}
    model = read(document)
    solver = solver_of(model)
    rates = point(solver, seed, 0.5)
    for loss in node_losses(solver, rates):
        cold = solver_of(without_node(model, loss.node))
        assert loss.joint == pytest.approx(joint_headroom(cold, rates).value, abs=1e-6)
    assert joint_headroom(solver, rates).value == pytest.approx(
        joint_headroom(solver_of(model), rates).value, abs=1e-7
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_unit_of_rates_does_not_matter(seed: int) -> None:
    document = random_document(seed, applications=3, resources=2)
    small = solver_of(read(document))
    for body in document["applications"].values():
        for stage in body["stages"]:
            for component in stage["components"]:
                component["cost"] = {name: cost * 1e-7 for name, cost in component["cost"].items()}
    large = solver_of(read(document))
    rates = point(small, seed, 0.4)
    one, other = headroom(small, rates), headroom(large, 1e7 * rates)
    assert np.array(other.each) / 1e7 == pytest.approx(np.array(one.each), abs=1e-6)
    assert other.single / 1e7 == pytest.approx(one.single, rel=1e-6)
    assert [(limit.node, limit.level) for limit in one.binding] == [
        (limit.node, limit.level) for limit in other.binding
    ]
