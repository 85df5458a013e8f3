"""Selectivities and costs from measurements: right where they can be told, flagged where they cannot."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.bursts.estimate import node_costs, selectivity


def codes(odd: tuple[object, ...]) -> list[str]:
    return [getattr(item, "code", "") for item in odd]


def test_a_steady_selectivity_is_summed_outputs_over_summed_inputs() -> None:
    rng = np.random.default_rng(1)
    inputs = rng.uniform(500, 1500, 100)
    outputs = 0.4 * inputs * rng.uniform(0.95, 1.05, 100)
    value, odd = selectivity(inputs, outputs)
    assert value == pytest.approx(outputs.sum() / inputs.sum())
    assert odd == ()


def test_a_join_whose_output_grows_faster_is_flagged_and_taken_at_its_worst() -> None:
    inputs = np.linspace(500, 1500, 100)
    value, odd = selectivity(inputs, inputs**2 / 1000, "s1")
    assert codes(odd) == ["rate_dependent_selectivity"]
    assert "s1" in odd[0].example
    assert 1.3 < value < 1.5


def test_noise_alone_does_not_make_a_selectivity_rate_dependent() -> None:
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        inputs = rng.uniform(500, 1500, 60)
        flagged += bool(selectivity(inputs, inputs * rng.uniform(0.5, 1.5, 60))[1])
    assert flagged <= 2


def test_an_input_that_never_changes_says_nothing_about_its_effect() -> None:
    value, odd = selectivity(np.full(50, 1000.0), np.full(50, 700.0))
    assert value == pytest.approx(0.7)
    assert codes(odd) == ["little_rate_variation"]
    assert codes(selectivity([0, np.nan], [0, 3])[1]) == ["no_input"]


def test_costs_on_a_shared_node_are_told_apart_if_rates_vary() -> None:
    rng = np.random.default_rng(2)
    rates = rng.uniform(100, 900, (200, 3))
    true = np.array([0.002, 0.0005, 0.0])
    costs, odd = node_costs(rates @ true + 0.3 + rng.normal(0, 0.02, 200), rates)
    assert odd == ()
    assert costs.cost == pytest.approx(true, abs=4e-5)
    assert (np.abs(costs.cost - true) <= 4 * costs.standard_error).all()
    assert costs.fixed == pytest.approx(0.3, abs=0.03)


def test_components_whose_rates_move_together_are_flagged() -> None:
    rates = np.linspace(100, 900, 50)[:, None] * [1.0, 2.0]
    costs, odd = node_costs(rates @ np.array([0.002, 0.001]), rates, "A cpu")
    assert codes(odd) == ["little_rate_variation"]
    assert odd[0].example.startswith("A cpu: condition")
    assert costs.condition > 1000
    assert (costs.cost >= 0).all()
    assert codes(node_costs([1.0, 2.0], [[1.0], [2.0]])[1]) == ["too_few_windows"]
