"""DS2's scaling manager: when to act on its decisions.

What the paper promises and the authors' code lacks: intervals are ignored while a changed job warms up; several
decisions are combined, for windows that fire in bursts; small changes are ignored; a change after which
the job delivers less is rolled back and not tried again; and after several changes in a row that gained
little, it stops.

Source: Kalavri et al., OSDI 2018, section 4.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum
from statistics import median

from analytics.model.decisions import Action, Decision, Move, Reason
from analytics.model.rates import Observation, SourceTarget
from analytics.scaling.ds2 import Ds2Settings, decide
from analytics.scaling.rates import total

Changes = tuple[tuple[str, int], ...]
_SAME_TARGET = 0.1

MEETS_TARGET = 0.99
"""A source that delivers less than this share of its target is under it."""


class Combine(StrEnum):
    """How several decisions become one, operator by operator."""

    LATEST = "latest"
    MEDIAN = "median"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    """An interval is one window that is shown to `step`.

    ``ignore_changes_up_to`` instances for every operator are not worth a restart while the job meets its targets.
    A loss or gain is one of the share of the targets that the sources deliver. ``decision_limit`` changes
    in a row with less gain than ``least_gain_ratio`` are the last.
    """

    ds2: Ds2Settings = field(default_factory=Ds2Settings)
    warm_up_intervals: int = 0
    activation_intervals: int = 1
    combine: Combine = Combine.LATEST
    ignore_changes_up_to: int = 0
    rollback_loss_ratio: float | None = 0.1
    decision_limit: int | None = 3
    least_gain_ratio: float = 0.01


@dataclass(frozen=True, slots=True)
class ManagerState:
    """What the manager remembers between intervals; the default is that of a job never seen."""

    warm_up_left: int = 0
    asked: tuple[Changes, ...] = ()
    before: Changes | None = None
    achieved_before: float | None = None
    rejected: tuple[Changes, ...] = ()
    little_gain_count: int = 0
    targets: tuple[SourceTarget, ...] = ()


def step(settings: ManagerSettings, state: ManagerState, seen: Observation) -> tuple[Action, ManagerState]:
    """What to do about the job after one more interval, and what to remember.

    Other targets make earlier failures and small gains void: the question is a new one. So it is all that is
    remembered of a graph of other operators.
    """
    if _of_another_graph(state, seen):
        state = ManagerState()
    if _differ(state.targets, seen.targets):
        state = replace(state, targets=seen.targets, rejected=(), little_gain_count=0)
    if state.warm_up_left:
        left = state.warm_up_left - 1
        why = f"{Reason.WARM_UP.words}, {left} more intervals"
        return Action(Move.WAIT, (), why, None), replace(state, warm_up_left=left)
    decision = decide(seen, settings.ds2)
    achieved = achieved_share(seen)
    if state.before is not None:
        undo, state = _judge(settings, state, seen, achieved)
        if undo is not None:
            return Action(Move.ROLL_BACK, undo[0], undo[1], decision), state
    current = tuple((operator.id, operator.parallelism) for operator in seen.topology.operators)
    asked = tuple((item.operator_id, item.proposed) for item in decision.operators)
    recent = (*state.asked, asked)[-settings.activation_intervals :]
    state = replace(state, asked=recent)
    if len(recent) < settings.activation_intervals:
        return Action(
            Move.WAIT, (), f"decision {len(recent)} of {settings.activation_intervals}", decision
        ), state
    chosen = _combined(recent, settings.combine)
    change = _in_words(seen, current, chosen)
    refusal = _refusal(settings, state, seen, chosen, achieved) if change else _idle(seen, decision)
    if refusal is not None:
        return Action(Move.KEEP, (), refusal, decision), state
    remembered = replace(
        state, warm_up_left=settings.warm_up_intervals, asked=(), before=current, achieved_before=achieved
    )
    return Action(Move.RESCALE, _changes(current, chosen), change, decision), remembered


def achieved_share(seen: Observation) -> float | None:
    """The least share of its target that a source was seen to deliver, at most 1; None if none is known."""
    rates = {item.operator_id: item for item in seen.window.operators}
    shares = []
    for target in seen.targets:
        known = rates.get(target.operator_id)
        sent = [item.observed_output_per_s for item in known.instances] if known else []
        numbers = [rate for rate in sent if rate is not None and math.isfinite(rate)]
        if numbers and len(numbers) == len(sent) and target.rate_per_s > 0:
            shares.append(min(total(numbers) / target.rate_per_s, 1.0))
    return min(shares, default=None)


def _judge(
    settings: ManagerSettings, state: ManagerState, seen: Observation, achieved: float | None
) -> tuple[tuple[Changes, str] | None, ManagerState]:
    """Whether the last change did harm, which undoes it; what it gained is remembered."""
    before, was = state.before or (), state.achieved_before
    current = tuple((operator.id, operator.parallelism) for operator in seen.topology.operators)
    state = replace(state, before=None, achieved_before=None)
    if achieved is None or was is None or before == current:
        return None, state
    limit = settings.rollback_loss_ratio
    if limit is not None and achieved < was * (1 - limit):
        state = replace(
            state,
            rejected=(*state.rejected, current),
            warm_up_left=settings.warm_up_intervals,
            asked=(),
        )
        why = f"the sources deliver {achieved:.1%} of their targets, {was:.1%} before the last change"
        return (_changes(current, before), why), state
    grew = sum(count for _, count in current) > sum(count for _, count in before)
    gained = not grew or achieved - was >= settings.least_gain_ratio
    return None, replace(state, little_gain_count=0 if gained else state.little_gain_count + 1)


def _combined(asked: tuple[Changes, ...], how: Combine) -> Changes:
    if how is Combine.LATEST or len(asked) == 1:
        return asked[-1]
    columns = list(zip(*asked, strict=True))
    choose = max if how is Combine.MAX else lambda values: math.ceil(median(values))
    return tuple((column[-1][0], choose([value for _, value in column])) for column in columns)


def _idle(seen: Observation, decision: Decision) -> str:
    """Why no operator is to be changed."""
    names = {operator.id: operator.name for operator in seen.topology.operators}
    unknown = [f"{names[item.operator_id]} ({item.reason})" for item in decision.undecided]
    return f"cannot be decided: {', '.join(unknown)}" if unknown else "every operator has what it needs"


def _refusal(
    settings: ManagerSettings, state: ManagerState, seen: Observation, chosen: Changes, achieved: float | None
) -> str | None:
    """Why a change is not made, or None if it is."""
    current = tuple((operator.id, operator.parallelism) for operator in seen.topology.operators)
    change = _in_words(seen, current, chosen)
    largest = max(abs(after - now) for (_, now), (_, after) in zip(current, chosen, strict=True))
    if chosen in state.rejected:
        return f"{change} was tried and rolled back"
    if largest <= settings.ignore_changes_up_to and (achieved is None or achieved >= MEETS_TARGET):
        return f"{change} is too small a change"
    if settings.decision_limit is not None and state.little_gain_count >= settings.decision_limit:
        return f"the last {state.little_gain_count} changes gained little"
    return None


def _of_another_graph(state: ManagerState, seen: Observation) -> bool:
    ids = [operator.id for operator in seen.topology.operators]
    known = (*state.asked, *state.rejected, *(() if state.before is None else (state.before,)))
    return any([operator_id for operator_id, _ in one] != ids for one in known)


def _differ(was: tuple[SourceTarget, ...], are: tuple[SourceTarget, ...]) -> bool:
    """Whether the targets are others than before; measured ones are never quite the same."""
    if [item.operator_id for item in was] != [item.operator_id for item in are]:
        return True
    return any(
        not math.isclose(old.rate_per_s, new.rate_per_s, rel_tol=_SAME_TARGET)
        for old, new in zip(was, are, strict=True)
    )


def _changes(current: Changes, chosen: Changes) -> Changes:
    return tuple(after for now, after in zip(current, chosen, strict=True) if now != after)


def _in_words(seen: Observation, current: Changes, chosen: Changes) -> str:
    names = {operator.id: operator.name for operator in seen.topology.operators}
    pairs = zip(current, chosen, strict=True)
    return ", ".join(f"{names[one]} {now} → {after}" for (one, now), (_, after) in pairs if now != after)
