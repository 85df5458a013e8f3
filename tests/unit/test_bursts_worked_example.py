"""BARRE's worked example: every number is derived by hand from 4·x1 + 6·x2 ≤ 1 on A and 6.67·x3 + 10·x4 ≤ 1 on B.

Half the first and 0.3 of the second make 2·r1 + 3·r2 ≤ 0.8; the second stages give r1 ≤ 1/4 and r2 ≤ 1/5.
"""

from __future__ import annotations

import math

import pytest

from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, joint_headroom, node_losses
from analytics.bursts.region import full_region, pair_region
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import Region
from analytics.model.bursts import with_capacity, without_node
from tests.support.burst_models import read, worked_example

VERTICES = [(0, 0), (1 / 4, 0), (1 / 4, 1 / 10), (1 / 10, 1 / 5), (0, 1 / 5)]


@pytest.fixture(params=[6.67, 20 / 3])
def solver(request: pytest.FixtureRequest) -> Solver:
    return Solver(constraints(read(worked_example(request.param))))


def close(values: object) -> object:
    return pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize(
    ("rates", "joint", "each", "nodes"),
    [
        ((0.05, 0.05), 0.11, (0.11, 0.11), {1: ["A", "B"]}),
        ((0.0, 0.0), 0.16, (0.16, 0.16), {1: ["A", "B"]}),
        ((0.2, 0.02), 0.05, (0.05, 0.08), {1: ["dest1"], 2: ["A", "B"]}),
        ((0.2, 0.2), -0.04, (-0.04, -0.04), {1: ["A", "B"]}),
    ],
)
def test_headroom_is_as_printed(
    solver: Solver,
    rates: tuple[float, float],
    joint: float,
    each: tuple[float, float],
    nodes: dict[int, list[str]],
) -> None:
    answer = headroom(solver, rates)
    assert answer.joint == pytest.approx(joint, abs=1e-7)
    assert answer.each == pytest.approx(each, abs=1e-7)
    assert answer.target == pytest.approx([p + d for p, d in zip(rates, each, strict=True)], abs=1e-7)
    assert answer.shed == pytest.approx([max(-d, 0) for d in each], abs=1e-7)
    assert answer.max_rate == close((0.25, 0.2))
    found: dict[int, list[str]] = {}
    for limit in answer.binding:
        found.setdefault(limit.level, []).append(limit.node)
    assert found == nodes


def test_a_unit_more_of_a_node_is_worth_its_price(solver: Solver) -> None:
    prices = {limit.node: limit.price for limit in headroom(solver, (0.05, 0.05)).binding}
    assert prices == close({"A": 0.10, "B": 0.06})


def test_ten_percent_more_buys_what_the_larger_model_has(solver: Solver) -> None:
    answer = headroom(solver, (0.2, 0.02))
    gain = {limit.node: limit.gain for limit in answer.binding}["dest1"]
    larger = with_capacity(read(worked_example(6.67)), "dest1", "cpu", 1.1)
    joint = joint_headroom(Solver(constraints(larger)), (0.2, 0.02)).value
    # At its price of 1/4 it would buy 0.025, but A and B stop it before.
    assert gain == pytest.approx(joint - answer.joint, abs=1e-4)
    assert 0.0179 < gain < 0.0181


def test_one_growing_alone_is_bound_by_its_own_second_stage(solver: Solver) -> None:
    answer = headroom(solver, (0.05, 0.05))
    assert answer.alone == close((0.2, 0.15))
    assert answer.single == pytest.approx(0.15, abs=1e-7)
    assert answer.proportional == close(3.2)


def test_without_input_nothing_limits_growth_by_a_factor(solver: Solver) -> None:
    assert headroom(solver, (0.0, 0.0)).proportional == math.inf


def corners(region: Region | None) -> list[tuple[float, ...]]:
    assert region is not None
    return [tuple(round(value, 9) + 0.0 for value in vertex) for vertex in region.vertices]


def test_the_region_has_the_printed_corners_and_sides(solver: Solver) -> None:
    region = full_region(solver)
    assert corners(region) == sorted(VERTICES)
    assert region is not None
    assert [*region.pareto[0], *region.pareto[1]] == close([0.1, 0.2, 0.25, 0.1])
    sides = {side.limits: (*side.weights, side.bound) for side in region.facets}
    assert sides == {
        (("dest1", "cpu"),): close((1, 0, 0.25)),
        (("dest2", "cpu"),): close((0, 1, 0.2)),
        (("A", "cpu"), ("B", "cpu")): close((0.4, 0.6, 0.16)),
    }


def test_the_map_of_the_pair_is_the_region_in_order_around_it(solver: Solver) -> None:
    region = pair_region(solver, (0.05, 0.05), 0, 1)
    assert corners(region) == VERTICES
    assert region is not None
    assert [side.limits[0][0] for side in region.facets] == ["dest1", "A", "dest2"]
    turned = pair_region(solver, (0.05, 0.05), 1, 0)
    assert corners(turned) == [VERTICES[0]] + [(y, x) for x, y in reversed(VERTICES[1:])]


def test_losing_a_node_is_the_model_without_it(solver: Solver) -> None:
    losses = {loss.node: loss for loss in node_losses(solver, (0.05, 0.05))}
    # Only A is left: 4·r1 + 6·r2 ≤ 1; only dest1 is lost: application 1 must shed all it has.
    assert losses["B"].joint == close(0.05)
    assert losses["B"].proportional == close(2.0)
    assert losses["dest1"].joint == close(-0.05)
    assert losses["dest1"].proportional == 0.0
    model = read(worked_example(6.67))
    for name in losses:
        cold = headroom(Solver(constraints(without_node(model, name))), (0.05, 0.05))
        assert losses[name].joint == pytest.approx(cold.joint, abs=1e-4)


def test_an_application_that_cannot_run_sheds_all_and_the_other_grows(solver: Solver) -> None:
    lost = Solver(constraints(without_node(read(worked_example()), "dest1")))
    answer = headroom(lost, (0.05, 0.05))
    assert answer.target == close((0.0, 0.2))
    assert answer.shed == close((0.05, 0.0))
    region = pair_region(lost, (0.05, 0.05), 0, 1)
    assert corners(region) == [(0, 0), (0, 0.2)]
    assert corners(full_region(lost)) == [(0, 0), (0, 0.2)]


def test_a_burst_of_another_shape_has_its_own_headroom(solver: Solver) -> None:
    # 2·(0.05 + c) + 3·(0.05 + 2c) = 0.8, and application 2 stops at 0.2 before: c = 0.55/8 < 0.075.
    assert joint_headroom(solver, (0.05, 0.05), (1, 2)).value == close(0.55 / 8)
    assert joint_headroom(solver, (0.05, 0.05), (0, 1)).value == close(0.15)
    with pytest.raises(ValueError, match="weight"):
        joint_headroom(solver, (0.05, 0.05), (0, 0))


@pytest.mark.parametrize("rates", [(0.1,), (0.1, -0.1), (0.1, math.nan), (math.inf, 0.1)])
def test_rates_that_are_none_are_refused(solver: Solver, rates: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="rates"):
        headroom(solver, rates)
