"""Simulated bursts: hand-made cases of loss and time, and the order in which the paper's strategies come out."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from analytics.bursts.constraints import constraints
from analytics.bursts.simulate import Scenario, burst_rates, compare
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import SimulatedBursts, Strategy
from analytics.model.bursts import BurstModel
from tests.support.burst_models import random_model, read, with_edges, worked_example

SHORT = Scenario(length=120)
LOAD = 1 / 1.8
"""So that 80 % more of everything just fits, as in the paper's summary."""


def loaded(seed: int) -> tuple[BurstModel, np.ndarray]:
    model = random_model(seed, applications=5, nodes=8, resources=1 + seed % 2)
    shape = np.random.default_rng(seed).uniform(0.5, 1, 5)
    return model, LOAD * Solver(constraints(model)).along(np.zeros(5), shape).value * shape


def chain(*costs: float) -> BurstModel:
    """One application whose stages have a node each."""
    stages = [
        {"name": f"s{k}", "components": [{"name": f"c{k}", "node": f"n{k}", "cost": {"cpu": cost}}]}
        for k, cost in enumerate(costs)
    ]
    nodes = {f"n{k}": {"cpu": 1.0} for k in range(len(costs))}
    return read({"nodes": nodes, "applications": {"a": {"stages": stages}}})


def of(found: tuple[SimulatedBursts, ...], strategy: Strategy) -> SimulatedBursts:
    return next(one for one in found if one.strategy is strategy)


def test_bursts_come_at_the_same_times_at_every_intensity() -> None:
    weak, strong = (burst_rates((1.0, 2.0), ratio, SHORT) for ratio in (0.5, 1.0))
    assert ((weak > (1, 2)) == (strong > (1, 2))).all()
    assert set(strong[:, 1].tolist()) == {2.0, 4.0}
    assert (weak[0] == (1, 2)).all()
    assert not np.array_equal(burst_rates((1.0, 2.0), 0.5, replace(SHORT, seed=1)), weak)


def test_what_does_not_fit_a_node_is_dropped_there() -> None:
    # The second stage takes 0.5 a unit of time at a normal rate of 0.4; a burst of 100 % offers 0.8.
    found = of(compare(chain(1.0, 2.0), (0.4,), (1.0,), SHORT), Strategy.BARRE)
    offered = burst_rates((0.4,), 1.0, SHORT)
    assert found.offered == pytest.approx(offered.sum())
    assert found.missed == pytest.approx(np.maximum(offered - 0.5, 0).sum(), rel=1e-6)
    assert 0 < found.on_time_ratio < 1


def test_a_first_stage_spares_the_next_what_it_dropped() -> None:
    # 0.5 pass the first, and the second node, also of 0.5, drops no more of them.
    found = of(compare(chain(2.0, 2.0), (0.4,), (1.0,), SHORT), Strategy.BARRE)
    offered = burst_rates((0.4,), 1.0, SHORT)
    assert found.missed == pytest.approx(np.maximum(offered - 0.5, 0).sum(), rel=1e-6)


def test_time_is_that_of_a_shared_processor() -> None:
    # Without a burst: 1 / (1 − 0.25) at the first and 2 / (1 − 0.5) at the second.
    found = of(compare(chain(1.0, 2.0), (0.25,), (0.0,), SHORT), Strategy.BARRE)
    assert found.missed == pytest.approx(0.0, abs=1e-9)
    assert found.delay == pytest.approx(1 / 0.75 + 2 / 0.5)
    assert found.on_time_ratio == pytest.approx(1 - np.exp(-20 * 3 / (1 / 0.75 + 4)))


def test_slower_routing_gets_no_later_deadline() -> None:
    # Idle, the cheap node takes 1 and the other 2: with thirds of 1.2 BARRE's routing takes 4/3.
    components = [{"name": f"c{cost}", "node": f"n{cost}", "cost": {"cpu": cost}} for cost in (1.0, 2.0)]
    nodes = {"n1.0": {"cpu": 1.0}, "n2.0": {"cpu": 1.0}}
    model = read(
        {"nodes": nodes, "applications": {"a": {"stages": [{"name": "s", "components": components}]}}}
    )
    found = compare(model, (0.3,), (0.0,), SHORT)
    unaware, ready = (of(found, one) for one in (Strategy.UNAWARE, Strategy.BARRE))
    assert unaware.delay == pytest.approx(1 / 0.7)
    assert ready.delay > unaware.delay
    for one in (unaware, ready):
        assert one.missed == pytest.approx(0.0, abs=1e-9)
        assert one.on_time_ratio == pytest.approx(1 - np.exp(-20 * 1.0 / one.delay)), "idle, unaware takes 1"


@pytest.mark.parametrize("seed", range(3))
def test_barre_drops_nothing_up_to_its_headroom_and_a_reservation_only_up_to_its_own(seed: int) -> None:
    model, rates = loaded(seed)
    found = compare(model, rates, (0.24, 0.79), SHORT)
    missed = {(one.strategy, one.intensity_ratio): one.missed / one.offered for one in found}
    assert missed[Strategy.BARRE, 0.24] < 1e-7
    assert missed[Strategy.BARRE, 0.79] < 1e-7
    assert missed[Strategy.RESERVED, 0.24] < 1e-7
    assert missed[Strategy.RESERVED, 0.79] > 0.01
    assert missed[Strategy.UNAWARE, 0.24] > 0.001


def test_the_strategies_come_out_in_the_papers_order() -> None:
    missed: dict[Strategy, float] = defaultdict(float)
    late: dict[Strategy, float] = defaultdict(float)
    for seed in range(4):
        model, rates = loaded(seed)
        for one in compare(model, rates, (0.4, 0.6, 0.8), SHORT):
            missed[one.strategy] += one.missed / one.offered
            late[one.strategy] += 1 - one.on_time_ratio
    assert missed[Strategy.BARRE] < missed[Strategy.ADAPTIVE_RESERVED]
    assert missed[Strategy.ADAPTIVE_RESERVED] < missed[Strategy.ADAPTIVE] < missed[Strategy.UNAWARE]
    assert missed[Strategy.ADAPTIVE_RESERVED] < missed[Strategy.RESERVED] < missed[Strategy.UNAWARE]
    assert late[Strategy.BARRE] < late[Strategy.ADAPTIVE_RESERVED] < late[Strategy.RESERVED]
    assert late[Strategy.RESERVED] < late[Strategy.UNAWARE]


def test_slower_reaction_drops_more() -> None:
    model, rates = loaded(1)
    quick, slow = (
        of(compare(model, rates, (0.8,), replace(SHORT, reaction_steps=steps)), Strategy.ADAPTIVE).missed
        for steps in (1, 8)
    )
    assert quick < slow


def test_without_input_nothing_is_missed() -> None:
    found = compare(read(worked_example()), (0.0, 0.0), (0.5,), SHORT)
    assert {(one.offered, one.missed, one.on_time_ratio) for one in found} == {(0.0, 0.0, 1.0)}


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="send to all"):
        compare(read(with_edges()), (0.01, 0.01), (0.5,), SHORT)
    with pytest.raises(ValueError, match="do not fit"):
        compare(read(worked_example()), (0.3, 0.3), (0.5,), SHORT)
