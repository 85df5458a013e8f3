"""Burst models from JSON: what is read, what is refused and in which words, what makes two models different."""

from __future__ import annotations

import json
from typing import Any

import pytest

from analytics.bursts.constraints import constraints, stage_inputs
from analytics.bursts.headroom import headroom
from analytics.bursts.solver import Solver
from analytics.model.bursts import (
    application_index,
    to_document,
    with_capacity,
    with_cost,
    without_node,
)
from analytics.model.bursts_json import burst_model
from tests.support.burst_models import random_model, read, with_edges, worked_example

COMPONENT = "applications.app1.stages[0].components[0]"


def changed(path: str, value: Any) -> dict[str, Any]:
    """The worked example with the value at a path such as ``nodes.A.cpu`` replaced."""
    document: dict[str, Any] = worked_example()
    *parents, last = path.replace("[", ".").replace("]", "").split(".")
    place: Any = document
    for step in parents:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[int(last) if isinstance(place, list) else last] = value
    return document


def test_a_model_survives_the_way_to_json_and_back() -> None:
    document = worked_example() | {"margins": {"A": 0.2}}
    first = document["applications"]["app1"]["stages"][0]["components"][0]
    first |= {"cap": 0.5, "fixed": {"cpu": 0.1}, "least_share": 0.25, "most_share": 0.75}
    model = read(document)
    again = read(json.loads(json.dumps(to_document(model))))
    assert again == model
    assert again.version == model.version


def test_every_change_makes_another_version() -> None:
    model = read(worked_example())
    others = [
        with_capacity(model, "A", "cpu", 1.1),
        with_cost(model, "c1", 1.1),
        without_node(model, "A"),
        read(worked_example() | {"margins": {"A": 0.1}}),
        random_model(1),
    ]
    assert len({model.version, *(other.version for other in others)}) == 6


def test_the_order_of_applications_makes_another_version_since_rates_go_by_place() -> None:
    document = worked_example()
    turned = document | {"applications": dict(reversed(document["applications"].items()))}
    assert read(turned).version != read(document).version
    assert len({read(document).version, read(json.loads(json.dumps(document))).version}) == 1
    swapped = headroom(Solver(constraints(read(turned))), (0.1, 0.2))
    assert swapped.rates == (0.1, 0.2), "app2 first"
    assert swapped.max_rate == headroom(Solver(constraints(read(document))), (0.2, 0.1)).max_rate[::-1]


def test_fields_nobody_knows_are_told_and_have_no_effect() -> None:
    document = worked_example() | {"colour": "red"}
    document["applications"]["app1"]["stages"][0]["note"] = "first"
    model, odd = burst_model(document)
    assert model == read(worked_example())
    assert [(item.code, item.count) for item in odd] == [("unknown_field", 2)]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("nodes", {}, "nodes: must be an object with at least one name"),
        ("nodes", [], "nodes: must be an object"),
        ("nodes.A", {}, "nodes.A: must have at least one resource"),
        ("nodes.A.cpu", -1, "nodes.A.cpu: must be a finite number of at least 0"),
        ("nodes.A.cpu", float("nan"), "nodes.A.cpu: must be a finite number"),
        ("nodes.A.cpu", 10**400, "nodes.A.cpu: must be a finite number"),
        ("nodes.A.cpu", True, "nodes.A.cpu: must be a number"),
        ("nodes.A.cpu", "1", "nodes.A.cpu: must be a number"),
        ("applications", {}, "applications: must be an object with at least one name"),
        ("applications.app1", {}, "applications.app1: 'stages' is missing"),
        ("applications.app1.stages", [], "applications.app1.stages: must not be empty"),
        ("applications.app1.stages", {}, "applications.app1.stages: must be a list"),
        ("applications.app1.stages[0].components", [], "applications.app1.stages[0].components: must not be"),
        ("applications.app1.stages[0].selectivity", -0.5, "stages[0].selectivity: must be"),
        ("applications.app1.stages[1].name", "s1", "stage 's1' is there twice"),
        ("applications.app1.stages[0].inputs", ["s2"], "stage 's1' reads 's2', which is no stage before it"),
        (f"{COMPONENT}.node", "Z", f"{COMPONENT}.node: there is no node 'Z'"),
        (f"{COMPONENT}.cost", {"gpu": 1}, f"{COMPONENT}.cost.gpu: node 'A' has no such resource"),
        (f"{COMPONENT}.name", "", f"{COMPONENT}.name: names must be texts"),
        (f"{COMPONENT}.name", "c2", "there are two components 'c2'"),
        (f"{COMPONENT}.least_share", 2, "shares must hold"),
        (f"{COMPONENT}.most_share", 0.4, None),
        (f"{COMPONENT}.fixed", {"cpu": 2}, "nodes.A.cpu: what is taken at any rate exceeds the capacity"),
        (f"{COMPONENT}.selectivity", 2, "needs edges"),
        ("margins", {"Z": 0.1}, "margins.Z: there is no such node"),
        ("margins", {"A": 1}, "margins.A: must be at least 0 and below 1"),
        ("applications.app1.edges", [{"from": "c1"}], "edges[0]: 'to' is missing"),
        ("applications.app1.edges", [{"from": "c1", "to": "c9"}], "'c9', which is no component"),
        ("applications.app1.edges", [{"from": "c5", "to": "c1"}], "cannot have an edge from 'c5'"),
        ("applications.app1.edges", [{"from": "c1", "to": "c5"}], "'c3' has no edge to stage 's2'"),
    ],
)
def test_what_is_wrong_with_a_model_is_said_in_one_line(path: str, value: Any, words: str | None) -> None:
    if words is None:
        assert read(changed(path, value))
        return
    with pytest.raises(ValueError) as error:
        burst_model(changed(path, value))
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("document", [None, [], 1, "nodes", {}, {"nodes": {"A": {"cpu": 1}}}])
def test_what_is_no_model_at_all_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match="the model"):
        burst_model(document)


def test_asking_for_what_a_model_has_not_is_refused() -> None:
    model = read(worked_example())
    for ask in (
        lambda: without_node(model, "Z"),
        lambda: with_capacity(model, "A", "gpu", 2),
        lambda: with_capacity(model, "A", "cpu", -1),
        lambda: with_cost(model, "c9", 2),
        lambda: with_cost(model, "c1", float("nan")),
        lambda: application_index(model, "app3"),
    ):
        with pytest.raises(ValueError):
            ask()


def answer(document: dict[str, Any], rates: tuple[float, ...] = (0.0, 0.0)) -> Any:
    return headroom(Solver(constraints(read(document))), rates)


def test_a_margin_and_what_is_taken_at_any_rate_leave_less() -> None:
    # dest1 alone: (1 − 0.2)·1 − 0.4 = 0.4 left at 4 a unit.
    document = worked_example() | {"margins": {"dest1": 0.2}}
    document["applications"]["app1"]["stages"][1]["components"][0]["fixed"] = {"cpu": 0.4}
    assert answer(document).max_rate[0] == pytest.approx(0.1)


def test_a_cap_stops_a_component_before_its_node_does_and_is_named() -> None:
    document = worked_example()
    document["applications"]["app1"]["stages"][1]["components"][0]["cap"] = 0.125
    found = answer(document, (0.1, 0.0))
    assert found.max_rate[0] == pytest.approx(0.125)
    assert found.binding[0].resource == "cap of c5"
    assert found.joint == pytest.approx(0.025)


def test_skew_keeps_a_share_on_the_slow_component() -> None:
    # A quarter of application 1 must go to c3: with all else free, 3/4·r on A and 1/4·r on B; dest1 stops at 1/4.
    document = worked_example()
    document["applications"]["app1"]["stages"][1]["components"][0]["cost"]["cpu"] = 0.1
    shares = document["applications"]["app1"]["stages"][0]["components"]
    free = answer(document).max_rate[0]
    shares[1] |= {"least_share": 0.75}
    assert free == pytest.approx(0.25 + 1 / 6.67)
    assert answer(document).max_rate[0] == pytest.approx(1 / 6.67 / 0.75)
    shares[1] |= {"least_share": 0.0, "most_share": 0.25}
    assert answer(document).max_rate[0] == pytest.approx(0.25 / 0.75)


def test_a_stage_that_reads_two_gets_what_both_send() -> None:
    document = worked_example()
    stages = document["applications"]["app1"]["stages"]
    stages[0]["selectivity"] = 0.5
    stages.insert(1, {"name": "side", "selectivity": 2.0, "inputs": [], "components": [
        {"name": "c7", "node": "A", "cost": {}}]})  # fmt: skip
    stages[2]["inputs"] = ["s1", "side"]
    model = read(document)
    assert stage_inputs(model.applications[0]) == {"s1": 1.0, "side": 1.0, "s2": 2.5}
    assert answer(document).max_rate[0] == pytest.approx(0.25 / 2.5)


def test_what_costs_nothing_is_limited_by_nothing() -> None:
    document = worked_example()
    for stage in document["applications"]["app2"]["stages"]:
        for component in stage["components"]:
            component["cost"] = {}
    found = answer(document, (0.05, 0.05))
    assert found.joint == pytest.approx(0.2)
    assert found.each == (pytest.approx(0.2), float("inf"))
    assert found.max_rate[1] == float("inf")
    assert found.target == pytest.approx((0.25, 0.05))
    assert found.plan[:2] == pytest.approx((0.25, 0.0)) or sum(found.plan[:2]) == pytest.approx(0.25)


def test_a_link_limits_what_passes_it() -> None:
    # The link carries 0.05 from c1; B carries 1/6.67 from c3.
    found = answer(with_edges())
    assert found.max_rate[0] == pytest.approx(0.05 + 1 / 6.67)
    assert answer(with_edges(), (0.19, 0.0)).binding[0].node in ("link", "B")


def test_replicas_may_differ_in_selectivity() -> None:
    # c1 halves what it gets, so the link carries 0.1 of its input; dest1 gets 0.05 + 1/6.67 < 1/4.
    assert answer(with_edges(c1=0.5)).max_rate[0] == pytest.approx(0.1 + 1 / 6.67)


def test_losing_a_link_or_the_only_way_is_told() -> None:
    model = read(with_edges())
    lost = Solver(constraints(without_node(model, "link")))
    assert headroom(lost, (0.0, 0.0)).max_rate[0] == pytest.approx(1 / 6.67)
    warm = Solver(constraints(model))
    with warm.without_node(warm.rows.nodes.index("link")):
        assert warm.farthest((1, 0)).value == pytest.approx(1 / 6.67)
    assert warm.farthest((1, 0)).value == pytest.approx(0.05 + 1 / 6.67)
