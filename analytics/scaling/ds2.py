"""DS2: the parallelism every operator needs, for all operators in one traversal of the graph.

The true rates of an operator's instances tell what one instance can do; walking from the sources, each operator's
target output is its selectivity times its target input, and what it needs is

    need = target input ÷ (o[λp] ÷ p)        parallelism = ⌈need × (1 + factor)⌉

Needs are not rounded on the way down. An operator whose numbers are missing or make no sense gets a reason
in place of a number: never zero, never unbounded, never a guess; those behind it are undecided with it.

Source: Kalavri et al., *Three steps is all you need*, OSDI 2018, equations 7 and 8. The ratio correction
and the factor are those of the authors' code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from analytics.model.decisions import Decision, OperatorDecision, Reason, Status
from analytics.model.rates import Observation
from analytics.model.topology import Operator
from analytics.scaling.graph import Graph, graph_of
from analytics.scaling.rates import Totals, output_shares, totals

NAME = "ds2"
VERSION = 1
MOST_PARALLELISM = 32_768
"""No engine we know runs an operator with more instances (Flink's bound on key groups)."""

NOISE = 1e-9
"""A need this little above a whole number, relative to it, is that number: the rest is rounding of floats."""


@dataclass(frozen=True, slots=True)
class Ds2Settings:
    """``scaling_factor`` adds a reserve to what is asked for, not to what is passed downstream.

    With ``target_rate_ratio``, a source that delivers less than its target by more than this ratio
    although no operator is to be scaled up multiplies every parallelism by that ratio: overheads that the
    rates do not show.
    """

    scaling_factor: float = 0.0
    min_parallelism: int = 1
    max_parallelism: int = MOST_PARALLELISM
    target_rate_ratio: float | None = None


def decide(seen: Observation, settings: Ds2Settings | None = None) -> Decision:
    """The parallelism of every operator for one window, in the topology's order.

    Windows are independent of one another. The cost is one pass over operators, instances and edges.
    """
    settings = settings or Ds2Settings()
    graph = graph_of(seen.topology)
    operators = seen.topology.operators
    trouble = graph.trouble
    if any(item.operator_id not in graph.positions for item in seen.window.operators):
        trouble = trouble or Reason.TOPOLOGY_MISMATCH
    if trouble is not None:
        decisions = tuple(_unknown(item, trouble, graph.is_source(i)) for i, item in enumerate(operators))
        return Decision(NAME, VERSION, decisions)
    found = _totals(seen, graph)
    return _corrected(seen, found, _walk(seen, graph, found, settings), settings)


def whole(need: float) -> int:
    """The need rounded up, but not because of rounding errors just above a whole number; at least 1."""
    below = math.floor(need)
    return max(below if need - below <= NOISE * max(below, 1) else below + 1, 1)


def _totals(seen: Observation, graph: Graph) -> list[Totals | Reason]:
    rates = {item.operator_id: item for item in seen.window.operators}
    return [
        totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(seen.topology.operators)
    ]


def _walk(
    seen: Observation, graph: Graph, found: Sequence[Totals | Reason], settings: Ds2Settings
) -> tuple[OperatorDecision, ...]:
    operators = seen.topology.operators
    targets = {item.operator_id: item.rate_per_s for item in seen.targets}
    shares = output_shares(graph, found)
    output: list[float | None] = [None] * len(operators)
    decided: list[OperatorDecision | None] = [None] * len(operators)
    for position in graph.order:
        operator, totals_of = operators[position], found[position]
        if graph.is_source(position):
            decision = _source(operator, totals_of, targets.get(operator.id))
            output[position] = decision.target_rate_per_s if decision.status is Status.OK else None
        else:
            target = _input(output, shares, graph.inputs[position], position)
            decision = _operator(operator, totals_of, target, settings)
            output[position] = _output(decision, totals_of)
        decided[position] = decision
    return tuple(item for item in decided if item is not None)


def _input(
    output: Sequence[float | None], shares: dict[tuple[int, int], float], inputs: Sequence[int], position: int
) -> float | None:
    target = 0.0
    for source in inputs:
        sent = output[source]
        if sent is None:
            return None
        target += sent * shares.get((source, position), 1.0)
    return target


def _output(decision: OperatorDecision, found: Totals | Reason) -> float | None:
    """Equation 8; an operator with nothing to do sends nothing, whatever its selectivity is."""
    if decision.reason is Reason.NO_INPUT:
        return 0.0
    if isinstance(found, Reason) or decision.target_rate_per_s is None or decision.status is not Status.OK:
        return None
    if found.true_output is None:
        return None
    sent = found.true_output / found.true_processing * decision.target_rate_per_s
    return sent if math.isfinite(sent) else None


def _source(operator: Operator, found: Totals | Reason, target: float | None) -> OperatorDecision:
    rates = None if isinstance(found, Reason) else found
    reason = None
    if target is None:
        unusable = found if isinstance(found, Reason) else Reason.NO_SOURCE_TARGET
        reason = Reason.NO_SOURCE_TARGET if unusable is Reason.MISSING_RATES else unusable
    elif not (math.isfinite(target) and target >= 0):
        reason, target = Reason.NON_FINITE, None
    return OperatorDecision(
        operator_id=operator.id,
        current=operator.parallelism,
        need=None,
        parallelism=operator.parallelism,
        status=Status.OK if reason is None else Status.CANNOT_DECIDE,
        reason=reason,
        target_rate_per_s=target,
        true_processing_per_s=rates.true_processing if rates else None,
        true_output_per_s=rates.true_output if rates else None,
    )


def _operator(
    operator: Operator, found: Totals | Reason, target: float | None, settings: Ds2Settings
) -> OperatorDecision:
    if target is not None and not math.isfinite(target):
        return replace(_unknown(operator, Reason.NON_FINITE, source=False), target_rate_per_s=None)
    reason = found if isinstance(found, Reason) else None
    if reason in (None, Reason.ZERO_CAPACITY, Reason.ZERO_USEFUL_TIME):
        if target is None:
            reason = Reason.UPSTREAM_UNDECIDED
        elif target == 0:
            reason = Reason.NO_INPUT
    rates = None if isinstance(found, Reason) else found
    undecided = replace(
        _unknown(operator, reason or Reason.NON_FINITE, source=reason is Reason.NO_INPUT),
        target_rate_per_s=target,
        true_processing_per_s=rates.true_processing if rates else None,
        true_output_per_s=rates.true_output if rates else None,
    )
    if reason is not None or rates is None or target is None:
        return undecided
    need = target / (rates.true_processing / operator.parallelism)
    if not math.isfinite(need * (1 + settings.scaling_factor)):
        return undecided
    parallelism, note = _limited(operator, whole(need * (1 + settings.scaling_factor)), settings)
    return replace(undecided, need=need, parallelism=parallelism, status=Status.OK, reason=None, note=note)


def _limited(operator: Operator, wanted: int, settings: Ds2Settings) -> tuple[int, str]:
    most = min(settings.max_parallelism, operator.max_parallelism or settings.max_parallelism)
    given = max(min(wanted, most), settings.min_parallelism)
    return given, "" if given == wanted else f"{wanted} limited to {given}"


def _unknown(operator: Operator, reason: Reason, source: bool) -> OperatorDecision:
    return OperatorDecision(
        operator_id=operator.id,
        current=operator.parallelism,
        need=None,
        parallelism=operator.parallelism if source else None,
        status=Status.CANNOT_DECIDE,
        reason=reason,
        target_rate_per_s=None,
        true_processing_per_s=None,
        true_output_per_s=None,
    )


def _corrected(
    seen: Observation,
    found: Sequence[Totals | Reason],
    decisions: tuple[OperatorDecision, ...],
    settings: Ds2Settings,
) -> Decision:
    """The correction by the target-rate ratio, or the decisions as they are."""
    limit = settings.target_rate_ratio
    ratio = achieved_ratio(seen, found) if limit is not None else 1.0
    scaled_up = any(item.proposed > item.current for item in decisions)
    if limit is None or ratio <= limit * (1 + NOISE) or scaled_up:
        return Decision(NAME, VERSION, decisions)
    corrected = []
    for operator, item in zip(seen.topology.operators, decisions, strict=True):
        if item.need is not None and item.parallelism is not None:
            most, note = _limited(operator, whole(item.parallelism * ratio), settings)
            note = "; ".join(
                filter(None, (item.note, f"{item.parallelism} × {ratio:.4g} for the ratio", note))
            )
            item = replace(item, parallelism=most, note=note)
        corrected.append(item)
    return Decision(
        NAME,
        VERSION,
        tuple(corrected),
        f"the sources deliver less than their targets by a ratio of {ratio:.4g}",
    )


def achieved_ratio(seen: Observation, found: Sequence[Totals | Reason]) -> float:
    """The largest target ÷ observed output of the sources; 1 if none is known."""
    positions = {operator.id: position for position, operator in enumerate(seen.topology.operators)}
    ratios = [1.0]
    for target in seen.targets:
        rates = found[positions[target.operator_id]] if target.operator_id in positions else None
        if isinstance(rates, Totals) and rates.observed_output:
            ratios.append(target.rate_per_s / rates.observed_output)
    return max(ratio for ratio in ratios if math.isfinite(ratio))
