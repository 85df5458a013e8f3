"""Models at the edge of sense: lost nodes, full nodes, caps, skew, dead ends, costs of nothing and of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.bursts.assignment import fixed_headroom, fixed_single_headroom, loads, rebalance
from analytics.bursts.constraints import constraints
from analytics.bursts.headroom import headroom, joint_headroom, node_losses
from analytics.bursts.index import Lookup, planned, point_index
from analytics.bursts.region import full_region, pair_region
from analytics.bursts.single import single_headroom
from analytics.bursts.solver import Solver
from analytics.model.bursts import without_node
from tests.support.burst_models import random_document, read


def odd_document(seed: int) -> dict[str, Any]:
    """A random model in which every third component or so has something about it."""
    rng = np.random.default_rng(seed)
    document = random_document(seed, applications=3, nodes=4, resources=1 + seed % 2, services=5)
    size = float(10.0 ** rng.integers(-8, 9))
    for node in document["nodes"].values():
        for name in node:
            node[name] *= size
    for body in document["applications"].values():
        if rng.random() < 0.3:
            body["stages"][int(rng.integers(len(body["stages"])))]["selectivity"] = 0.0
        for stage in body["stages"]:
            for component in stage["components"]:
                component["cost"] = {name: cost * size for name, cost in component["cost"].items()}
                match int(rng.integers(12)):
                    case 0:
                        component["cost"] = {}
                    case 1:
                        component["cap"] = float(rng.choice([0.0, 1e-6, 1.0, 1e9]))
                    case 2:
                        component["least_share"] = 0.05
                    case 3:
                        component["fixed"] = {"r0": 0.01 * document["nodes"][component["node"]]["r0"]}
                    case 4 if len(stage["components"]) > 1:
                        component["most_share"] = 0.9
    if rng.random() < 0.3:
        document["nodes"]["n0"]["r0"] = 0.0
        for body in document["applications"].values():
            for stage in body["stages"]:
                for component in stage["components"]:
                    if component["node"] == "n0":
                        component.pop("fixed", None)
    return document


@pytest.mark.parametrize("seed", range(40))
def test_answers_about_odd_models_agree_with_one_another(seed: int) -> None:
    model = read(odd_document(seed))
    rng = np.random.default_rng(seed)
    if rng.random() < 0.3:
        model = without_node(model, "n1")
    solver = Solver(constraints(model))
    rows = solver.rows
    shape = rng.uniform(0, 1, 3)
    most = solver.along(np.zeros(3), shape).value
    rates = rng.uniform(0, 1.3) * (most if np.isfinite(most) else 1.0) * shape
    answer = headroom(solver, rates)
    scale = 1e-6 * max(float(rows.rate_unit.max()), float(rates.max()), 1e-300)
    assert min(answer.each) >= answer.joint - scale
    assert (np.array(answer.target) >= 0).all()
    if answer.joint >= 0:
        assert answer.joint - scale <= answer.single <= min(answer.alone) + scale
        assert answer.proportional >= 1 - 1e-6
    plan = np.array(answer.plan)
    load = rows.usage[:, : len(plan)] @ plan
    assert (load <= rows.limits + 1e-6 * rows.limit_unit).all()
    bounded = {component.node for _, _, component in model.components() if component.least_share > 0}
    for loss in node_losses(solver, rates):
        # A lost component need not get its least share any more.
        assert loss.joint <= answer.joint + scale or loss.node in bounded
        cold = Solver(constraints(without_node(model, loss.node)))
        assert loss.joint == pytest.approx(joint_headroom(cold, rates).value, abs=scale, rel=1e-6)
    rounded, odd = rebalance(solver, rates)
    assert odd == ()
    if not (rows.least_share.any() or (rows.most_share < 1).any()):
        assert rounded.rounded_joint <= answer.joint + scale
    region = full_region(solver)
    if region is not None and region.facets:
        assert np.array(region.vertices).max(axis=0) == pytest.approx(np.array(answer.max_rate), abs=scale)
    pair_region(solver, rates, 0, 1)
    index = point_index(solver)
    if index is not None:
        assert planned(solver, Lookup(index), rates).growth <= answer.joint + scale


@pytest.mark.parametrize("seed", range(20))
def test_the_routing_for_any_one_burst_does_what_it_says_in_odd_models_too(seed: int) -> None:
    solver = Solver(constraints(read(odd_document(seed))))
    rows = solver.rows
    shape = np.random.default_rng(seed).uniform(0, 1, 3)
    most = solver.along(np.zeros(3), shape).value
    rates = 0.5 * (most if np.isfinite(most) else 1.0) * shape
    answer = headroom(solver, rates)
    found = single_headroom(rows, rates, answer.joint, min(answer.alone))
    if found.shares is not None:
        unit_loads = loads(rows, found.shares)
        carried = fixed_single_headroom(rows, unit_loads, rates)
        assert carried >= found.value - 1e-5 * float(rows.rate_unit.max())
        assert fixed_headroom(rows, unit_loads, rates) <= answer.joint + 1e-5 * float(rows.rate_unit.max())
