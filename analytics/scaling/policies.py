"""Every scaling policy by its name: what it says about one window, and what it does about a job over time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from analytics.model.decisions import Action, Decision
from analytics.model.rates import Observation
from analytics.scaling import dhalion, ds2, ds2_manager, flink_autoscaler
from analytics.scaling.flink_autoscaler import memory


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy: ``step`` makes a move and a memory of its settings, what it remembers and an observation."""

    name: str
    version: int
    settings: type[Any]
    state: type[Any]
    step: Callable[[Any, Any, Observation], tuple[Action, Any]]


POLICIES = {
    policy.name: policy
    for policy in (
        Policy(
            ds2.NAME, ds2.VERSION, ds2_manager.ManagerSettings, ds2_manager.ManagerState, ds2_manager.step
        ),
        Policy(
            flink_autoscaler.NAME,
            flink_autoscaler.VERSION,
            flink_autoscaler.AutoscalerOptions,
            memory.AutoscalerState,
            memory.step,
        ),
        Policy(dhalion.NAME, dhalion.VERSION, dhalion.DhalionTiming, dhalion.DhalionState, dhalion.step),
    )
}


def decide_window(policy: str, seen: Observation, scaling_factor: float = 0.0) -> Decision:
    """What a policy says about one window by itself, with its defaults; only DS2 has a scaling factor.

    Raises
    ------
    KeyError
        If no policy has this name.
    """
    if policy == ds2.NAME:
        return ds2.decide(seen, ds2.Ds2Settings(scaling_factor=scaling_factor))
    return _OTHERS[policy](seen)


_OTHERS: dict[str, Callable[[Observation], Decision]] = {
    flink_autoscaler.NAME: flink_autoscaler.decide,
    dhalion.NAME: dhalion.decide,
}
