"""The policy lab: what every policy would have done with a job's stored history, side by side.

Each stored window tells what the job was able to do then: the capacity of one instance, the selectivity,
the shares of branches and what its sources should have delivered. Each policy scales a model of that job,
window after window. What it assumes: capacity grows with the instances, every instance is alike, and
queues hold one second's work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from analytics.model.decisions import Action, Move, Reason
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.rates import Observation
from analytics.scaling.dataflow import Dataflow, ModelOperator, ModelSource, linear
from analytics.scaling.ds2_manager import MEETS_TARGET, achieved_share
from analytics.scaling.graph import Graph, graph_of
from analytics.scaling.policies import POLICIES
from analytics.scaling.rates import Totals, output_shares, totals
from analytics.scaling.simulate import Interval, Run, Timing, simulate

AS_IT_WAS = "as it was"
_QUEUE_S = 1.0


def replay(
    history: Sequence[Observation], settings: Mapping[str, Any], restart_s: float = 0.0
) -> tuple[tuple[Run, ...], tuple[Diagnostic, ...]]:
    """Runs of several policies on the same history, after what really happened.

    Parameters
    ----------
    history
        Observations of one job in the order of time, with the same operators and windows of about one length.
    settings
        The policies to try, by name, and their settings.
    restart_s
        How long a change of parallelism stops the job.

    Returns
    -------
    tuple of Run
        The history itself (`AS_IT_WAS`), then a run a policy, in the order of ``settings``. Only the history if
        nothing can be replayed.
    tuple of Diagnostic
        ``never_measured`` operators, without which nothing is replayed; ``other_graph`` for windows in
        which the job had other operators, and ``carried_over`` for numbers taken from another window as
        they were missing.
    """
    same = [seen for seen in history if _shape(seen) == _shape(history[0])]
    odd = []
    if len(same) < len(history):
        odd.append(
            Diagnostic("other_graph", len(history) - len(same), "windows with other operators are left out")
        )
    if not same:
        return (), ()
    interval_s = math.fsum(seen.window.length_s for seen in same) / len(same)
    flows, more = _flows(same)
    runs = [_as_it_was(same, interval_s)]
    if flows:
        start = _parallelism(same[0])
        timing = Timing(interval_s, restart_s, step_s=min(1.0, interval_s / 10))
        runs += [simulate(flows, start, POLICIES[name], chosen, timing) for name, chosen in settings.items()]
    return tuple(runs), merge([*odd, *more])


def _shape(seen: Observation) -> tuple[Any, ...]:
    return tuple(item.id for item in seen.topology.operators), seen.topology.edges


def _parallelism(seen: Observation) -> dict[str, int]:
    sources = {operator.id for operator in seen.topology.sources()}
    return {item.id: item.parallelism for item in seen.topology.operators if item.id not in sources}


def _as_it_was(history: Sequence[Observation], interval_s: float) -> Run:
    intervals, paid_s, under_s = [], 0.0, 0.0
    for number, seen in enumerate(history):
        achieved = achieved_share(seen)
        after = _parallelism(history[min(number + 1, len(history) - 1)])
        now = _parallelism(seen)
        changes = tuple((name, count) for name, count in after.items() if now[name] != count)
        move = Move.RESCALE if changes else Move.KEEP
        action = Action(move, changes, "what happened", None)
        reached = 1.0 if achieved is None else achieved
        intervals.append(Interval((number + 1) * interval_s, tuple(now.items()), reached, action))
        paid_s += interval_s * sum(item.parallelism for item in seen.topology.operators)
        under_s += interval_s if reached < MEETS_TARGET else 0.0
    return Run(AS_IT_WAS, tuple(intervals), tuple(_parallelism(history[-1]).items()), paid_s / 3600, under_s)


def _flows(history: Sequence[Observation]) -> tuple[list[Dataflow], list[Diagnostic]]:
    """The job in each window; a number that is missing is the last one known, or else the first."""
    graph = graph_of(history[0].topology)
    if graph.trouble is not None:
        return [], [Diagnostic("never_measured", 1, graph.trouble.words)]
    measured = [_measured(seen, graph) for seen in history]
    flows: list[Dataflow] = []
    carried, missing = 0, []
    for position, operator in enumerate(history[0].topology.operators):
        known = [window[position] for window in measured if window[position] is not None]
        if not known:
            missing.append(Diagnostic("never_measured", 1, operator.name))
            continue
        last = known[0]
        for window in measured:
            carried += window[position] is None
            last = window[position] = last if window[position] is None else window[position]
    if missing:
        return [], missing
    for seen, window in zip(history, measured, strict=True):
        flows.append(_flow(seen, graph, window))
    odd = [Diagnostic("carried_over", carried, "numbers that were missing in a window")] if carried else []
    return flows, odd


def _measured(seen: Observation, graph: Graph) -> list[ModelSource | ModelOperator | None]:
    targets = {target.operator_id: target.rate_per_s for target in seen.targets}
    rates = {item.operator_id: item for item in seen.window.operators}
    found: list[ModelSource | ModelOperator | None] = []
    for position, operator in enumerate(seen.topology.operators):
        if graph.is_source(position):
            rate = targets.get(operator.id)
            lag = rates[operator.id].lag_last if operator.id in rates else None
            usable = rate is not None and math.isfinite(rate) and rate >= 0
            source = ModelSource(operator.id, rate or 0.0, lag is not None, operator.parallelism)
            found.append(source if usable else None)
            continue
        known = totals(operator, rates.get(operator.id), source=False)
        if isinstance(known, Reason):
            found.append(None)
            continue
        each = known.true_processing / operator.parallelism
        selectivity = (known.true_output or 0.0) / known.true_processing
        found.append(ModelOperator(operator.id, linear(each), selectivity, each * _QUEUE_S))
    return found


def _flow(seen: Observation, graph: Graph, window: Sequence[ModelSource | ModelOperator | None]) -> Dataflow:
    operators = seen.topology.operators
    rates = {item.operator_id: item for item in seen.window.operators}
    found: list[Totals | Reason] = [
        totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(operators)
    ]
    shares = output_shares(graph, found)
    return Dataflow(
        tuple(item for item in window if isinstance(item, ModelSource)),
        tuple(item for item in window if isinstance(item, ModelOperator)),
        tuple((edge.source, edge.target) for edge in seen.topology.edges),
        tuple((operators[one].id, operators[other].id, share) for (one, other), share in shares.items()),
    )
