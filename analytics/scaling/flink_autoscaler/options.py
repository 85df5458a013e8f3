"""The autoscaler's settings, with its defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BusyAggregator(StrEnum):
    """Which instance's busy time stands for the vertex."""

    MAX = "MAX"
    MIN = "MIN"
    AVG = "AVG"


class Alignment(StrEnum):
    """How a parallelism is aligned with the number of key groups or partitions."""

    BALANCED = "BALANCED"
    EVENLY_SPREAD = "EVENLY_SPREAD"
    OFF = "OFF"


@dataclass(frozen=True, slots=True)
class AutoscalerOptions:
    """``job.autoscaler.*`` under shorter names; durations in seconds.

    A band bound that is None is the target ± 0.3. ``excluded_periods`` are times of day or cron expressions, UTC
    (``analytics.scaling.flink_autoscaler.excluded``).
    Memory limits are shares of time in garbage collection and of the heap: above them nothing is scaled.
    """

    utilization_target: float = 0.7
    utilization_max: float | None = None
    utilization_min: float | None = None
    scale_down_interval_s: float = 3600.0
    scale_down_max_factor: float = 0.6
    scale_up_max_factor: float = 100_000.0
    min_parallelism: int = 1
    max_parallelism: int = 200
    excluded_ids: tuple[str, ...] = ()
    catch_up_s: float = 1800.0
    restart_s: float = 300.0
    backlog_lag_s: float = 300.0
    observed_rate_lag_s: float = 30.0
    observed_rate_switch: float = 0.15
    observed_rate_min_observations: int = 2
    observed_scalability: bool = False
    scalability_min_observations: int = 3
    scalability_least: float = 0.5
    ineffective_blocks: bool = False
    effectiveness_threshold: float = 0.1
    gc_pressure_limit: float = 1.0
    heap_usage_limit: float = 1.0
    busy_aggregator: BusyAggregator = BusyAggregator.MAX
    alignment: Alignment = Alignment.BALANCED
    excluded_periods: tuple[str, ...] = ()
    metrics_window_s: float = 900.0
    stabilization_s: float = 300.0
    history_count: int = 3
