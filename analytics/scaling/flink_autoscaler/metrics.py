"""What the autoscaler looks at: per vertex the target, the lag to work off and the true processing rate.

Source: ``ScalingMetricEvaluator``. Where the original goes on with NaN, there is a reason here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.model.decisions import Reason
from analytics.model.rates import Observation
from analytics.scaling.flink_autoscaler.options import AutoscalerOptions, BusyAggregator
from analytics.scaling.graph import Graph
from analytics.scaling.rates import Totals, edge_rate, total


@dataclass(frozen=True, slots=True)
class VertexMetrics:
    """Records per second: ``target`` to process, ``catch_up`` more until the lag is worked off,
    ``true_rate`` possible.

    ``backlog_s`` is how long a source's lag would take at its current rate.
    """

    target: float
    catch_up: float
    true_rate: float
    backlog_s: float = 0.0


def evaluate(
    seen: Observation,
    graph: Graph,
    found: Sequence[Totals | Reason],
    options: AutoscalerOptions,
    observed: dict[str, tuple[float, ...]],
) -> list[VertexMetrics | Reason]:
    """The metrics of every vertex, or why there are none; ``observed`` are earlier observed rates of sources."""
    demand: list[tuple[float, float] | None] = [None] * len(found)
    result: list[VertexMetrics | Reason] = [Reason.UPSTREAM_UNDECIDED] * len(found)
    for position in graph.order:
        totals = found[position]
        if graph.is_source(position):
            result[position], demand[position] = _source(seen, position, totals, options, observed)
            continue
        wanted = _demand(graph, found, demand, position)
        demand[position] = wanted
        if isinstance(totals, Reason):
            result[position] = totals
        elif wanted is not None:
            result[position] = VertexMetrics(*wanted, _busy_rate(totals, options.busy_aggregator))
    return result


def observed_rate(totals: Totals) -> float | None:
    """What a source would read if it were never held back; None if that is unknown."""
    if totals.backpressured_ms_per_s is None or not totals.busy_ratios:
        return None
    free = 1 - totals.backpressured_ms_per_s / 1000 / len(totals.busy_ratios)
    return read_rate(totals) / free if free > 0 else math.inf


def read_rate(totals: Totals) -> float:
    """What a source reads; what it sends if it does not count what it reads."""
    return totals.observed_processing or totals.observed_output or 0.0


def is_behind(lag: float, rate: float, seconds: float) -> bool:
    """Whether a source's lag is more than it reads in so many seconds."""
    return lag > 0 and lag >= seconds * rate


def _source(
    seen: Observation,
    position: int,
    totals: Totals | Reason,
    options: AutoscalerOptions,
    observed: dict[str, tuple[float, ...]],
) -> tuple[VertexMetrics | Reason, tuple[float, float] | None]:
    """A source that cannot be scaled still has a demand, if what it should deliver is known."""
    operator = seen.topology.operators[position]
    target = next((item.rate_per_s for item in seen.targets if item.operator_id == operator.id), None)
    if target is None or not (math.isfinite(target) and target >= 0):
        missing = Reason.NO_SOURCE_TARGET if target is None else Reason.NON_FINITE
        return totals if isinstance(totals, Reason) and totals is not Reason.MISSING_RATES else missing, None
    if isinstance(totals, Reason):
        return totals, (target, 0.0)
    rate = read_rate(totals)
    sent = totals.observed_output
    reads = target * rate / sent if sent else target
    rates = next(item for item in seen.window.operators if item.operator_id == operator.id)
    lag = rates.lag_last or 0.0
    catch_up = lag / options.catch_up_s if options.catch_up_s > 0 else 0.0
    true_rate = _busy_rate(totals, options.busy_aggregator) if totals.true_processing else math.nan
    before = observed.get(operator.id, ())
    enough = len(before) >= options.observed_rate_min_observations
    if enough and is_behind(lag, rate, options.observed_rate_lag_s):
        mean = total(before) / len(before)
        if not true_rate <= mean * (1 + options.observed_rate_switch):
            true_rate = mean
    backlog_s = lag / rate if rate else (math.inf if lag else 0.0)
    return VertexMetrics(reads, catch_up, true_rate, backlog_s), (reads, catch_up)


def _demand(
    graph: Graph,
    found: Sequence[Totals | Reason],
    demand: Sequence[tuple[float, float] | None],
    position: int,
) -> tuple[float, float] | None:
    target = catch_up = 0.0
    for source in graph.inputs[position]:
        wanted, ratio = demand[source], _ratio(graph, found, source, position)
        if wanted is None or ratio is None:
            return None
        target += wanted[0] * ratio
        catch_up += wanted[1] * ratio
    return target, catch_up


def _ratio(graph: Graph, found: Sequence[Totals | Reason], source: int, target: int) -> float | None:
    """Records on the edge for each record the sender takes in.

    Where there is only one edge, that is all the sender sends: while a queue grows the receiver takes in less.
    """
    totals = found[source]
    if isinstance(totals, Reason):
        # Only a source without rates of its own has a demand: it sends what it should deliver.
        return 1.0 if graph.is_source(source) else None
    taken = read_rate(totals) if graph.is_source(source) else totals.observed_processing
    if not taken:
        return _selectivity(totals)
    edge = edge_rate(graph, found, source, target)
    if edge is None or (len(graph.outputs[source]) == 1 and totals.observed_output):
        edge = totals.observed_output
    return None if edge is None else edge / taken


def _selectivity(totals: Totals) -> float | None:
    """Where nothing was observed, what the true rates say; a source passes on what it reads."""
    if not totals.true_processing:
        return 1.0
    return None if totals.true_output is None else totals.true_output / totals.true_processing


def _busy_rate(totals: Totals, aggregator: BusyAggregator) -> float:
    """Input rate ÷ busy share: no limit without input; the sum of the true rates without observed ones."""
    if not totals.busy_ratios or totals.observed_processing is None:
        return totals.true_processing
    if not totals.observed_processing:
        return totals.true_processing or math.inf
    shares = totals.busy_ratios
    if aggregator is BusyAggregator.AVG:
        share = total(shares) / len(shares)
    else:
        share = max(shares) if aggregator is BusyAggregator.MAX else min(shares)
    return totals.observed_processing / share if share > 0 else math.inf
