"""Burst models to test and measure with: the worked example, and random ones of a chosen size."""

from __future__ import annotations

from typing import Any

import numpy as np

from analytics.model.bursts import BurstModel
from analytics.model.bursts_json import burst_model


def worked_example(second_cost: float = 6.67) -> dict[str, Any]:
    """Two applications whose first stages share nodes A and B and whose second stages have a node each."""

    def stage(name: str, *components: tuple[str, str, float]) -> dict[str, Any]:
        return {
            "name": name,
            "selectivity": 1.0,
            "components": [{"name": c, "node": n, "cost": {"cpu": u}} for c, n, u in components],
        }

    return {
        "nodes": {name: {"cpu": 1.0} for name in ("A", "B", "dest1", "dest2")},
        "applications": {
            "app1": {"stages": [stage("s1", ("c1", "A", 4.0), ("c3", "B", second_cost)),
                                stage("s2", ("c5", "dest1", 4.0))]},
            "app2": {"stages": [stage("s1", ("c2", "A", 6.0), ("c4", "B", 10.0)),
                                stage("s2", ("c6", "dest2", 5.0))]},
        },
    }  # fmt: skip


EDGES = [
    {"from": "c1", "to": "c5", "node": "link", "cost": {"bytes": 100.0}},
    {"from": "c3", "to": "c5"},
]


def with_edges(**own: float) -> dict[str, Any]:
    """The worked example with application 1 in edge form, c1 behind a link; some selectivities of components."""
    document = worked_example()
    document["nodes"]["link"] = {"bytes": 5.0}
    document["applications"]["app1"]["edges"] = EDGES
    for component in document["applications"]["app1"]["stages"][0]["components"]:
        if component["name"] in own:
            component["selectivity"] = own[component["name"]]
    return document


def read(document: Any) -> BurstModel:
    """A model without anything odd in it."""
    model, odd = burst_model(document)
    assert odd == ()
    return model


def random_document(
    seed: int,
    applications: int = 3,
    nodes: int = 5,
    resources: int = 1,
    services: int = 10,
    per_node: int = 5,
) -> dict[str, Any]:
    """Chains of four to six services, each of which runs on some of the nodes, as in the paper's set-up."""
    rng = np.random.default_rng(seed)
    names = [f"r{j}" for j in range(resources)]
    services = min(services, nodes * per_node)
    hosts = {service: {int(service % nodes)} for service in range(services)}
    for node in range(nodes):
        for service in rng.permutation(services)[: max(per_node - 1, 1)]:
            hosts[int(service)].add(node)
    cost = rng.uniform(0.5, 1.5, (services, 1, resources)) * rng.uniform(
        0.8, 1.2, (services, nodes, resources)
    )
    capacity = rng.uniform(0.7, 1.3, (nodes, resources)) * 10
    found: dict[str, Any] = {}
    for q in range(applications):
        stages = []
        chosen = rng.permutation(services)[: min(int(rng.integers(4, 7)), services)]
        for k, service in enumerate(chosen.tolist()):
            components = [
                {
                    "name": f"a{q}s{k}n{node}",
                    "node": f"n{node}",
                    "cost": {name: float(cost[service, node, j]) for j, name in enumerate(names)},
                }
                for node in sorted(hosts[service])
            ]
            stages.append(
                {"name": f"s{k}", "selectivity": float(rng.uniform(0.6, 1.3)), "components": components}
            )
        found[f"a{q}"] = {"stages": stages}
    return {
        "nodes": {
            f"n{node}": {name: float(capacity[node, j]) for j, name in enumerate(names)}
            for node in range(nodes)
        },
        "applications": found,
    }


def random_model(seed: int, **sizes: int) -> BurstModel:
    """`random_document` as a model."""
    return read(random_document(seed, **sizes))
