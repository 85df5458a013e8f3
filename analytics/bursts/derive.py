"""A burst model from what jobs reported: cost per record from useful time, selectivities, placement and caps.

An operator becomes a stage and its instances on one node a component. A record costs an instance 1 / true rate
seconds of a core; an instance is one thread, so a component cannot take more than the true rates of its instances
(its cap). A source has no input that is counted: its records are those it sends.

Where it is not known which nodes a job's instances run on, every operator has a node of its own whose resource is
called ``slots``, one an instance: then the model tells what instances can take, not what machines can.

On a node whose network's capacity is given, a record also costs the bytes that are sent for it. Engines count what
is sent to instances of the same process too, so that is the most that crosses the network. Without a capacity the
network is not in the model, and that is said: what it can take is unknown, not unlimited.

Where an operator receives only a part of what those before it send, its costs count per record sent to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analytics.bursts.estimate import selectivity
from analytics.model.bursts import NETWORK, SLOTS
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.rates import OperatorRates, RateWindow
from analytics.model.topology import Operator, Topology

CPU = "cpu"
SPLITS = 0.1
"""An operator that gets less than what is sent, by more than this share, gets only a part of it."""


@dataclass(frozen=True, slots=True)
class MeasuredJob:
    """A job as it runs, and its windows of rates, the newest last."""

    name: str
    topology: Topology
    windows: tuple[RateWindow, ...]


@dataclass(frozen=True)
class Setup:
    """What rates do not tell.

    ``nodes`` have capacities by resource: cores as ``cpu``, maybe the bytes a second that can be sent from there as
    ``network_bytes``; empty: instances are all there is to share.
    ``placement`` names the nodes of an operator's instances in turn, by job and operator name; what it leaves out
    is taken to be spread over all nodes. ``margin_ratio`` of every node is kept free.
    """

    nodes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    placement: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)
    margin_ratio: float = 0.0


def derive(
    jobs: Sequence[MeasuredJob], setup: Setup | None = None
) -> tuple[dict[str, Any], tuple[Diagnostic, ...]]:
    """The model of some jobs as a document that `analytics.model.bursts_json.burst_model` reads.

    Returns
    -------
    dict
        Without applications if no job tells enough.
    tuple of Diagnostic
        ``no_rates`` (the job is left out), ``unknown_cost`` (an operator that never worked is taken to cost
        nothing), ``assumed_placement``, ``unknown_network`` (bytes are sent from a node of which nobody says how
        many can be: they are not counted), ``unknown_bytes`` (the other way round), and those of
        `analytics.bursts.estimate.selectivity`.
    """
    known = setup or Setup()
    found: list[Diagnostic] = []
    applications: dict[str, Any] = {}
    nodes: dict[str, dict[str, float]] = {name: dict(capacity) for name, capacity in known.nodes.items()}
    for job in jobs:
        made = _Job(job, known, found).application(nodes)
        if made is None:
            found.append(Diagnostic("no_rates", 1, job.name))
        else:
            applications[job.name] = made
    document: dict[str, Any] = {"nodes": nodes, "applications": applications}
    if known.margin_ratio:
        document["margins"] = dict.fromkeys(nodes, known.margin_ratio)
    return document, merge(found)


def stage_names(topology: Topology) -> dict[str, str]:
    """The stage of each operator id: its name, with the id where several have one name."""
    names = [operator.name for operator in topology.operators]
    return {
        operator.id: operator.name if names.count(operator.name) == 1 else f"{operator.name} ({operator.id})"
        for operator in topology.operators
    }


def input_rate(topology: Topology, window: RateWindow) -> float | None:
    """Records per second that a job's sources sent in a window; None if one did not say."""
    known = {item.operator_id: item for item in window.operators}
    sent = [_sent(known.get(source.id)) for source in topology.sources()]
    numbers = [rate for rate in sent if rate is not None]
    return math.fsum(numbers) if numbers and len(numbers) == len(sent) else None


def _sent(rates: OperatorRates | None) -> float | None:
    return _sum(rates, "observed_output_per_s")


def _sum(rates: OperatorRates | None, name: str) -> float | None:
    values = [getattr(item, name) for item in rates.instances] if rates else []
    if not values or any(value is None or not math.isfinite(value) for value in values):
        return None
    return math.fsum(values)


class _Job:
    """One job while its stages are made, sources first."""

    def __init__(self, job: MeasuredJob, setup: Setup, found: list[Diagnostic]) -> None:
        self.job, self.setup, self.found = job, setup, found
        self.names = stage_names(job.topology)
        self.inputs: dict[str, list[str]] = {operator.id: [] for operator in job.topology.operators}
        for edge in job.topology.edges:
            if edge.target in self.inputs and edge.source in self.inputs:
                self.inputs[edge.target].append(edge.source)
        totals = [(window, input_rate(job.topology, window)) for window in job.windows]
        self.came = [rate for _, rate in totals if rate is not None]
        self.rates = [
            {item.operator_id: item for item in window.operators}
            for window, rate in totals
            if rate is not None
        ]
        self.sent: dict[str, float] = {}
        """Records each operator sends per record of the job's input."""

    def application(self, nodes: dict[str, dict[str, float]]) -> dict[str, Any] | None:
        """Its stages; None if the sources' rates are not known or the graph has no order."""
        came = math.fsum(self.came)
        order = self._order()
        if not came or order is None:
            return None
        return {"stages": [self._stage(operator, came, nodes) for operator in order]}

    def _order(self) -> list[Operator] | None:
        left, order = list(self.job.topology.operators), list[Operator]()
        while left:
            placed = {operator.id for operator in order}
            ready = [operator for operator in left if placed.issuperset(self.inputs[operator.id])]
            if not ready:
                return None
            order += ready
            left = [operator for operator in left if operator not in ready]
        return order

    def _stage(self, operator: Operator, came: float, nodes: dict[str, dict[str, float]]) -> dict[str, Any]:
        inputs = self.inputs[operator.id]
        if not inputs:  # a stage without inputs gets all of the job's; only its share is this source's
            sent = [_sent(rates.get(operator.id)) or 0.0 for rates in self.rates]
            gain = factor = math.fsum(sent) / came
        else:
            factor, gain = self._flow(operator, math.fsum(self.sent[name] for name in inputs))
        self.sent[operator.id] = gain * (math.fsum(self.sent[name] for name in inputs) if inputs else 1.0)
        name = self.names[operator.id]
        components = self._components(operator, factor, nodes)
        stages = [self.names[item] for item in inputs]
        return {"name": name, "selectivity": gain, "inputs": stages, "components": components}

    def _flow(self, operator: Operator, offered: float) -> tuple[float, float]:
        """Records an operator handles, and sends on, for every one that is sent to it."""
        series = [
            (arrived, taken, _sent(rates.get(operator.id)) or 0.0)
            for arrived, rates in zip(self.came, self.rates, strict=True)
            if (taken := _sum(rates.get(operator.id), "observed_processing_per_s")) is not None
        ]
        came = math.fsum(row[0] for row in series)
        handled, sent = [row[1] for row in series], [row[2] for row in series]
        gain, odd = selectivity(handled, sent, f"{self.job.name}: {operator.name}")
        self.found.extend(odd)
        real = math.fsum(handled) / came if came else offered
        factor = real / offered if offered and real < (1 - SPLITS) * offered else 1.0
        return factor, factor * gain

    def _components(
        self, operator: Operator, factor: float, nodes: dict[str, dict[str, float]]
    ) -> list[dict[str, Any]]:
        """Instances by node; ``factor`` records are handled for every one the stage gets."""
        cost = factor * self._useful_time(operator)
        sent_bytes = self._sent_bytes(operator)
        label = f"{self.job.name}/{self.names[operator.id]}"
        if not self.setup.nodes:
            nodes[label] = {SLOTS: float(operator.parallelism)}
            self._note_network(label, sent_bytes, None)
            return [{"name": label, "node": label, "cost": {SLOTS: cost}}]
        found = []
        for node, count in self._placed(operator, label).items():
            one: dict[str, Any] = {"name": f"{label}@{node}", "node": node, "cost": {CPU: cost}}
            if cost:
                one["cap"] = count / cost
            if self._note_network(f"{label} on {node}", sent_bytes, nodes[node].get(NETWORK)) and sent_bytes:
                one["cost"][NETWORK] = factor * sent_bytes
            found.append(one)
        return found

    def _note_network(self, label: str, sent_bytes: float | None, capacity: float | None) -> bool:
        """Whether the network of a node is counted; if not although something is sent there, that is noted."""
        if capacity is None and sent_bytes:
            self.found.append(Diagnostic("unknown_network", 1, label))
        if capacity is not None and sent_bytes is None:
            self.found.append(Diagnostic("unknown_bytes", 1, label))
        return capacity is not None

    def _sent_bytes(self, operator: Operator) -> float | None:
        """Bytes sent for a record, of all instances in all windows that tell both; None if none does."""
        kind = self._kind(operator)
        known = [
            (sent, done)
            for sent, done in self._told(operator, "sent_bytes_per_s", f"observed_{kind}_per_s")
            if sent is not None and done is not None and 0 <= sent < math.inf and 0 < done < math.inf
        ]
        return math.fsum(sent for sent, _ in known) / math.fsum(done for _, done in known) if known else None

    def _useful_time(self, operator: Operator) -> float:
        """Seconds an instance works for a record: useful time over records, of all instances in all windows."""
        kind = self._kind(operator)
        known = [
            (true, done)
            for true, done in self._told(operator, f"true_{kind}_per_s", f"observed_{kind}_per_s")
            if true is not None and done is not None and 0 < true < math.inf and 0 < done < math.inf
        ]
        if not known:
            self.found.append(Diagnostic("unknown_cost", 1, f"{self.job.name}: {operator.name}"))
            return 0.0
        return math.fsum(done / true for true, done in known) / math.fsum(done for _, done in known)

    def _kind(self, operator: Operator) -> str:
        """What counts as its records: those it processes, or those a source puts out."""
        return "processing" if self.inputs[operator.id] else "output"

    def _told(self, operator: Operator, *names: str) -> list[list[float | None]]:
        """Rates of these names of all its instances in all windows."""
        return [
            [getattr(item, name) for name in names]
            for rates in self.rates
            if operator.id in rates
            for item in rates[operator.id].instances
        ]

    def _placed(self, operator: Operator, label: str) -> dict[str, int]:
        """How many instances run on each node."""
        said = list(self.setup.placement.get(self.job.name, {}).get(operator.name, ()))
        if not said:
            self.found.append(Diagnostic("assumed_placement", 1, label))
            said = list(self.setup.nodes)
        counts: dict[str, int] = {}
        for number in range(operator.parallelism):
            node = said[number % len(said)]
            counts[node] = counts.get(node, 0) + 1
        return counts
