"""How much a vertex must be able to process, and between which rates it is left alone (``AutoScalerUtils``)."""

from __future__ import annotations

import math

from analytics.scaling.flink_autoscaler.options import AutoscalerOptions

_BAND = 0.3


def capacity(
    target: float, catch_up: float, utilisation: float, options: AutoscalerOptions, *, with_restart: bool
) -> float:
    """Records per second needed to run at a utilisation, work off the lag and, if asked, make up for a restart.

    Rounded to whole records as the original does, half up; infinite at a utilisation of 0, NaN if an input is.
    """
    if math.isnan(target) or math.isnan(catch_up):
        return math.nan
    share = min(max(utilisation, 0.0), 1.0)
    if share == 0 or math.isinf(target):
        return math.inf
    restart = 0.0
    if with_restart and options.catch_up_s > 0:
        restart = target * options.restart_s / options.catch_up_s
    needed = catch_up + restart + target / share
    return float(math.floor(needed + 0.5)) if math.isfinite(needed) else math.inf


def band(
    target: float, catch_up: float, options: AutoscalerOptions, *, in_backlog: bool
) -> tuple[float, float]:
    """Below the first true processing rate a vertex is to be scaled up, above the second down."""
    highest = (
        options.utilization_target + _BAND if options.utilization_max is None else options.utilization_max
    )
    lowest = (
        options.utilization_target - _BAND if options.utilization_min is None else options.utilization_min
    )
    if in_backlog:
        highest, lowest = 1.0, 0.0
    return (
        capacity(target, catch_up, highest, options, with_restart=False),
        capacity(target, catch_up, lowest, options, with_restart=True),
    )
