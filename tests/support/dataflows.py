"""Small dataflows and their rates, for tests of scaling policies."""

from __future__ import annotations

from itertools import pairwise

from analytics.model.rates import (
    InstanceRates,
    Observation,
    OperatorRates,
    RateWindow,
    SourceTarget,
    TargetMethod,
)
from analytics.model.topology import Edge, Operator, Topology


def topology(parallelism: dict[str, int], *edges: tuple[str, str]) -> Topology:
    """Operators named like their ids."""
    operators = tuple(Operator(name, name, count) for name, count in parallelism.items())
    return Topology("job", "job", "RUNNING", 0, operators, tuple(Edge(*edge) for edge in edges))


def chain(**parallelism: int) -> Topology:
    """Operators one behind the other."""
    names = list(parallelism)
    return topology(parallelism, *pairwise(names))


def rates(
    operator: str,
    processing: float | None,
    output: float | None,
    *,
    instances: int = 1,
    observed: tuple[float | None, float | None] | None = None,
    backpressured: float | None = None,
    busy: float | None = None,
    expected: int | None = None,
) -> OperatorRates:
    """Instances that all do the same; rates are of one instance. ``expected`` is by default as many as report."""
    seen = (processing, output) if observed is None else observed
    found = tuple(
        InstanceRates(number, processing, output, *seen, busy, busy, backpressured)
        for number in range(instances)
    )
    return OperatorRates(operator, instances if expected is None else expected, found)


def observation(graph: Topology, *operators: OperatorRates, **targets: float) -> Observation:
    """One minute of a job; targets are records per second of a source, all instances together."""
    found = tuple(SourceTarget(name, rate, TargetMethod.CONFIGURED) for name, rate in targets.items())
    return Observation(graph, RateWindow(0, 60_000_000_000, operators), found)
