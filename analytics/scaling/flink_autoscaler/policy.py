"""What the autoscaler says about a whole job in one window, by itself (``ScalingExecutor`` without its memory)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from analytics.model.decisions import Decision, OperatorDecision, Reason, Status
from analytics.model.rates import Observation
from analytics.model.topology import Operator, Topology
from analytics.scaling.flink_autoscaler.capacity import band
from analytics.scaling.flink_autoscaler.metrics import VertexMetrics, evaluate
from analytics.scaling.flink_autoscaler.options import AutoscalerOptions
from analytics.scaling.flink_autoscaler.vertex import (
    PastScaling,
    VertexScaling,
    scale_vertex,
    was_ineffective,
)
from analytics.scaling.graph import Graph, graph_of
from analytics.scaling.rates import Totals, totals

Hold = Callable[[OperatorDecision, bool], tuple[OperatorDecision, bool]]
NAME = "flink-autoscaler"
VERSION = 2


def decide(
    seen: Observation,
    options: AutoscalerOptions | None = None,
    past: Mapping[str, tuple[PastScaling, ...]] | None = None,
    observed: dict[str, tuple[float, ...]] | None = None,
    hold: Hold | None = None,
) -> Decision:
    """The parallelism of every vertex: all move if one that would change is outside its band, else none.

    Parameters
    ----------
    past
        Earlier scalings by operator, oldest first.
    observed
        Earlier rates by source at which it would have read if it had not been held back.
    hold
        May delay a vertex, given whether it is outside its band: what waits does not make the others move.
    """
    options = options or AutoscalerOptions()
    graph = graph_of(seen.topology)
    rates = {item.operator_id: item for item in seen.window.operators}
    trouble = graph.trouble
    if any(name not in graph.positions for name in rates):
        trouble = trouble or Reason.TOPOLOGY_MISMATCH
    operators = seen.topology.operators
    if trouble is not None:
        return Decision(
            NAME,
            VERSION,
            tuple(_undecided(item, i, graph, trouble, trouble) for i, item in enumerate(operators)),
        )
    found = [
        totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(operators)
    ]
    metrics = evaluate(seen, graph, found, options, observed or {})
    decisions, outside = [], []
    for position, operator in enumerate(operators):
        told = metrics[position]
        if isinstance(told, Reason):
            decisions.append(_undecided(operator, position, graph, told, found[position]))
            continue
        history = (past or {}).get(operator.id, ())
        scaling = _scaled(operator, seen.topology, told, options, history)
        item, acts = _decided(operator, told, scaling, found[position]), _outside(told, metrics, options)
        if hold is not None:
            item, acts = hold(item, acts)
        decisions.append(item)
        if acts and item.proposed != item.current:
            outside.append(operator.name)
    return _together(tuple(decisions), outside)


def in_backlog(metrics: list[VertexMetrics | Reason], options: AutoscalerOptions) -> bool:
    """Whether a source is so far behind that scaling down must wait."""
    return any(not isinstance(item, Reason) and item.backlog_s > options.backlog_lag_s for item in metrics)


def _outside(told: VertexMetrics, metrics: list[VertexMetrics | Reason], options: AutoscalerOptions) -> bool:
    up, down = band(told.target, told.catch_up, options, in_backlog=in_backlog(metrics, options))
    return told.true_rate < up or told.true_rate > down


def _scaled(
    operator: Operator,
    topology: Topology,
    told: VertexMetrics,
    options: AutoscalerOptions,
    past: tuple[PastScaling, ...],
) -> VertexScaling:
    if operator.id in options.excluded_ids:
        return VertexScaling(None, operator.parallelism, told.true_rate, "excluded by configuration")
    aligned = any(edge.target == operator.id and edge.strategy == "HASH" for edge in topology.edges)
    groups = operator.max_parallelism or topology.max_parallelism
    scaling = scale_vertex(operator.parallelism, groups, aligned, told, options, past)
    if scaling.parallelism > operator.parallelism and was_ineffective(
        operator.parallelism, told.true_rate, past, options
    ):
        if options.ineffective_blocks:
            return replace(
                scaling, parallelism=operator.parallelism, note="the last scale-up was ineffective"
            )
        return replace(scaling, note=f"{scaling.note}; the last scale-up was ineffective")
    return scaling


def _decided(
    operator: Operator, told: VertexMetrics, scaling: VertexScaling, found: Totals | Reason
) -> OperatorDecision:
    return OperatorDecision(
        operator_id=operator.id,
        current=operator.parallelism,
        need=scaling.need,
        parallelism=scaling.parallelism,
        status=Status.OK,
        reason=None,
        target_rate_per_s=told.target,
        true_processing_per_s=told.true_rate if math.isfinite(told.true_rate) else None,
        true_output_per_s=None if isinstance(found, Reason) else found.true_output,
        note=scaling.note,
    )


def _undecided(
    operator: Operator, position: int, graph: Graph, reason: Reason, found: Totals | Reason
) -> OperatorDecision:
    known = None if isinstance(found, Reason) else found
    return OperatorDecision(
        operator_id=operator.id,
        current=operator.parallelism,
        need=None,
        parallelism=operator.parallelism if graph.is_source(position) else None,
        status=Status.CANNOT_DECIDE,
        reason=reason,
        target_rate_per_s=None,
        true_processing_per_s=known.true_processing if known else None,
        true_output_per_s=known.true_output if known else None,
    )


def _together(decisions: tuple[OperatorDecision, ...], outside: list[str]) -> Decision:
    if outside:
        return Decision(NAME, VERSION, decisions, f"outside the utilisation band: {', '.join(outside)}")
    kept = tuple(
        replace(item, parallelism=item.current, note=f"{item.note}; within its band, so kept")
        if item.status is Status.OK and item.parallelism != item.current
        else item
        for item in decisions
    )
    return Decision(NAME, VERSION, kept, "every vertex is within its utilisation band")
