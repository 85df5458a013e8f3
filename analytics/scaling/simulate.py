"""A policy at work on a dataflow, interval by interval: what it does, how long that takes and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analytics.model.decisions import Action, Move
from analytics.model.rates import Observation
from analytics.scaling.dataflow import Dataflow, Parallelism, Queues, advance
from analytics.scaling.ds2_manager import MEETS_TARGET, achieved_share
from analytics.scaling.policies import Policy


@dataclass(frozen=True, slots=True)
class Interval:
    """One interval: what ran, the least share of its target a source delivered, and what was done at its end."""

    end_s: float
    parallelism: tuple[tuple[str, int], ...]
    achieved: float
    action: Action


@dataclass(frozen=True, slots=True)
class Run:
    """A policy's whole run. Time restarting is paid for and is under target."""

    policy: str
    intervals: tuple[Interval, ...]
    final: tuple[tuple[str, int], ...]
    instance_hours: float
    under_target_s: float

    @property
    def steps(self) -> tuple[Interval, ...]:
        """The intervals at whose end the parallelism was changed."""
        return tuple(item for item in self.intervals if item.action.move in (Move.RESCALE, Move.ROLL_BACK))

    @property
    def converged_s(self) -> float:
        """When the last change was made; 0 if none was."""
        return self.steps[-1].end_s if self.steps else 0.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds: an interval, a restart in which nothing is processed, and a step of the model."""

    interval_s: float
    restart_s: float = 0.0
    step_s: float = 1.0


def simulate(
    flows: Iterable[Dataflow], start: Parallelism, policy: Policy, settings: Any, timing: Timing
) -> Run:
    """Let a policy scale a dataflow.

    Parameters
    ----------
    flows
        The dataflow in each interval; the run is as long as there are any. Operators must be the same in all.
    start
        The parallelism of every operator but sources at the beginning.
    settings
        The policy's own.
    """
    parallelism, state, queues = dict(start), policy.state(), Queues()
    now_s = since_s = paid_s = under_s = 0.0
    intervals = []
    for flow in flows:
        window, queues = advance(flow, parallelism, queues, now_s, timing.interval_s, timing.step_s)
        now_s += timing.interval_s
        seen = Observation(flow.topology(parallelism, round(since_s * 1000)), window, flow.targets())
        action, state = policy.step(settings, state, seen)
        achieved = achieved_share(seen)
        running = sum(parallelism.values()) + sum(source.instances for source in flow.sources)
        paid_s += running * timing.interval_s
        under_s += timing.interval_s if achieved is not None and achieved < MEETS_TARGET else 0.0
        reached = 1.0 if achieved is None else achieved
        intervals.append(Interval(now_s, tuple(parallelism.items()), reached, action))
        if action.changes:
            parallelism |= {name: count for name, count in action.changes if name in parallelism}
            queues = _waiting(flow, queues, timing.restart_s)
            paid_s += running * timing.restart_s
            under_s += timing.restart_s
            now_s += timing.restart_s
            since_s = now_s
    return Run(policy.name, tuple(intervals), tuple(parallelism.items()), paid_s / 3600, under_s)


def _waiting(flow: Dataflow, queues: Queues, restart_s: float) -> Queues:
    """Sources with a backlog go on receiving while the job restarts."""
    outside = dict(queues.outside)
    for source in flow.sources:
        if source.has_backlog:
            outside[source.id] = outside.get(source.id, 0.0) + source.rate_per_s * restart_s
    return Queues(queues.inside, tuple(outside.items()))
