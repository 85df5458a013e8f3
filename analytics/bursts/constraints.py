"""A burst model as the rows and columns of a linear program.

Variables are the input rates r of the applications and, of each component, the rate x it handles (in edge form
also the rate f on each edge). Rows say that what enters a stage is handled by its components, and that no node
gives more of a resource than it has:

    Σ x over the components of stage k = S_k · r      Σ cost · x over what runs on a node ≤ capacity      x ≥ 0

S_k is the stage's input per input of the application: the product of the selectivities before it. In edge form,
x is what arrives over edges, and what leaves to each reading stage is selectivity · x.

Everything is scaled, because solvers compare with absolute tolerances: rates by about the most each application can
reach, rows by their capacity.

Source: Drougas and Kalogeraki, IPDPS 2009, with totals of stages where the paper writes flows between neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from analytics.bursts.highs import INFINITY, Floats
from analytics.model.bursts import Application, BurstModel, Component

Ints = npt.NDArray[np.int64]

CAP = "cap of "
"""A component's cap is a row too; its resource is called ``cap of`` and the component."""


NEXT_TO_NOTHING = 1e-6


@dataclass(frozen=True)
class Constraints:
    """The rows of a model. Q applications, V variables (components, then edges), M limits.

    Attributes
    ----------
    version
        Of the model.
    applications, components, nodes
        Names, in the model's order.
    application_of, node_of
        (V,) Which application a variable belongs to and which node it loads (−1: none).
    stage_of, stage_input
        (n,) The stage of each component, numbered over all applications; (stages,) S_k.
    least_share, most_share
        (n,) Bounds of each component's share of its stage.
    rate_unit, unit
        (Q,), (V,) What 1 means for a scaled rate and variable.
    flow, flow_lower
        Rows over scaled (rates, variables). ``≥ flow_lower``, and equal to it where ``flow_equal``.
    least_row
        Variables with a least share → their row of ``flow``.
    usage
        (M, V) What one unit of each variable takes of each limit: unscaled.
    limits
        (M,) What there is to take.
    limit_unit
        (M,) What 1 means for a scaled limit.
    limit_names
        (node, resource) of each limit.
    edges
        (source component, target component) of each edge.
    """

    version: str
    applications: tuple[str, ...]
    components: tuple[str, ...]
    nodes: tuple[str, ...]
    application_of: Ints
    node_of: Ints
    stage_of: Ints
    stage_input: Floats
    least_share: Floats
    most_share: Floats
    rate_unit: Floats
    unit: Floats
    flow: sparse.csr_array
    flow_lower: Floats
    flow_equal: npt.NDArray[np.bool_]
    least_row: dict[int, int]
    usage: sparse.csr_array
    limits: Floats
    limit_unit: Floats
    limit_names: tuple[tuple[str, str], ...]
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def scaled_usage(self) -> sparse.csr_array:
        """(M, V) ``usage`` between a scaled variable and a scaled limit."""
        scaled = self.usage.copy()
        counts = np.diff(scaled.indptr)
        scaled.data = scaled.data * self.unit[scaled.indices] / np.repeat(self.limit_unit, counts)
        return scaled

    def rates(self, rates: npt.ArrayLike) -> Floats:
        """Checked input rates, one for each application.

        Raises
        ------
        ValueError
            If there are too few or many, or one is negative or not finite.
        """
        checked = np.asarray(rates, dtype=float)
        if checked.shape != (len(self.applications),):
            raise ValueError(f"{len(self.applications)} rates are needed, not {checked.shape}")
        if not (np.isfinite(checked).all() and (checked >= 0).all()):
            raise ValueError("rates must be finite and at least 0")
        return checked


@dataclass
class _Entries:
    """Rows of a sparse matrix while they are collected."""

    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    count: int = 0

    def add(self, entries: dict[int, float]) -> int:
        self.rows.extend([self.count] * len(entries))
        self.columns.extend(entries.keys())
        self.values.extend(entries.values())
        self.count += 1
        return self.count - 1

    def matrix(self, width: int) -> sparse.csr_array:
        return sparse.csr_array((self.values, (self.rows, self.columns)), shape=(self.count, width))


def constraints(model: BurstModel) -> Constraints:
    """The linear program of a model."""
    nodes = {node.name: number for number, node in enumerate(model.nodes)}
    places = {component.name: number for number, (_, _, component) in enumerate(model.components())}
    edges = [(number, edge) for number, one in enumerate(model.applications) for edge in one.edges]
    inputs = [stage_inputs(one) for one in model.applications]
    stage_of, stage_input, owner = _stages(model, inputs)
    available = {(node.name, name): node.available(name) for node in model.nodes for name in node.capacity}
    rate_unit = np.array([_rate_unit(available, one, inputs[q]) for q, one in enumerate(model.applications)])
    unit = np.array(
        [rate_unit[owner[k]] * (stage_input[k] or 1.0) for k in stage_of]
        + [rate_unit[q] * (stage_input[stage_of[places[edge.target]]] or 1.0) for q, edge in edges]
    )
    flow = _flow(model, places, unit, rate_unit, inputs)
    usage, limits, limit_unit, limit_names = _usage(model, places, unit, available)
    return Constraints(
        version=model.version,
        applications=tuple(one.name for one in model.applications),
        components=tuple(places),
        nodes=tuple(nodes),
        application_of=np.array([owner[k] for k in stage_of] + [q for q, _ in edges], dtype=np.int64),
        node_of=np.array(
            [nodes[component.node] for _, _, component in model.components()]
            + [-1 if edge.node is None else nodes[edge.node] for _, edge in edges],
            dtype=np.int64,
        ),
        stage_of=np.array(stage_of, dtype=np.int64),
        stage_input=np.array(stage_input),
        least_share=np.array([component.least_share for _, _, component in model.components()]),
        most_share=np.array([component.most_share for _, _, component in model.components()]),
        rate_unit=rate_unit,
        unit=unit,
        flow=flow.entries.matrix(len(rate_unit) + len(unit)),
        flow_lower=np.zeros(flow.entries.count),
        flow_equal=np.array(flow.equal, dtype=bool),
        least_row={column - len(rate_unit): row for column, row in flow.least_row.items()},
        usage=usage,
        limits=limits,
        limit_unit=limit_unit,
        limit_names=limit_names,
        edges=tuple((places[edge.source], places[edge.target]) for _, edge in edges),
    )


def stage_inputs(application: Application) -> dict[str, float]:
    """What each stage gets per input of the application, S_k, by the stages' selectivities."""
    inputs: dict[str, float] = {}
    selectivity = {stage.name: stage.selectivity for stage in application.stages}
    for stage in application.stages:
        inputs[stage.name] = (
            sum(inputs[name] * selectivity[name] for name in stage.inputs) if stage.inputs else 1.0
        )
    return inputs


def _stages(model: BurstModel, inputs: list[dict[str, float]]) -> tuple[list[int], list[float], list[int]]:
    """Stage of each component, S of each stage, application of each stage."""
    stage_of: list[int] = []
    stage_input: list[float] = []
    owner: list[int] = []
    for q, application in enumerate(model.applications):
        for stage in application.stages:
            stage_of += [len(owner)] * len(stage.components)
            stage_input.append(inputs[q][stage.name])
            owner.append(q)
    return stage_of, stage_input, owner


def _rate_unit(
    available: dict[tuple[str, str], float], application: Application, inputs: dict[str, float]
) -> float:
    """About the most the application can take: the least over its stages of what its components could alone."""
    most = [
        sum(_most_rate(component, available) for component in stage.components) / inputs[stage.name]
        for stage in application.stages
        if inputs[stage.name]
    ]
    least = min((one for one in most if one > 0), default=np.inf)
    return float(least) if np.isfinite(least) else 1.0


def _most_rate(component: Component, available: dict[tuple[str, str], float]) -> float:
    rate = INFINITY if component.cap is None else component.cap
    for resource, cost in component.cost.items():
        if cost > 0:
            rate = min(rate, available[component.node, resource] / cost)
    return rate


@dataclass
class _Flow:
    """The rows that say what enters a stage is handled there, while they are collected."""

    entries: _Entries = field(default_factory=_Entries)
    equal: list[bool] = field(default_factory=list)
    least_row: dict[int, int] = field(default_factory=dict)

    def add(self, entries: dict[int, float], equal: bool = True) -> int:
        self.equal.append(equal)
        return self.entries.add(entries)


def _flow(
    model: BurstModel,
    places: dict[str, int],
    unit: Floats,
    rate_unit: Floats,
    inputs: list[dict[str, float]],
) -> _Flow:
    flow, width = _Flow(), len(rate_unit)
    first_edge = len(places)
    for q, application in enumerate(model.applications):
        for stage in application.stages:
            # Scaled so that the rate's factor is 1; nothing arrives where a selectivity before is 0.
            arriving = inputs[q][stage.name]
            scale = rate_unit[q] * (arriving or 1.0)
            here = {width + places[c.name]: float(unit[places[c.name]] / scale) for c in stage.components}
            rate = {q: -1.0} if arriving else {}
            if not application.edges or not stage.inputs:
                flow.add(here | rate)
            for component in stage.components:
                _shares(flow, component, width + places[component.name], here)
        if application.edges:
            for row in _edge_rows(application, places, first_edge, unit):
                flow.add({width + column: value for column, value in row.items()})
        first_edge += len(application.edges)
    return flow


def _shares(flow: _Flow, component: Component, column: int, stage: dict[int, float]) -> None:
    """A component's least and most share of what its stage handles."""
    if component.least_share > 0:
        row = {other: -component.least_share * value for other, value in stage.items()}
        row[column] += stage[column]
        flow.least_row[column] = flow.add(row, equal=False)
    if component.most_share < 1:
        row = {other: component.most_share * value for other, value in stage.items()}
        row[column] -= stage[column]
        flow.add(row, equal=False)


def _edge_rows(
    application: Application, places: dict[str, int], first: int, unit: Floats
) -> Iterator[dict[int, float]]:
    """x = what arrives over edges, and for each reading stage what leaves = selectivity · x."""
    reader = {c.name: stage.name for stage in application.stages for c in stage.components}
    arriving: dict[str, dict[int, float]] = {}
    leaving: dict[tuple[str, str], dict[int, float]] = {}
    for number, edge in enumerate(application.edges, first):
        arriving.setdefault(edge.target, {})[number] = float(unit[number])
        leaving.setdefault((edge.source, reader[edge.target]), {})[number] = float(unit[number])
    for stage in application.stages:
        readers = [other.name for other in application.stages if stage.name in other.inputs]
        for component in stage.components:
            place = places[component.name]
            if stage.inputs:
                row = arriving.get(component.name, {}) | {place: -float(unit[place])}
                yield _scaled(row)
            own = stage.selectivity if component.selectivity is None else component.selectivity
            for name in readers:
                yield _scaled(leaving.get((component.name, name), {}) | {place: -own * float(unit[place])})


def _scaled(row: dict[int, float]) -> dict[int, float]:
    largest = max(map(abs, row.values())) or 1.0
    return {column: value / largest for column, value in row.items() if value}


def _usage(
    model: BurstModel, places: dict[str, int], unit: Floats, left: dict[tuple[str, str], float]
) -> tuple[sparse.csr_array, Floats, Floats, tuple[tuple[str, str], ...]]:
    """What each variable takes of each limit, in the units of costs; caps are limits of one component."""
    takers: dict[tuple[str, str], dict[int, float]] = {name: {} for name in left}
    left = dict(left)
    for _, _, component in model.components():
        place = places[component.name]
        for resource, cost in component.cost.items():
            if cost > 0:
                takers[component.node, resource][place] = cost
        for resource, amount in component.fixed.items():
            left[component.node, resource] -= amount
        if component.cap is not None:
            takers[component.node, CAP + component.name] = {place: 1.0}
            left[component.node, CAP + component.name] = component.cap
    every_edge = (edge for application in model.applications for edge in application.edges)
    for number, edge in enumerate(every_edge, len(places)):
        for resource, cost in edge.cost.items():
            if edge.node is not None and cost > 0:
                takers[edge.node, resource][number] = cost
    names = tuple(name for name, row in takers.items() if row or left[name] < 0)
    entries = _Entries()
    for name in names:
        entries.add(takers[name])
    limits = np.array([left[name] for name in names])
    usage = entries.matrix(len(unit))
    # Where next to nothing is left, what is asked for is the scale.
    largest = np.zeros(len(names))
    np.maximum.at(largest, entries.rows, np.array(entries.values) * unit[entries.columns])
    limit_unit = np.maximum(limits, NEXT_TO_NOTHING * largest)
    return usage, limits, np.where(limit_unit > 0, limit_unit, 1.0), names
