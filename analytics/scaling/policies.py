"""Every scaling policy by its name."""

from __future__ import annotations

from collections.abc import Callable

from analytics.model.decisions import Decision
from analytics.model.rates import Observation
from analytics.scaling import ds2


def _ds2(seen: Observation, factor: float) -> Decision:
    return ds2.decide(seen, ds2.Ds2Settings(scaling_factor=factor))


ONE_WINDOW: dict[str, Callable[[Observation, float], Decision]] = {ds2.NAME: _ds2}
"""What a policy says about one window by itself, with its defaults; the number is DS2's scaling factor."""
