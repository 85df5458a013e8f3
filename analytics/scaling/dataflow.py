"""A dataflow to try policies on: capacities that grow with parallelism, straight or bent, queues and
back-pressure.

It is a fluid model. In each short step, from the sinks to the sources, an operator takes from its queue as
much as it can process and those behind it have room for; a source delivers what it should, or what there
is room for. What an instance does is capacity per instance, which depends on how many there are: measured
curves are concave, so that DS2, which takes capacity to grow linearly, needs more than one step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from analytics.model.rates import InstanceRates, OperatorRates, RateWindow, SourceTarget, TargetMethod
from analytics.model.topology import Edge, Operator, Topology
from analytics.scaling.graph import Graph, graph_of

Parallelism = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Curve:
    """Records per second of *one* instance by how many there are: points, straight lines between, level outside."""

    points: tuple[tuple[int, float], ...]

    def per_instance(self, parallelism: int) -> float:
        """The capacity of one of so many instances."""
        (least, first), (_, last) = self.points[0], self.points[-1]
        if parallelism <= least:
            return first
        for (low, before), (high, after) in zip(self.points, self.points[1:], strict=False):
            if parallelism <= high:
                return before + (after - before) * (parallelism - low) / (high - low)
        return last


def linear(per_instance: float) -> Curve:
    """A capacity that every further instance adds to in full."""
    return Curve(((1, per_instance),))


@dataclass(frozen=True, slots=True)
class ModelOperator:
    """An operator that is no source; ``selectivity`` is records out for each in; its queue is bounded."""

    id: str
    curve: Curve
    selectivity: float = 1.0
    queue_records: float = 10_000.0


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A source that should deliver a rate. With a backlog, what it could not deliver waits; else it is lost."""

    id: str
    rate_per_s: float
    has_backlog: bool = False
    instances: int = 1


@dataclass(frozen=True, slots=True)
class Dataflow:
    """Sources, operators and who feeds whom; all output goes to everyone behind, times the edge's share if any."""

    sources: tuple[ModelSource, ...]
    operators: tuple[ModelOperator, ...]
    edges: tuple[tuple[str, str], ...]
    shares: tuple[tuple[str, str, float], ...] = ()

    def topology(self, parallelism: Parallelism, since_ms: int = 0) -> Topology:
        """The dataflow as a job that runs with this parallelism since a time."""
        operators = (
            *(Operator(source.id, source.id, source.instances) for source in self.sources),
            *(Operator(item.id, item.id, parallelism[item.id]) for item in self.operators),
        )
        edges = tuple(Edge(source, target) for source, target in self.edges)
        return Topology("", "", "RUNNING", None, operators, edges, running_since_ms=since_ms)

    def targets(self) -> tuple[SourceTarget, ...]:
        """What the sources should deliver."""
        return tuple(SourceTarget(item.id, item.rate_per_s, TargetMethod.CONFIGURED) for item in self.sources)


@dataclass(frozen=True, slots=True)
class Queues:
    """Records waiting: in front of every operator, and outside at every source."""

    inside: tuple[tuple[str, float], ...] = ()
    outside: tuple[tuple[str, float], ...] = ()


class Simulation:
    """Runs a dataflow for a while with one parallelism; use `advance`."""

    def __init__(self, flow: Dataflow, parallelism: Parallelism, queues: Queues, step_s: float) -> None:
        self.flow, self.parallelism, self.step_s = flow, parallelism, step_s
        self.graph: Graph = graph_of(flow.topology(parallelism))
        size = len(flow.sources) + len(flow.operators)
        sources = len(flow.sources)
        self.capacity = [math.inf] * sources + [
            item.curve.per_instance(parallelism[item.id]) * parallelism[item.id] for item in flow.operators
        ]
        self.selectivity = [1.0] * sources + [item.selectivity for item in flow.operators]
        # A queue shorter than what is processed in one step would limit the rate by the length of the step.
        self.room = [0.0] * sources + [
            max(item.queue_records, 2 * capacity * step_s)
            for item, capacity in zip(flow.operators, self.capacity[sources:], strict=True)
        ]
        inside, outside = dict(queues.inside), dict(queues.outside)
        self.queue = [outside.get(item.id, 0.0) for item in flow.sources]
        self.queue += [inside.get(item.id, 0.0) for item in flow.operators]
        self.processed, self.sent, self.blocked_s = [0.0] * size, [0.0] * size, [0.0] * size
        positions = self.graph.positions
        self.shares = {(positions[one], positions[other]): share for one, other, share in flow.shares}

    def step(self) -> None:
        """One step, sinks first."""
        for position in reversed(self.graph.order):
            source = self.graph.is_source(position)
            could = self._offered(position) if source else self._able(position)
            done = min(could, self._passable(position))
            self.processed[position] += done
            self.sent[position] += done * self.selectivity[position]
            if could > 0:
                most = could if source else self.capacity[position] * self.step_s
                self.blocked_s[position] += self.step_s * (could - done) / most
            self.queue[position] -= done if not source or self.flow.sources[position].has_backlog else 0.0
            for target in self.graph.outputs[position]:
                share = self.shares.get((position, target), 1.0)
                self.queue[target] += done * self.selectivity[position] * share

    def _offered(self, position: int) -> float:
        """What a source has to deliver in a step; a backlog is worked off as fast as there is room."""
        source = self.flow.sources[position]
        arrived = source.rate_per_s * self.step_s
        if not source.has_backlog:
            return arrived
        self.queue[position] += arrived
        return self.queue[position]

    def _able(self, position: int) -> float:
        return min(self.queue[position], self.capacity[position] * self.step_s)

    def _passable(self, position: int) -> float:
        """The most it may process for all those behind it to have room for what it sends."""
        most = math.inf
        for target in self.graph.outputs[position]:
            each = self.selectivity[position] * self.shares.get((position, target), 1.0)
            if each > 0:
                most = min(most, max(self.room[target] - self.queue[target], 0.0) / each)
        return most

    def queues(self) -> Queues:
        """What waits now."""
        names = [item.id for item in self.flow.sources] + [item.id for item in self.flow.operators]
        waiting = tuple(zip(names, self.queue, strict=True))
        return Queues(waiting[len(self.flow.sources) :], waiting[: len(self.flow.sources)])

    def rates(self, window_s: float, before: Queues) -> tuple[OperatorRates, ...]:
        """What all operators did in a window, shared out evenly among their instances."""
        lags = dict(before.outside)
        found = []
        for position, source in enumerate(self.flow.sources):
            each = self._instances(position, source.instances, window_s)
            if source.has_backlog:
                lag = (lags.get(source.id, 0.0), self.queue[position])
                found.append(OperatorRates(source.id, source.instances, each, 0, *lag))
            else:
                found.append(OperatorRates(source.id, source.instances, each))
        for position, item in enumerate(self.flow.operators, len(self.flow.sources)):
            count = self.parallelism[item.id]
            found.append(OperatorRates(item.id, count, self._instances(position, count, window_s)))
        return tuple(found)

    def _instances(self, position: int, count: int, window_s: float) -> tuple[InstanceRates, ...]:
        processed, sent = self.processed[position] / count / window_s, self.sent[position] / count / window_s
        blocked = min(self.blocked_s[position] / window_s, 1.0)
        if self.graph.is_source(position):
            useful = busy = 1.0 - blocked
            true_in, true_out = (processed / useful, sent / useful) if useful > 0 else (None, None)
        else:
            each = self.capacity[position] / count
            useful = busy = processed / each
            true_in = each if processed > 0 else None
            true_out = each * self.selectivity[position] if processed > 0 else None
        return tuple(
            InstanceRates(number, true_in, true_out, processed, sent, useful, busy, blocked)
            for number in range(count)
        )


def advance(
    flow: Dataflow,
    parallelism: Parallelism,
    queues: Queues,
    start_s: float,
    window_s: float,
    step_s: float = 1.0,
) -> tuple[RateWindow, Queues]:
    """Run a dataflow for a window.

    Returns
    -------
    RateWindow
        What its operators did, as if every instance had reported it.
    Queues
        What waits afterwards.
    """
    simulation = Simulation(flow, parallelism, queues, step_s)
    for _ in range(max(round(window_s / step_s), 1)):
        simulation.step()
    start_ns = round(start_s * 1e9)
    window = RateWindow(start_ns, start_ns + round(window_s * 1e9), simulation.rates(window_s, queues))
    return window, simulation.queues()
