"""The autoscaler over time: full windows, delayed scale-downs, what earlier scalings gave, and when not to act.

Source: ``ScalingExecutor``, ``DelayedScaleDown``, ``ScalingHistoryUtils``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from analytics.model.decisions import Action, Move, OperatorDecision, Reason
from analytics.model.rates import Observation
from analytics.model.topology import MemoryUse
from analytics.scaling.flink_autoscaler.delays import DelayedDown, Delays
from analytics.scaling.flink_autoscaler.excluded import is_in
from analytics.scaling.flink_autoscaler.metrics import is_behind, observed_rate, read_rate
from analytics.scaling.flink_autoscaler.options import AutoscalerOptions
from analytics.scaling.flink_autoscaler.policy import decide
from analytics.scaling.flink_autoscaler.vertex import PastScaling
from analytics.scaling.rates import totals

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class AutoscalerState:
    """What is remembered of a job; it is forgotten when the job starts anew, except for the scalings."""

    running_since_ms: int | None = None
    first_ns: int | None = None
    delayed: tuple[DelayedDown, ...] = ()
    past: tuple[PastScaling, ...] = ()
    observed: tuple[tuple[str, float], ...] = ()


def step(
    options: AutoscalerOptions, state: AutoscalerState, seen: Observation
) -> tuple[Action, AutoscalerState]:
    """What to do after one more window, and what to remember."""
    now_ns = seen.window.end_ns
    state = _observed(_started(state, seen), seen, options)
    gate = _gate(options, state, now_ns, seen.window.memory)
    if gate is not None:
        return Action(Move.WAIT, (), gate, None), state
    history = {item.id: _of(state.past, item.id) for item in seen.topology.operators}
    rates = {item.id: _rates(state.observed, item.id) for item in seen.topology.operators}
    delays = Delays(state.delayed, now_ns, options.scale_down_interval_s)
    decision = decide(seen, options, history, rates, delays.hold)
    state = replace(state, delayed=delays.waiting)
    changes = tuple(decision.changes.items())
    if not changes:
        return Action(Move.KEEP, (), decision.note, decision), state
    past = [_past(item, now_ns, options) for item in decision.operators if item.proposed != item.current]
    kept = tuple(
        scaling
        for operator in seen.topology.operators
        for scaling in _of((*state.past, *past), operator.id)[-options.history_count :]
    )
    return Action(Move.RESCALE, changes, decision.note, decision), replace(
        state, past=kept, delayed=(), first_ns=None, observed=()
    )


def _started(state: AutoscalerState, seen: Observation) -> AutoscalerState:
    since_ms = seen.topology.running_since_ms
    if since_ms != state.running_since_ms or state.first_ns is None:
        state = replace(
            state, running_since_ms=since_ms, first_ns=seen.window.start_ns, delayed=(), observed=()
        )
    return state


def _gate(
    options: AutoscalerOptions, state: AutoscalerState, now_ns: int, memory: MemoryUse | None
) -> str | None:
    """Why nothing is decided now."""
    needed_s = options.stabilization_s + options.metrics_window_s
    seen_s = (now_ns - (now_ns if state.first_ns is None else state.first_ns)) / _SECOND_NS
    if seen_s < needed_s:
        return f"{Reason.WARM_UP.words}: {seen_s:.0f} of {needed_s:.0f} s"
    short = None if memory is None else _short_of_memory(options, memory)
    if short is not None:
        return f"the job is short of memory: {short}"
    period = next((text for text in options.excluded_periods if is_in(text, now_ns)), None)
    return None if period is None else f"nothing is scaled in the excluded period {period} (UTC)"


def _short_of_memory(options: AutoscalerOptions, memory: MemoryUse) -> str | None:
    """Which limit of memory is exceeded; what is not known exceeds none."""
    figures = (
        (memory.gc_ratio, options.gc_pressure_limit, "the time in garbage collection"),
        (memory.heap_ratio, options.heap_usage_limit, "the heap in use"),
    )
    for share, limit, of in figures:
        if share is not None and share > limit:
            return f"{share:.0%} of {of}, the limit is {limit:.0%}"
    return None


def _observed(state: AutoscalerState, seen: Observation, options: AutoscalerOptions) -> AutoscalerState:
    """The rates at which lagging sources would read if they were not held back, one more each."""
    rates = {item.operator_id: item for item in seen.window.operators}
    more = []
    for operator in seen.topology.sources():
        known = totals(operator, rates.get(operator.id), source=True)
        lag = rates[operator.id].lag_last if operator.id in rates else None
        if isinstance(known, Reason) or lag is None:
            continue
        rate = observed_rate(known)
        if rate is not None and is_behind(lag, read_rate(known), options.observed_rate_lag_s):
            more.append((operator.id, rate))
    most = 2 * options.observed_rate_min_observations * max(len(more), 1)
    return replace(state, observed=(*state.observed, *more)[-most:])


def _past(item: OperatorDecision, now_ns: int, options: AutoscalerOptions) -> PastScaling:
    rate = item.true_processing_per_s or 0.0
    factor = (item.need or item.proposed) / item.current
    clamped = min(max(factor, 1 - options.scale_down_max_factor), 1 + options.scale_up_max_factor)
    return PastScaling(item.operator_id, now_ns, item.current, item.proposed, rate, rate * clamped)


def _of(past: Sequence[PastScaling], operator_id: str) -> tuple[PastScaling, ...]:
    return tuple(item for item in past if item.operator_id == operator_id)


def _rates(observed: Sequence[tuple[str, float]], operator_id: str) -> tuple[float, ...]:
    return tuple(rate for name, rate in observed if name == operator_id)
