"""The graph a policy walks: who feeds whom, in an order in which every operator comes after those that feed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.model.decisions import Reason
from analytics.model.topology import Topology


@dataclass(frozen=True, slots=True)
class Graph:
    """Positions into ``topology.operators``; an edge that is stated twice counts once.

    ``trouble`` is why no order exists: CYCLE, or TOPOLOGY_MISMATCH if an edge names an operator that is
    not there or two operators share an id. ``order`` is empty then.
    """

    positions: dict[str, int]
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    order: tuple[int, ...]
    trouble: Reason | None = None

    def is_source(self, position: int) -> bool:
        """Whether nothing flows into the operator."""
        return not self.inputs[position]


def graph_of(topology: Topology) -> Graph:
    """The graph of a topology; one traversal of its edges."""
    positions = {operator.id: position for position, operator in enumerate(topology.operators)}
    inputs: list[list[int]] = [[] for _ in topology.operators]
    outputs: list[list[int]] = [[] for _ in topology.operators]
    matches = len(positions) == len(topology.operators)
    for edge in topology.edges:
        source, target = positions.get(edge.source), positions.get(edge.target)
        if source is None or target is None:
            matches = False
        elif target not in outputs[source]:
            outputs[source].append(target)
            inputs[target].append(source)
    order = _order(inputs, outputs)
    trouble = None
    if not matches:
        trouble = Reason.TOPOLOGY_MISMATCH
    elif len(order) < len(inputs):
        trouble = Reason.CYCLE
    return Graph(
        positions, tuple(map(tuple, inputs)), tuple(map(tuple, outputs)), () if trouble else order, trouble
    )


def _order(inputs: Sequence[Sequence[int]], outputs: Sequence[Sequence[int]]) -> tuple[int, ...]:
    waiting_for = [len(sources) for sources in inputs]
    ready = [position for position, count in enumerate(waiting_for) if not count]
    for position in ready:  # grows while it is walked
        for target in outputs[position]:
            waiting_for[target] -= 1
            if not waiting_for[target]:
                ready.append(target)
    return tuple(ready)
