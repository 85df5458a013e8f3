"""Burst answers can be stored: to JSON and back without losing a number, also infinite ones."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from analytics.bursts.assignment import rebalance
from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, max_rates, node_losses
from analytics.bursts.region import full_region, pair_region
from analytics.bursts.simulate import Scenario, compare
from analytics.bursts.solver import Solver
from analytics.bursts.survey import joined, part
from analytics.model.plain import from_plain, to_plain
from tests.support.burst_models import random_document, read, worked_example


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


def test_every_part_of_a_survey_maps_the_same_applications_however_close_their_loads_are() -> None:
    tried = 0
    for seed in range(4):
        model = read(random_document(seed, applications=10, nodes=6, resources=2))
        most = max_rates(Solver(constraints(model)))
        for q, end in enumerate(most.tolist()):
            load = 0.5 * most
            load[[0, 9]] = 0.012344 * most[[0, 9]]
            load[q] = 0.012345 * end  # as close as can be to where it is rounded up
            rates = tuple(load.tolist())
            parts = [part(model, rates, number, 2) for number in range(2)]
            pairs = [found.applications for found in joined(parts).maps if found is not None]
            assert len(set(pairs)) == len(pairs) == 28, "each pair of eight applications once"
            assert pairs == sorted(pairs, key=[*combinations([a.name for a in model.applications], 2)].index)
            tried += 1
    assert tried == 40
