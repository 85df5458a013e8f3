"""Dhalion: scale the one operator that causes back-pressure, as the baseline the other policies are
compared with.

    bp = Σ back-pressure in ms/s over the instances, at most 999
    extra = min(4, bp ÷ (1000 − bp))        new = ⌈n × (1 + extra)⌉

The operator that causes back-pressure is the one held up by nobody behind it: the last saturated one.
Where engines do not report who causes it, back-pressure is taken from the source that delivers least of
its target, and the cause is the busiest operator: a window of rates says no more.

Source: apache/incubator-heron, ``healthmgr`` (detectors, diagnosers, ``ScaleUpResolver``). Scaling down
and the blacklist are in the paper's text only. Skewed data and slow instances (`analytics.scaling.skew`) are told
apart where engines report what waits in front of each instance; the original only logs them, and so nothing is
scaled then.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from analytics.model.decisions import Action, Decision, Move, OperatorDecision, Reason, Status
from analytics.model.rates import Observation
from analytics.scaling.graph import Graph, graph_of
from analytics.scaling.rates import Totals, total, totals
from analytics.scaling.skew import Diagnosis, diagnose

NAME = "dhalion"
VERSION = 2
_MOST_BP_MS = 999.0
_MOST_EXTRA = 4.0
_SATURATED_RATIO = 0.95
_HELPED = 1.05


@dataclass(frozen=True, slots=True)
class DhalionSettings:
    """``least_backpressure_ms`` a second count as back-pressure.

    With ``scale_down_ratio`` an operator that would be less busy than this with one instance fewer gives
    it up while nothing is held back; None, as in the open code, never scales down.
    """

    least_backpressure_ms: float = 20.0
    scale_down_ratio: float | None = None
    max_parallelism: int = 32_768


def scaled_up(instances: int, backpressure_ms: Sequence[float]) -> int:
    """How many instances an under-provisioned operator gets (Heron's ``ScaleUpResolver``)."""
    held = min(total(backpressure_ms), _MOST_BP_MS)
    return math.ceil(instances * (1 + min(_MOST_EXTRA, held / (1000 - held))))


def decide(
    seen: Observation,
    settings: DhalionSettings | None = None,
    blacklist: Collection[tuple[str, str]] = (),
) -> Decision:
    """The one operator that gets another parallelism; all others keep theirs.

    Parameters
    ----------
    blacklist
        Pairs of operator and diagnosis (`UNDER`, `OVER`) whose action did not help before.
    """
    settings = settings or DhalionSettings()
    graph = graph_of(seen.topology)
    rates = {item.operator_id: item for item in seen.window.operators}
    operators = seen.topology.operators
    trouble = graph.trouble
    if any(name not in graph.positions for name in rates):
        trouble = trouble or Reason.TOPOLOGY_MISMATCH
    found = [
        trouble or totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(operators)
    ]
    kept = tuple(_kept(seen, graph, found, position) for position in range(len(operators)))
    if any(item.status is Status.CANNOT_DECIDE for item in kept):
        return Decision(NAME, VERSION, kept, "no diagnosis without the rates of every operator")
    held_ms = _held_back_ms(seen, graph, found)
    cause = _cause(seen, graph, found)
    if cause is None:
        return Decision(NAME, VERSION, kept, "nothing to scale")
    if held_ms > settings.least_backpressure_ms:
        return _up(seen, kept, cause, held_ms, settings, blacklist)
    return _down(graph, kept, found, held_ms, settings, blacklist)


UNDER = "under-provisioned"
OVER = "over-provisioned"


def _kept(
    seen: Observation, graph: Graph, found: Sequence[Totals | Reason], position: int
) -> OperatorDecision:
    operator, known = seen.topology.operators[position], found[position]
    source = graph.is_source(position)
    target = next((item.rate_per_s for item in seen.targets if item.operator_id == operator.id), None)
    reason = known if isinstance(known, Reason) else None
    if source and reason is None and target is None and _reported_ms(seen, found) is None:
        reason = Reason.NO_SOURCE_TARGET
    return OperatorDecision(
        operator_id=operator.id,
        current=operator.parallelism,
        need=None,
        parallelism=operator.parallelism if reason is None or source else None,
        status=Status.OK if reason is None else Status.CANNOT_DECIDE,
        reason=reason,
        target_rate_per_s=target if source else None,
        true_processing_per_s=None if isinstance(known, Reason) else known.true_processing,
        true_output_per_s=None if isinstance(known, Reason) else known.true_output,
    )


def _reported_ms(seen: Observation, found: Sequence[Totals | Reason]) -> float | None:
    """The most any operator was held back by those behind it, as its engine reports it, ms/s per instance."""
    known = [
        item.backpressured_ms_per_s / operator.parallelism
        for item, operator in zip(found, seen.topology.operators, strict=True)
        if isinstance(item, Totals) and item.backpressured_ms_per_s is not None
    ]
    return max(known, default=None)


def _held_back_ms(seen: Observation, graph: Graph, found: Sequence[Totals | Reason]) -> float:
    reported = _reported_ms(seen, found)
    if reported is not None:
        return reported
    shares = [0.0]
    for target in seen.targets:
        known = found[graph.positions[target.operator_id]]
        if isinstance(known, Totals) and known.observed_output is not None and target.rate_per_s > 0:
            shares.append(1 - known.observed_output / target.rate_per_s)
    return 1000 * max(shares)


def _cause(seen: Observation, graph: Graph, found: Sequence[Totals | Reason]) -> int | None:
    """The last saturated operator, else the busiest; None if no operator but sources has a known load."""
    load = {
        position: share for position in graph.order if (share := _load(graph, found, position)) is not None
    }
    saturated = [position for position, share in load.items() if share >= _SATURATED_RATIO]
    if saturated:
        return saturated[-1]
    return max(load, key=lambda position: load[position], default=None)


def _load(graph: Graph, found: Sequence[Totals | Reason], position: int) -> float | None:
    known = found[position]
    if graph.is_source(position) or isinstance(known, Reason) or not known.busy_ratios:
        return None
    return total(known.busy_ratios) / len(known.busy_ratios)


def _up(
    seen: Observation,
    kept: tuple[OperatorDecision, ...],
    cause: int,
    held_ms: float,
    settings: DhalionSettings,
    blacklist: Collection[tuple[str, str]],
) -> Decision:
    name = seen.topology.operators[cause].name
    known = next(item for item in seen.window.operators if item.operator_id == kept[cause].operator_id)
    diagnosis, where = diagnose(known)
    if diagnosis is not Diagnosis.UNDER_PROVISIONED:
        return Decision(NAME, VERSION, kept, f"{name} holds up the job, {_told_apart(diagnosis, where)}")
    if (kept[cause].operator_id, UNDER) in blacklist:
        return Decision(
            NAME, VERSION, kept, f"{name} holds up the job, but scaling it up did not help before"
        )
    item = kept[cause]
    wanted = scaled_up(item.current, [held_ms])
    held = min(held_ms, _MOST_BP_MS)
    need = item.current * (1 + min(_MOST_EXTRA, held / (1000 - held)))
    note = f"it causes {held:.0f} ms/s of back-pressure: {item.current} × (1 + {need / item.current - 1:.4g})"
    changed = replace(item, need=need, parallelism=min(wanted, settings.max_parallelism), note=note)
    decisions = (*kept[:cause], changed, *kept[cause + 1 :])
    return Decision(NAME, VERSION, decisions, f"{name} is {UNDER}")


def _told_apart(diagnosis: Diagnosis, instances: tuple[int, ...]) -> str:
    where = ", ".join(map(str, instances))
    if diagnosis is Diagnosis.DATA_SKEW:
        return f"by data skew, which more instances do not cure: too much goes to {where}"
    if diagnosis is Diagnosis.SLOW_INSTANCE:
        return f"by slow instances, which more do not cure: {where}"
    return "but its instances differ, and no diagnosis fits"


def _down(
    graph: Graph,
    kept: tuple[OperatorDecision, ...],
    found: Sequence[Totals | Reason],
    held_ms: float,
    settings: DhalionSettings,
    blacklist: Collection[tuple[str, str]],
) -> Decision:
    if settings.scale_down_ratio is not None and held_ms == 0:
        for position, item in enumerate(kept):
            load = _load(graph, found, position)
            if load is None or item.current == 1 or (item.operator_id, OVER) in blacklist:
                continue
            if load * item.current / (item.current - 1) < settings.scale_down_ratio:
                less = replace(item, parallelism=item.current - 1, note=f"busy for {load:.0%} of the time")
                return Decision(NAME, VERSION, (*kept[:position], less, *kept[position + 1 :]), OVER)
    return Decision(NAME, VERSION, kept, "no back-pressure")


@dataclass(frozen=True, slots=True)
class DhalionTiming:
    """How many intervals to wait after an action."""

    settings: DhalionSettings = field(default_factory=DhalionSettings)
    wait_intervals: int = 3


@dataclass(frozen=True, slots=True)
class DhalionState:
    """What Dhalion remembers: how long to wait, the last action and the actions that did not help."""

    wait_left: int = 0
    last: tuple[str, str, int] | None = None
    processed_before: float = 0.0
    blacklist: tuple[tuple[str, str], ...] = ()


def step(timing: DhalionTiming, state: DhalionState, seen: Observation) -> tuple[Action, DhalionState]:
    """What to do after one more interval, and what to remember.

    Scaling up an operator that causes back-pressure all the same and processes no more, or scaling down one so
    that there is some, is put on the blacklist; the latter is also reverted.
    """
    if state.wait_left:
        left = state.wait_left - 1
        return Action(Move.WAIT, (), Reason.WARM_UP.words, None), replace(state, wait_left=left)
    held_ms = held_back_ms(seen)
    decision = decide(seen, timing.settings, state.blacklist)
    if state.last is not None:
        operator_id, diagnosis, before = state.last
        state = replace(state, last=None)
        if diagnosis == OVER and held_ms > timing.settings.least_backpressure_ms:
            listed = (*state.blacklist, (operator_id, OVER))
            state = replace(state, blacklist=listed, wait_left=timing.wait_intervals)
            return Action(
                Move.ROLL_BACK, ((operator_id, before),), "back-pressure after scaling down", None
            ), state
        again = operator_id in decision.changes and diagnosis == UNDER
        if again and _processed(seen, operator_id) < _HELPED * state.processed_before:
            state = replace(state, blacklist=(*state.blacklist, (operator_id, UNDER)))
            decision = decide(seen, timing.settings, state.blacklist)
    if not decision.changes:
        return Action(Move.KEEP, (), decision.note, decision), state
    (operator_id, wanted), *_ = decision.changes.items()
    current = next(item.current for item in decision.operators if item.operator_id == operator_id)
    last = (operator_id, UNDER if wanted > current else OVER, current)
    remembered = replace(
        state, wait_left=timing.wait_intervals, last=last, processed_before=_processed(seen, operator_id)
    )
    return Action(Move.RESCALE, ((operator_id, wanted),), decision.note, decision), remembered


def held_back_ms(seen: Observation) -> float:
    """How much the job is held back, in ms/s: as reported, or by how much its sources miss their targets."""
    graph = graph_of(seen.topology)
    rates = {item.operator_id: item for item in seen.window.operators}
    found = [
        totals(operator, rates.get(operator.id), source=graph.is_source(position))
        for position, operator in enumerate(seen.topology.operators)
    ]
    return _held_back_ms(seen, graph, found)


def _processed(seen: Observation, operator_id: str) -> float:
    """Records per second the operator was seen to process, as far as its instances tell."""
    rates = next(item for item in seen.window.operators if item.operator_id == operator_id)
    return total(item.observed_processing_per_s or 0.0 for item in rates.instances)
