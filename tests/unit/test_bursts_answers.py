"""Burst answers can be stored: to JSON and back without losing a number, also infinite ones."""

from __future__ import annotations

import json

import pytest

from analytics.bursts.assignment import rebalance
from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, node_losses
from analytics.bursts.region import full_region, pair_region
from analytics.bursts.simulate import Scenario, compare
from analytics.bursts.solver import Solver
from analytics.model.plain import from_plain, to_plain
from tests.support.burst_models import read, worked_example


@pytest.mark.parametrize("rates", [(0.05, 0.05), (0.0, 0.0), (0.3, 0.01)])
def test_every_answer_survives_being_stored(rates: tuple[float, float]) -> None:
    model = read(worked_example())
    solver = Solver(constraints(model))
    answers = [
        headroom(solver, rates),
        *node_losses(solver, rates),
        full_region(solver),
        pair_region(solver, rates, 0, 1),
        rebalance(solver, rates)[0],
        compare(model, (0.01, 0.01), (0.5,), Scenario(length=20))[0],
    ]
    for answer in answers:
        stored = json.dumps(to_plain(answer), allow_nan=False)
        assert from_plain(type(answer), json.loads(stored)) == answer
