"""Models derived from rates: the network beside the processors, and what is said where it cannot be told."""

from __future__ import annotations

import pytest

from analytics.bursts.constraints import constraints
from analytics.bursts.derive import MeasuredJob, Setup, derive
from analytics.bursts.headroom import binding_limits, lexicographic, proportional_headroom
from analytics.bursts.solver import Solver
from analytics.model.bursts_json import burst_model
from analytics.model.rates import InstanceRates, OperatorRates, RateWindow
from analytics.model.topology import Edge, Operator, Topology
from frontend.pages.bursts import said


def job(sent_bytes: float | None = 25.0) -> MeasuredJob:
    """100 records a second, each sent on with so many bytes; counting one takes 4 ms of one of two instances."""

    def rates(name: str, true: float, done: float, sent: float) -> OperatorRates:
        bytes_per_s = None if sent_bytes is None else sent * sent_bytes
        one = InstanceRates(0, true, true, done, sent, done / true, sent_bytes_per_s=bytes_per_s)
        return OperatorRates(name, 1, (one,))

    topology = Topology(
        "ads",
        "ads",
        "RUNNING",
        0,
        (Operator("in", "in", 1), Operator("count", "count", 2)),
        (Edge("in", "count"),),
    )
    window = RateWindow(0, 10**9, (rates("in", 1_000, 100, 100), rates("count", 250, 100, 0)))
    return MeasuredJob("ads", topology, (window,))


def codes(found: tuple[object, ...]) -> dict[str, str]:
    return {item.code: item.example for item in found}  # type: ignore[attr-defined]


def test_bytes_sent_per_record_are_a_cost_where_the_network_is_known_and_can_be_what_stops_growth() -> None:
    nodes = {"n1": {"cpu": 8.0, "network_bytes": 5_000.0}, "n2": {"cpu": 8.0, "network_bytes": 5_000.0}}
    place = {"ads": {"in": ["n1"], "count": ["n2"]}}
    document, odd = derive([job()], Setup(nodes, place))
    assert {"unknown_network", "unknown_bytes"}.isdisjoint(codes(odd))
    model, _ = burst_model(document)
    costs = {one.name: dict(one.cost) for _, _, one in model.components()}
    assert costs["ads/in@n1"]["network_bytes"] == pytest.approx(25.0)
    assert "network_bytes" not in costs["ads/count@n2"], "it sends nothing"
    solver = Solver(constraints(model))
    assert proportional_headroom(solver, (100.0,)) == pytest.approx(2.0), (
        "5,000 bytes a second are 200 records"
    )
    (limit,) = binding_limits(solver, lexicographic(solver, (100.0,))[1])
    assert (limit.node, limit.resource) == ("n1", "network_bytes")
    assert said.counted(model, derived=True).startswith(
        "Counted: cpu and network_bytes. Unknown, so it may stop"
    )


def test_a_network_of_unknown_capacity_is_left_out_and_named_instead_of_being_unlimited_in_silence() -> None:
    nodes = {"n1": {"cpu": 8.0}, "n2": {"cpu": 8.0, "network_bytes": 5_000.0}}
    document, odd = derive([job()], Setup(nodes, {"ads": {"in": ["n1"], "count": ["n2"]}}))
    assert codes(odd)["unknown_network"] == "ads/in on n1"
    assert codes(derive([job()])[1])["unknown_network"] == "ads/in", "nor is it where no node is named"
    model, _ = burst_model(document)
    assert "the network (name a node's bytes a second" in said.counted(model, derived=True)
    slots, _ = burst_model(derive([job()])[0])
    assert "No nodes are named" in said.counted(slots, derived=True)


def test_bytes_that_no_engine_reported_are_told_where_the_network_is_known() -> None:
    nodes = {"n1": {"cpu": 8.0, "network_bytes": 5_000.0}}
    document, odd = derive([job(None)], Setup(nodes))
    assert codes(odd)["unknown_bytes"] == "ads/in on n1"
    assert "unknown_network" not in codes(derive([job(None)], Setup({"n1": {"cpu": 8.0}}))[1])
    model, _ = burst_model(document)
    assert all("network_bytes" not in one.cost for _, _, one in model.components())
