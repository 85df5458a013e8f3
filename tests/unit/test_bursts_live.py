"""What is tried out on a cluster's page: one resource of a node, or all that it has."""

from __future__ import annotations

import json

import pytest
from plotly.utils import PlotlyJSONEncoder

from frontend.pages.bursts import said, trying
from frontend.pages.bursts.wish import Wish
from tests.support.burst_models import read
from webapp.bursts import live
from webapp.bursts.live import Change

MODEL = read(
    {
        "nodes": {"A": {"cpu": 4.0, "network_bytes": 1_000.0}, "B": {"cpu": 4.0}},
        "applications": {
            "ads": {
                "stages": [
                    {
                        "name": "s",
                        "components": [
                            {"name": "c", "node": "A", "cost": {"cpu": 0.01, "network_bytes": 5.0}}
                        ],
                    }
                ]
            }
        },
    }
)


@pytest.mark.parametrize(
    ("resource", "grows"), [("", 4.0), ("network_bytes", 4.0), ("cpu", 2.0)], ids=["all", "network", "cpu"]
)
def test_only_more_of_what_stops_growth_helps(resource: str, grows: float) -> None:
    change = Change(node="A", capacity_ratio=2.0, resource=resource)
    assert live.solve(MODEL, (100.0,), change).proportional == pytest.approx(grows)


def test_the_address_names_a_resource_that_the_node_has_and_any_other_counts_as_all_of_it() -> None:
    chosen = Wish.parse("?node=A&res=cpu&cap=200").known(MODEL).change
    assert (chosen.node, chosen.resource, chosen.capacity_ratio) == ("A", "cpu", 2.0)
    assert said.tried(chosen) == "If we had 200 % of the cpu of A"
    other = Wish.parse("?node=B&res=network_bytes&cap=200").known(MODEL).change
    assert (other.node, other.resource) == ("B", "")
    assert said.tried(other) == "If we had 200 % of the capacity of B"


def test_a_node_with_one_resource_offers_no_choice_of_it() -> None:
    for node, offered in (("A", True), ("B", False)):
        _, found = trying.controls(MODEL, Wish.parse(f"?node={node}").known(MODEL), None)
        drawn = json.dumps(found, cls=PlotlyJSONEncoder)
        assert ('"data-param": "res"' in drawn) is offered
