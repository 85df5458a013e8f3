"""The parallelism of one vertex (``JobVertexScaler``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analytics.scaling.flink_autoscaler.alignment import align
from analytics.scaling.flink_autoscaler.capacity import capacity
from analytics.scaling.flink_autoscaler.metrics import VertexMetrics
from analytics.scaling.flink_autoscaler.options import AutoscalerOptions
from analytics.scaling.rates import total

MOST_KEY_GROUPS = 32_768


@dataclass(frozen=True, slots=True)
class PastScaling:
    """A vertex was scaled: its parallelism before and after, its true rate then, and the one expected of it."""

    operator_id: str
    at_ns: int
    before: int
    after: int
    true_rate: float
    expected_rate: float


@dataclass(frozen=True, slots=True)
class VertexScaling:
    """What one vertex should get. ``need`` is f × p before any limit; NaN in the inputs leaves it as it is."""

    need: float | None
    parallelism: int
    expected_rate: float
    note: str


def scale_vertex(
    current: int,
    groups: int | None,
    aligned: bool,
    metrics: VertexMetrics,
    options: AutoscalerOptions,
    past: Sequence[PastScaling] = (),
) -> VertexScaling:
    """The parallelism that gives the capacity at the target utilisation, within what one step may change.

    Parameters
    ----------
    current
        The parallelism now.
    groups
        The most instances the engine allows: key groups, or a source's partitions; None if unknown.
    aligned
        Whether the groups are shared out among the instances, so that an uneven number would leave some idle.
    past
        Earlier scalings of this vertex, oldest first: from three on they may tell how it scales.
    """
    wanted = capacity(
        metrics.target, metrics.catch_up, options.utilization_target, options, with_restart=True
    )
    if math.isnan(metrics.true_rate) or math.isnan(wanted) or metrics.true_rate <= 0:
        return VertexScaling(None, current, metrics.true_rate, "its capacity is not known")
    if options.observed_scalability:
        wanted /= scalability(past, options)
    factor = wanted / metrics.true_rate
    clamped = min(max(factor, 1 - options.scale_down_max_factor), 1 + options.scale_up_max_factor)
    least = min(current, options.min_parallelism)
    most = min(groups or MOST_KEY_GROUPS, max(current, options.max_parallelism))
    raw = min(max(math.ceil(clamped * current), least), most)
    parallelism = align(raw, current, groups if aligned else None, most, options.alignment)
    notes = [
        f"capacity {wanted:,.6g}/s at {options.utilization_target:.0%} utilisation"
        f" ÷ true rate {metrics.true_rate:,.6g}/s × {current} = {factor * current:.6g}"
    ]
    if clamped != factor:
        notes.append(f"factor {factor:.3g} limited to {clamped:.3g}")
    if parallelism != raw:
        notes.append(f"{raw} aligned to {parallelism} of {groups} key groups")
    need = factor * current
    return VertexScaling(
        need if math.isfinite(need) else None, parallelism, metrics.true_rate * clamped, "; ".join(notes)
    )


def scalability(past: Sequence[PastScaling], options: AutoscalerOptions) -> float:
    """How well true rates followed parallelism so far: 1 is linear; rounded up to hundredths, at least the least.

    The fit of R = α β P through all scalings, β being the rate per instance at the smallest parallelism seen.
    """
    if len(past) < options.scalability_min_observations:
        return 1.0
    smallest = min(past, key=lambda item: item.before)
    per_instance = smallest.true_rate / smallest.before
    squares = total(item.before**2 for item in past)
    if not (per_instance > 0 and math.isfinite(per_instance)):
        return 1.0
    fit = total(item.before * item.true_rate for item in past) / (per_instance * squares)
    return math.ceil(min(max(fit, options.scalability_least), 1.0) * 100) / 100


def was_ineffective(
    current: int, true_rate: float, past: Sequence[PastScaling], options: AutoscalerOptions
) -> bool:
    """Whether the last scaling of the vertex was up and gave too little of what was expected of it."""
    if not past or past[-1].after <= past[-1].before or past[-1].after != current:
        return False
    last = past[-1]
    expected = last.expected_rate - last.true_rate
    return expected > 0 and (true_rate - last.true_rate) / expected < options.effectiveness_threshold
