"""The burst model: which application runs what, on which node, at what cost per record.

`burst_model` makes one from what JSON says and `to_document` goes back. A model never changes; a changed model is
another one with another ``version``, and whatever is computed from a model names the version it is for.

Rates and capacities share one unit of time, the user's choice: with a cost in CPU seconds per record and a capacity
in cores, rates are records per second.

Source: Drougas and Kalogeraki, *Accommodating Bursts in Distributed Stream Processing Systems*, IPDPS 2009.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

SLOTS = "slots"
"""The resource that instances bring to the node they run on: a rescale changes it."""

NETWORK = "network_bytes"
"""The resource of what a node's components send, in bytes per unit of time."""


@dataclass(frozen=True)
class Component:
    """One instance of a stage on one node.

    ``cost`` is the amount of each resource one record takes (CPU seconds, bytes), ``fixed`` what is taken at any
    rate (the memory of its state), ``cap`` the most records per unit of time it can take (its parallelism). A keyed
    stage's skew bounds the share of the stage's records that goes to this component by ``least_share`` and
    ``most_share``. ``selectivity`` is its own output per input, if replicas differ; None: the stage's.
    """

    name: str
    node: str
    cost: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    cap: float | None = None
    least_share: float = 0.0
    most_share: float = 1.0
    selectivity: float | None = None


@dataclass(frozen=True)
class Stage:
    """A step of an application; ``selectivity`` is its output per input.

    ``inputs`` names the stages it reads; none means the application's own input. Each reader gets all the output.
    """

    name: str
    components: tuple[Component, ...]
    selectivity: float = 1.0
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """A way from one component to another, for applications whose records cannot go from each to each.

    With ``node`` it takes ``cost`` there for every record: a network link is a node with a resource such as bytes.
    """

    source: str
    target: str
    node: str | None = None
    cost: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Application:
    """Stages in the order records pass them, each after those it reads.

    Without ``edges`` any component of a stage may send to any of the next (stage form); with them only along edges
    (edge form).
    """

    name: str
    stages: tuple[Stage, ...]
    edges: tuple[Edge, ...] = ()


@dataclass(frozen=True)
class Node:
    """A machine or link: what it has of each resource, and the share of it kept free (``margin_ratio``)."""

    name: str
    capacity: Mapping[str, float]
    margin_ratio: float = 0.0

    def available(self, resource: str) -> float:
        """What components can use of a resource: capacity without the margin."""
        return (1 - self.margin_ratio) * self.capacity[resource]


@dataclass(frozen=True)
class BurstModel:
    """Nodes and the applications that share them."""

    nodes: tuple[Node, ...]
    applications: tuple[Application, ...]

    @cached_property
    def version(self) -> str:
        """The same for equal models and different for different ones: 16 hexadecimal digits.

        The order of applications and nodes counts, since rates and plans go by place.
        """
        order = [[one.name for one in self.applications], [node.name for node in self.nodes]]
        text = json.dumps([to_document(self), order], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def components(self) -> Iterator[tuple[Application, Stage, Component]]:
        """Every component with where it belongs, in the order plans list them."""
        for application in self.applications:
            for stage in application.stages:
                for component in stage.components:
                    yield application, stage, component


def machines(model: BurstModel) -> tuple[str, ...]:
    """The nodes that can be lost, as machines and links can: not those that only hold an operator's instances."""
    return tuple(node.name for node in model.nodes if set(node.capacity) != {SLOTS})


def application_index(model: BurstModel, name: str) -> int:
    """The place of an application in rates and regions.

    Raises
    ------
    ValueError
        If the model has none of this name.
    """
    for index, application in enumerate(model.applications):
        if application.name == name:
            return index
    raise ValueError(f"the model has no application {name!r}")


def without_node(model: BurstModel, name: str) -> BurstModel:
    """The same model after the loss of a node: nothing there can take a record any more.

    Raises
    ------
    ValueError
        If the model has no such node.
    """
    lost = _node(model, name)
    nodes = tuple(
        replace(node, capacity=dict.fromkeys(node.capacity, 0.0)) if node is lost else node
        for node in model.nodes
    )

    def stopped(component: Component) -> Component:
        if component.node != name:
            return component
        # What costs nothing there is not stopped by a capacity of 0.
        cap = component.cap if any(component.cost.values()) else 0.0
        return replace(component, fixed={}, cap=cap, least_share=0.0)

    def cut(edge: Edge) -> Edge:
        return replace(edge, cost=dict.fromkeys(lost.capacity, 1.0)) if edge.node == name else edge

    applications = (
        replace(one, edges=tuple(map(cut, one.edges))) for one in _with_components(model, stopped)
    )
    return BurstModel(nodes, tuple(applications))


def with_capacity(model: BurstModel, node_name: str, resource: str, ratio: float) -> BurstModel:
    """The same model with ``ratio`` times the capacity of one node in one resource.

    Raises
    ------
    ValueError
        If there is no such node or resource, or the ratio is negative.
    """
    node = _node(model, node_name)
    if resource not in node.capacity:
        raise ValueError(f"node {node_name!r} has no resource {resource!r}")
    if not 0 <= ratio < float("inf"):
        raise ValueError(f"a capacity cannot be multiplied by {ratio}")
    changed = replace(node, capacity={**node.capacity, resource: node.capacity[resource] * ratio})
    return replace(model, nodes=tuple(changed if one is node else one for one in model.nodes))


def with_cost(model: BurstModel, component_name: str, ratio: float) -> BurstModel:
    """The same model with ``ratio`` times the cost per record of one component, in every resource.

    Raises
    ------
    ValueError
        If there is no such component, or the ratio is negative.
    """
    if not 0 <= ratio < float("inf"):
        raise ValueError(f"a cost cannot be multiplied by {ratio}")
    if all(component.name != component_name for _, _, component in model.components()):
        raise ValueError(f"the model has no component {component_name!r}")

    def changed(component: Component) -> Component:
        if component.name != component_name:
            return component
        return replace(component, cost={name: value * ratio for name, value in component.cost.items()})

    return replace(model, applications=tuple(_with_components(model, changed)))


def with_application_cost(model: BurstModel, name: str, ratio: float) -> BurstModel:
    """The same model with ``ratio`` times the cost per record of one application; its caps are that much lower.

    Raises
    ------
    ValueError
        If there is no such application, or the ratio is not above 0.
    """
    if not 0 < ratio < float("inf"):
        raise ValueError(f"a cost cannot be multiplied by {ratio}")
    application_index(model, name)
    mine = {component.name for one, _, component in model.components() if one.name == name}

    def changed(component: Component) -> Component:
        if component.name not in mine:
            return component
        cost = {resource: value * ratio for resource, value in component.cost.items()}
        return replace(component, cost=cost, cap=None if component.cap is None else component.cap / ratio)

    return replace(model, applications=tuple(_with_components(model, changed)))


def with_parallelism(model: BurstModel, name: str, factors: Mapping[str, float]) -> BurstModel:
    """The same model with other numbers of instances: ``factors`` times as many, by stage of one application.

    Instances bring their caps, and the resource ``slots`` (`SLOTS`) of the nodes they run on. A stage with neither
    can take what its nodes can, however many instances it has.

    Raises
    ------
    ValueError
        If there is no such application, or a factor is not above 0.
    """
    if any(not 0 < factor < float("inf") for factor in factors.values()):
        raise ValueError("instances can only be multiplied by a number above 0")
    application_index(model, name)
    factor_of = {
        component.name: factors.get(stage.name, 1.0)
        for one, stage, component in model.components()
        if one.name == name
    }
    slots: dict[str, float] = {}
    for _, _, component in model.components():
        if SLOTS in component.cost:
            slots[component.node] = slots.get(component.node, 1.0) * factor_of.get(component.name, 1.0)

    def changed(component: Component) -> Component:
        factor = factor_of.get(component.name, 1.0)
        return component if component.cap is None else replace(component, cap=component.cap * factor)

    nodes = tuple(
        replace(node, capacity={**node.capacity, SLOTS: node.capacity[SLOTS] * slots.get(node.name, 1.0)})
        if SLOTS in node.capacity
        else node
        for node in model.nodes
    )
    return BurstModel(nodes, tuple(_with_components(model, changed)))


def _with_components(model: BurstModel, change: Callable[[Component], Component]) -> Iterator[Application]:
    for application in model.applications:
        stages = (
            replace(stage, components=tuple(map(change, stage.components))) for stage in application.stages
        )
        yield replace(application, stages=tuple(stages))


def to_document(model: BurstModel) -> dict[str, Any]:
    """The model as JSON says it; what is at its default is left out."""
    document: dict[str, Any] = {
        "nodes": {node.name: dict(node.capacity) for node in model.nodes},
        "applications": {one.name: _application_document(one) for one in model.applications},
    }
    margins = {node.name: node.margin_ratio for node in model.nodes if node.margin_ratio}
    return document | ({"margins": margins} if margins else {})


def _node(model: BurstModel, name: str) -> Node:
    for node in model.nodes:
        if node.name == name:
            return node
    raise ValueError(f"the model has no node {name!r}")


def _application_document(application: Application) -> dict[str, Any]:
    document: dict[str, Any] = {"stages": [_stage_document(stage) for stage in application.stages]}
    if application.edges:
        document["edges"] = [
            {"from": edge.source, "to": edge.target}
            | ({"node": edge.node, "cost": dict(edge.cost)} if edge.node is not None else {})
            for edge in application.edges
        ]
    return document


def _stage_document(stage: Stage) -> dict[str, Any]:
    return {
        "name": stage.name,
        "selectivity": stage.selectivity,
        "inputs": list(stage.inputs),
        "components": [_component_document(component) for component in stage.components],
    }


def _component_document(component: Component) -> dict[str, Any]:
    document: dict[str, Any] = {"name": component.name, "node": component.node, "cost": dict(component.cost)}
    if component.fixed:
        document["fixed"] = dict(component.fixed)
    if component.cap is not None:
        document["cap"] = component.cap
    if component.least_share > 0 or component.most_share < 1:
        document |= {"least_share": component.least_share, "most_share": component.most_share}
    if component.selectivity is not None:
        document["selectivity"] = component.selectivity
    return document
