"""The policy of Flink's autoscaler, as a second opinion: what it would do, and why.

A vertex has a *true processing rate* (its input rate ÷ the share of time its busiest instance was busy)
and a *target* (what the sources should read, passed along measured edges). The job acts if a vertex is
outside its utilisation band; then every vertex moves to

    f = capacity(target utilisation) ÷ true processing rate        new = ⌈f × p⌉, limited and aligned

`options` are its settings, `metrics` what it looks at, `capacity` the formulas of the band, `alignment`
the choice of a parallelism that shares out key groups evenly, `vertex` the scaling of one vertex, `policy`
the job's decision over time.

Source: apache/flink-kubernetes-operator, ``flink-autoscaler`` (documented formulas and published tests).
"""

from analytics.scaling.flink_autoscaler.options import Alignment, AutoscalerOptions, BusyAggregator
from analytics.scaling.flink_autoscaler.policy import NAME, VERSION, decide

__all__ = ["NAME", "VERSION", "Alignment", "AutoscalerOptions", "BusyAggregator", "decide"]
