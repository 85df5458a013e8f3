"""From counters to rates: per instance, per operator, per edge, and what the sources should deliver.

Source: DS2 (OSDI 2018), section 3.2, equations 1 to 6. Incomplete is not smaller: an operator of which an
instance did not report has no total, only a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from analytics.model.decisions import Reason
from analytics.model.rates import InstanceRates, OperatorRates, RateWindow, SourceTarget, TargetMethod
from analytics.model.topology import InstanceWindow, JobPoll, MemoryUse, Operator, Topology, Unknown
from analytics.scaling.graph import Graph

THROTTLED_RATIO = 0.1
"""A source held back for more of its time than this shows how fast it can send, not what it should deliver."""

SPLIT_TOLERANCE = 0.05
"""The inputs of the operators behind one may add up to this much more or less than its output to be a split."""

_STALE = (Unknown.OLD_ATTEMPT, Unknown.FROZEN)


@dataclass(frozen=True, slots=True)
class Totals:
    """An operator's rates: sums over all its instances, in records per second (DS2's o[λp] and o[λo]).

    An output or observed rate is None if an instance did not report it. ``busy_ratios`` are the shares of the
    window the instances were busy, none if one is unknown; ``backpressured_ms_per_s`` is the instances' sum.
    """

    true_processing: float
    true_output: float | None
    observed_processing: float | None
    observed_output: float | None
    busy_ratios: tuple[float, ...]
    backpressured_ms_per_s: float | None


def instance_rates(window: InstanceWindow, *, source: bool) -> InstanceRates | None:
    """The rates of one instance, or None if its window is unknown.

    A source's useful time is all the time it was not held back: its busy time says nothing about what it could
    deliver (DS2's instrumentation of Flink does the same).
    """
    if window.unknown is not None or not window.observed_ms:
        return None
    useful = window.ratio(window.busy_ms)
    backpressured = window.ratio(window.backpressured_ms)
    if source:
        useful = None if backpressured is None else 1.0 - backpressured
    processed, sent = window.per_s(window.records_in), window.per_s(window.records_out)
    return InstanceRates(
        instance=window.instance,
        true_processing_per_s=_true(processed, useful),
        true_output_per_s=_true(sent, useful),
        observed_processing_per_s=processed,
        observed_output_per_s=sent,
        useful_ratio=useful,
        busy_ratio=window.ratio(window.busy_ms),
        backpressured_ratio=backpressured,
        queued=window.queued,
        sent_bytes_per_s=window.per_s(window.bytes_out),
    )


def rate_window(topology: Topology, windows: Iterable[InstanceWindow]) -> RateWindow:
    """The rates of every operator of a topology; windows of other operators are kept and will disagree."""
    found: dict[str, list[InstanceWindow]] = {operator.id: [] for operator in topology.operators}
    start_ns, end_ns = [], []
    for window in windows:
        found.setdefault(window.operator_id, []).append(window)
        if window.unknown is None:
            start_ns.append(window.from_ns)
            end_ns.append(window.until_ns)
    expected = {operator.id: operator.parallelism for operator in topology.operators}
    sources = {operator.id for operator in topology.sources()}
    operators = tuple(
        OperatorRates(
            operator_id,
            expected.get(operator_id, 0),
            tuple(
                rates
                for one in windows_of
                if (rates := instance_rates(one, source=operator_id in sources)) is not None
            ),
            sum(one.unknown in _STALE for one in windows_of),
        )
        for operator_id, windows_of in found.items()
    )
    return RateWindow(min(start_ns, default=0), max(end_ns, default=0), operators)


def memory_use(polls: Sequence[JobPoll]) -> MemoryUse | None:
    """How short of memory the job's processes were over its polls.

    As Flink's autoscaler takes it: garbage collection (and metaspace) as they were last, the heap on average.
    """
    told = [poll.memory for poll in polls if poll.memory is not None]
    heaps = [use.heap_ratio for use in told if use.heap_ratio is not None]
    gc = [use.gc_ratio for use in told if use.gc_ratio is not None]
    metaspace = [use.metaspace_ratio for use in told if use.metaspace_ratio is not None]
    if not (heaps or gc or metaspace):
        return None
    return MemoryUse(
        gc[-1] if gc else None,
        total(heaps) / len(heaps) if heaps else None,
        metaspace[-1] if metaspace else None,
    )


def totals(operator: Operator, rates: OperatorRates | None, *, source: bool) -> Totals | Reason:
    """The operator's rates, or why there are none.

    ZERO_CAPACITY and ZERO_USEFUL_TIME are told for operators other than sources, as a source processes nothing.
    """
    trouble = _incomplete(operator, rates)
    if rates is None or trouble is not None:
        return trouble or Reason.MISSING_RATES
    instances = rates.instances
    if not all(_finite(item) for item in instances):
        return Reason.NON_FINITE
    if not source:
        if any(item.true_processing_per_s is None for item in instances):
            return _undefined(instances)
        if any(item.true_processing_per_s == 0 for item in instances):
            return Reason.ZERO_CAPACITY
    processing = total(item.true_processing_per_s or 0.0 for item in instances)
    output = _sum(item.true_output_per_s for item in instances)
    if source and output is None:
        return _undefined(instances)
    if not math.isfinite(processing) or not math.isfinite(output or 0.0):
        return Reason.NON_FINITE
    backpressured = _sum(item.backpressured_ratio for item in instances)
    return Totals(
        processing,
        output,
        _sum(item.observed_processing_per_s for item in instances),
        _sum(item.observed_output_per_s for item in instances),
        _all(_busy_ratio(item) for item in instances),
        None if backpressured is None else backpressured * 1000,
    )


def source_targets(
    topology: Topology, window: RateWindow, configured_per_s: Mapping[str, float]
) -> tuple[SourceTarget, ...]:
    """What each source should deliver, by the best method there is; a source of which that is not known is
    left out.

    Configured; else what it read plus the growth of its backlog; else its true output, unless it was held back.
    """
    rates = {item.operator_id: item for item in window.operators}
    found = []
    for operator in topology.sources():
        target = _target(operator, rates.get(operator.id), configured_per_s.get(operator.id), window.length_s)
        if target is not None:
            found.append(target)
    return tuple(found)


def output_shares(graph: Graph, found: Sequence[Totals | Reason]) -> dict[tuple[int, int], float]:
    """The share of an operator's output that each of several operators behind it gets; edges left out get
    all of it.

    An operator sends everything to everyone (DS2's equation 8) unless it is seen to split: what those behind it
    take in adds up to what it sends. What flows along an edge is told as Flink's autoscaler does: by the
    receiver's input if it has no other, else by what is left of that when the others' output is taken off.
    """
    shares = {}
    for source, targets in enumerate(graph.outputs):
        sender = found[source]
        if len(targets) < 2 or isinstance(sender, Reason) or not sender.observed_output:
            continue
        edges = [edge_rate(graph, found, source, target) for target in targets]
        known = [rate for rate in edges if rate is not None]
        whole = total(known)
        if len(known) < len(edges) or abs(whole / sender.observed_output - 1) > SPLIT_TOLERANCE:
            continue
        shares.update({(source, target): rate / whole for target, rate in zip(targets, known, strict=True)})
    return shares


def total(values: Iterable[float]) -> float:
    """The sum, rounded once and so the same in any order; infinite if it is too large for a float."""
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):
        return math.inf


def edge_rate(graph: Graph, found: Sequence[Totals | Reason], source: int, target: int) -> float | None:
    """Records per second from one operator to another; None if it cannot be told from their totals."""
    receiver = found[target]
    if isinstance(receiver, Reason) or receiver.observed_processing is None:
        return None
    rest = receiver.observed_processing
    for other in graph.inputs[target]:
        if other == source:
            continue
        sender = found[other]
        if len(graph.outputs[other]) > 1 or isinstance(sender, Reason) or sender.observed_output is None:
            return None
        rest -= sender.observed_output
    return max(rest, 0.0)


def _true(observed: float | None, useful: float | None) -> float | None:
    if observed is None or not useful:
        return None
    return observed / useful


def _finite(rates: InstanceRates) -> bool:
    for value in (
        rates.true_processing_per_s,
        rates.true_output_per_s,
        rates.observed_processing_per_s,
        rates.observed_output_per_s,
    ):
        if value is not None and not 0 <= value < math.inf:
            return False
    return True


def _incomplete(operator: Operator, rates: OperatorRates | None) -> Reason | None:
    if rates is None:
        return Reason.MISSING_RATES
    seen = {item.instance for item in rates.instances}
    if rates.stale_count:
        return Reason.STALE_WINDOW
    if rates.expected != operator.parallelism or len(rates.instances) > operator.parallelism:
        return Reason.TOPOLOGY_MISMATCH
    if not seen:
        return Reason.MISSING_RATES
    return Reason.MISSING_INSTANCE if len(seen) < operator.parallelism else None


def _undefined(instances: Sequence[InstanceRates]) -> Reason:
    """A true rate is missing: because there was no useful time, or because nobody reported it."""
    idle = any(item.useful_ratio == 0 for item in instances)
    return Reason.ZERO_USEFUL_TIME if idle else Reason.MISSING_RATES


def _busy_ratio(rates: InstanceRates) -> float | None:
    """As reported, or observed rate ÷ true rate."""
    if rates.busy_ratio is not None:
        return rates.busy_ratio
    if not rates.true_processing_per_s or rates.observed_processing_per_s is None:
        return None
    return rates.observed_processing_per_s / rates.true_processing_per_s


def _sum(values: Iterable[float | None]) -> float | None:
    known = _all(values)
    return total(known) if known else None


def _all(values: Iterable[float | None]) -> tuple[float, ...]:
    """The values, or none of them if one is missing."""
    known = []
    for value in values:
        if value is None:
            return ()
        known.append(value)
    return tuple(known)


def _target(
    operator: Operator, rates: OperatorRates | None, configured: float | None, length_s: float
) -> SourceTarget | None:
    if configured is not None:
        return SourceTarget(operator.id, configured, TargetMethod.CONFIGURED)
    found = totals(operator, rates, source=True)
    if rates is None or isinstance(found, Reason):
        return None
    if rates.lag_first is not None and rates.lag_last is not None and length_s > 0:
        growth = (rates.lag_last - rates.lag_first) / length_s
        if found.observed_output:
            read = found.observed_processing or found.observed_output
            rate = found.observed_output * max(1 + growth / read, 0.0)
            return SourceTarget(operator.id, rate, TargetMethod.BACKLOG_GROWTH)
        if growth > 0:
            return (
                None  # it stands still before a growing backlog: 0 would be a lie, and nothing else is known
            )
    if found.true_output is None:
        return None
    held_back = (found.backpressured_ms_per_s or 0.0) / 1000 / operator.parallelism
    if held_back > THROTTLED_RATIO:
        return None
    return SourceTarget(operator.id, found.true_output, TargetMethod.UNTHROTTLED_OUTPUT)
