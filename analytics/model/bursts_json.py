"""Burst models from JSON, with errors that say where and what."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from analytics.model.bursts import Application, BurstModel, Component, Edge, Node, Stage
from analytics.model.diagnostics import Diagnostic, merge


def burst_model(document: Any) -> tuple[BurstModel, tuple[Diagnostic, ...]]:
    """Read a model.

    ``{"nodes": {NODE: {RESOURCE: capacity}}, "margins": {NODE: share kept free}, "applications": {NAME: {"stages":
    [{"name", "selectivity", "inputs": [STAGE], "components": [{"name", "node", "cost": {RESOURCE: per record},
    "fixed": {RESOURCE: amount}, "cap", "least_share", "most_share", "selectivity"}]}], "edges": [{"from", "to",
    "node", "cost"}]}}}``. A stage without ``inputs`` reads the one before it, the first the application's input;
    ``"inputs": []`` is the application's input too.

    Returns
    -------
    BurstModel
        The model.
    tuple of Diagnostic
        Fields nobody knows (``unknown_field``), which have no effect.

    Raises
    ------
    ValueError
        If the document is no model; the message is one line and begins with the place.
    """
    reader = _Reader()
    body = reader.fields("the model", document, {"nodes", "applications"}, {"margins"})
    nodes = reader.nodes(body["nodes"], body.get("margins", {}))
    resources = {node.name: frozenset(node.capacity) for node in nodes}
    applications = tuple(
        reader.application(f"applications.{name}", name, value, resources)
        for name, value in reader.named("applications", body["applications"])
    )
    model = BurstModel(nodes, applications)
    _check(model)
    return model, merge(reader.found)


class _Reader:
    """Takes a document apart; remembers the fields it does not know."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []

    def fields(self, where: str, value: Any, needed: set[str], known: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: must be an object")
        for name in sorted(needed - value.keys()):
            raise ValueError(f"{where}: {name!r} is missing")
        for name in value.keys() - needed - known:
            self.found.append(Diagnostic("unknown_field", 1, f"{where}: {name!r}"))
        return value

    def named(self, where: str, value: Any) -> Iterable[tuple[str, Any]]:
        if not isinstance(value, dict) or not value:
            raise ValueError(f"{where}: must be an object with at least one name")
        for name in value:
            _name(where, name)
        return value.items()

    def nodes(self, value: Any, margins: Any) -> tuple[Node, ...]:
        nodes = []
        shares = _amounts("margins", margins)
        for name, capacity in self.named("nodes", value):
            margin = shares.pop(name, 0.0)
            if margin >= 1:
                raise ValueError(f"margins.{name}: must be at least 0 and below 1")
            amounts = _amounts(f"nodes.{name}", capacity)
            if not amounts:
                raise ValueError(f"nodes.{name}: must have at least one resource")
            nodes.append(Node(name, amounts, margin))
        for name in shares:
            raise ValueError(f"margins.{name}: there is no such node")
        return tuple(nodes)

    def application(
        self, where: str, name: str, value: Any, resources: Mapping[str, frozenset[str]]
    ) -> Application:
        body = self.fields(where, value, {"stages"}, {"edges"})
        stages: list[Stage] = []
        for number, item in enumerate(_some(f"{where}.stages", body["stages"])):
            before = (stages[-1].name,) if stages else ()
            stages.append(self.stage(f"{where}.stages[{number}]", item, before, resources))
        edges = tuple(
            self.edge(f"{where}.edges[{number}]", item, resources)
            for number, item in enumerate(_list(f"{where}.edges", body.get("edges", [])))
        )
        return Application(name, tuple(stages), edges)

    def stage(
        self, where: str, value: Any, before: tuple[str, ...], resources: Mapping[str, frozenset[str]]
    ) -> Stage:
        body = self.fields(where, value, {"name", "components"}, {"selectivity", "inputs"})
        inputs = (
            tuple(_name(f"{where}.inputs", item) for item in _list(f"{where}.inputs", body["inputs"]))
            if "inputs" in body
            else before
        )
        components = tuple(
            self.component(f"{where}.components[{number}]", item, resources)
            for number, item in enumerate(_some(f"{where}.components", body["components"]))
        )
        selectivity = _amount(f"{where}.selectivity", body.get("selectivity", 1.0))
        return Stage(_name(f"{where}.name", body["name"]), components, selectivity, inputs)

    def component(self, where: str, value: Any, resources: Mapping[str, frozenset[str]]) -> Component:
        optional = {"cost", "fixed", "cap", "least_share", "most_share", "selectivity"}
        body = self.fields(where, value, {"name", "node"}, optional)
        node, cost = _use(where, body["node"], body.get("cost", {}), "cost", resources)
        _, fixed = _use(where, node, body.get("fixed", {}), "fixed", resources)
        least = _amount(f"{where}.least_share", body.get("least_share", 0.0))
        most = _amount(f"{where}.most_share", body.get("most_share", 1.0))
        if not least <= most <= 1:
            raise ValueError(f"{where}: shares must hold 0 ≤ least_share ≤ most_share ≤ 1")
        cap, selectivity = (
            None if body.get(name) is None else _amount(f"{where}.{name}", body[name])
            for name in ("cap", "selectivity")
        )
        name = _name(f"{where}.name", body["name"])
        return Component(name, node, cost, fixed, cap, least, most, selectivity)

    def edge(self, where: str, value: Any, resources: Mapping[str, frozenset[str]]) -> Edge:
        body = self.fields(where, value, {"from", "to"}, {"node", "cost"})
        source, target = (_name(f"{where}.{end}", body[end]) for end in ("from", "to"))
        if body.get("node") is None:
            return Edge(source, target)
        return Edge(source, target, *_use(where, body["node"], body.get("cost", {}), "cost", resources))


def _name(where: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{where}: names must be texts that are not empty")
    return value


def _list(where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{where}: must be a list")
    return value


def _some(where: str, value: Any) -> list[Any]:
    if not _list(where, value):
        raise ValueError(f"{where}: must not be empty")
    return list(value)


def _amount(where: str, value: Any) -> float:
    # A bool is an int to Python, but no amount of anything.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{where}: must be a number of at least 0")
    number = float(value) if abs(value) < 1e300 else math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{where}: must be a finite number of at least 0")
    return number


def _amounts(where: str, value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise ValueError(f"{where}: must be an object of numbers")
    return {_name(where, name): _amount(f"{where}.{name}", item) for name, item in value.items()}


def _use(
    where: str, node: Any, value: Any, what: str, resources: Mapping[str, frozenset[str]]
) -> tuple[str, dict[str, float]]:
    name = _name(f"{where}.node", node)
    if name not in resources:
        raise ValueError(f"{where}.node: there is no node {name!r}")
    amounts = _amounts(f"{where}.{what}", value)
    for resource in amounts.keys() - resources[name]:
        raise ValueError(f"{where}.{what}.{resource}: node {name!r} has no such resource")
    return name, amounts


def _check(model: BurstModel) -> None:
    names: set[str] = set()
    fixed: dict[tuple[str, str], float] = {}
    for application, _, component in model.components():
        if component.name in names:
            raise ValueError(f"applications.{application.name}: there are two components {component.name!r}")
        names.add(component.name)
        if component.selectivity is not None and not application.edges:
            raise ValueError(
                f"applications.{application.name}: a selectivity of component {component.name!r} alone needs edges"
            )
        for resource, amount in component.fixed.items():
            fixed[component.node, resource] = fixed.get((component.node, resource), 0.0) + amount
    for node in model.nodes:
        for resource in node.capacity:
            if fixed.get((node.name, resource), 0.0) > node.available(resource):
                raise ValueError(
                    f"nodes.{node.name}.{resource}: what is taken at any rate exceeds the capacity"
                )
    for application in model.applications:
        _check_stages(application)
        if application.edges:
            _check_edges(application)


def _check_stages(application: Application) -> None:
    seen: set[str] = set()
    for stage in application.stages:
        where = f"applications.{application.name}: stage {stage.name!r}"
        if stage.name in seen:
            raise ValueError(f"{where} is there twice")
        for name in stage.inputs:
            if name not in seen:
                raise ValueError(f"{where} reads {name!r}, which is no stage before it")
        seen.add(stage.name)
        if sum(component.least_share for component in stage.components) > 1 + 1e-9:
            raise ValueError(f"{where}: the least shares add up to more than 1")
        if sum(component.most_share for component in stage.components) < 1 - 1e-9:
            raise ValueError(f"{where}: the most shares add up to less than 1")


def _check_edges(application: Application) -> None:
    where = f"applications.{application.name}"
    stage_of = {c.name: stage for stage in application.stages for c in stage.components}
    reached: set[tuple[str, str]] = set()
    for edge in application.edges:
        for end in (edge.source, edge.target):
            if end not in stage_of:
                raise ValueError(f"{where}: an edge names {end!r}, which is no component of it")
        if stage_of[edge.source].name not in stage_of[edge.target].inputs:
            raise ValueError(f"{where}: {edge.target!r} cannot have an edge from {edge.source!r}: see inputs")
        reached.add((edge.source, stage_of[edge.target].name))
    for stage in application.stages:
        for name in stage.inputs:
            for component, owner in stage_of.items():
                if owner.name == name and (component, stage.name) not in reached:
                    raise ValueError(f"{where}: {component!r} has no edge to stage {stage.name!r}")
