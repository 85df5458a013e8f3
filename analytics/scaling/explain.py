"""Decisions in words: the formula with the numbers filled in, and what to expect afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.model.decisions import Decision, OperatorDecision, Status
from analytics.model.rates import Observation, TargetMethod
from analytics.scaling import ds2
from analytics.scaling.graph import graph_of
from analytics.scaling.rates import output_shares, totals

_METHODS = {
    TargetMethod.CONFIGURED: "as configured",
    TargetMethod.BACKLOG_GROWTH: "what it reads and what its backlog grows by",
    TargetMethod.UNTHROTTLED_OUTPUT: "what it sends when it is not held back",
    TargetMethod.OBSERVED_OUTPUT: "what it was seen to send",
}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a parallelism is expected to give, if capacity grows with the instances.

    ``achieved_ratio`` is the share of the targets that is processed, at most 1; ``limiter`` the operator
    that keeps it below 1, or None. ``utilisation`` is the busy share of every operator whose need is
    known; ``complete`` is False if another's is not, which may then be what limits.
    """

    achieved_ratio: float
    limiter: str | None
    utilisation: tuple[tuple[str, float], ...]
    complete: bool


def predict(decision: Decision, parallelism: Mapping[str, int] | None = None) -> Prediction:
    """What the decision, or another parallelism for the same needs, is expected to give.

    Under the model an operator is busy for need ÷ parallelism of the time; where that exceeds 1, the whole
    job runs at the inverse of the largest (DS2, section 3.4).
    """
    chosen = parallelism or {}
    load = {
        item.operator_id: item.need / chosen.get(item.operator_id, item.proposed)
        for item in decision.operators
        if item.need is not None
    }
    heaviest = max(load, key=lambda name: load[name], default=None)
    achieved = 1.0 if heaviest is None else min(1.0, 1.0 / load[heaviest]) if load[heaviest] else 1.0
    return Prediction(
        achieved,
        heaviest if achieved < 1 else None,
        tuple((name, share * achieved) for name, share in load.items()),
        not decision.undecided,
    )


def explain(seen: Observation, decision: Decision) -> tuple[str, ...]:
    """A sentence an operator, in the topology's order; as readable for no change as for a change."""
    names = {operator.id: operator.name for operator in seen.topology.operators}
    methods = {target.operator_id: target.method for target in seen.targets}
    branches = _branches(seen) if decision.policy == ds2.NAME else {}
    return tuple(
        f"{names[item.operator_id]}: {_sentence(decision.policy, item, methods.get(item.operator_id))}"
        f"{branches.get(item.operator_id, '') if item.status is Status.OK else ''}"
        for item in decision.operators
    )


def _branches(seen: Observation) -> dict[str, str]:
    """For operators beside others behind one: what of its output they get, and how that is known."""
    graph, operators = graph_of(seen.topology), seen.topology.operators
    rates = {item.operator_id: item for item in seen.window.operators}
    found = [
        totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(operators)
    ]
    shares = output_shares(graph, found)
    told: dict[str, str] = {}
    for source, targets in enumerate(graph.outputs):
        for target in targets if len(targets) > 1 else ():
            part = shares.get((source, target))
            what = "everything that" if part is None else f"{100 * part:.3g}% of what"
            how = "as every branch does" if part is None else "by what the branches take in"
            sent = f" It gets {what} {operators[source].name} sends, {how}."
            told[operators[target].id] = told.get(operators[target].id, "") + sent
    return told


def _sentence(policy: str, item: OperatorDecision, method: TargetMethod | None) -> str:
    if item.status is Status.CANNOT_DECIDE and item.reason is not None:
        return f"cannot decide ({item.reason.value}): {item.reason.words}."
    target, able = item.target_rate_per_s, item.true_processing_per_s
    if policy != ds2.NAME or item.need is None or target is None or able is None:
        return _noted(item, method)
    why = f"; {item.note}" if item.note else ""
    return (
        f"{_change(item)}. Target input {_rate(target)} ÷ (true rate {_rate(able)} ÷ {item.current})"
        f" = {item.need:.6g}, rounded up {item.proposed}{why}."
    )


def _noted(item: OperatorDecision, method: TargetMethod | None) -> str:
    """A source, or an operator of a policy whose notes hold its numbers."""
    words = [item.note] if item.note else []
    if item.need is None and method is not None and item.target_rate_per_s is not None:
        words.append(f"it should deliver {_rate(item.target_rate_per_s)}, {_METHODS[method]}")
    return f"{_change(item)}{': ' + '; '.join(words) if words else ''}."


def _change(item: OperatorDecision) -> str:
    return "no change" if item.proposed == item.current else f"{item.current} → {item.proposed}"


def _rate(per_s: float) -> str:
    return f"{per_s:,.1f}/s"
