"""A parallelism at which key groups or partitions are shared out evenly (``JobVertexScaler``, FLIP-586)."""

from __future__ import annotations

from analytics.scaling.flink_autoscaler.options import Alignment


def align(target: int, current: int, groups: int | None, limit: int, mode: Alignment) -> int:
    """The first parallelism from the target upwards that suits the number of groups.

    Scaling up the search ends at the limit (and the number of groups), scaling down at the current
    parallelism. If none suits, or nothing is known to be aligned with, the target stands.
    """
    if groups is None or mode is Alignment.OFF:
        return target
    last = min(groups, limit) if target >= current else current
    for parallelism in range(target, last + 1):
        if groups % parallelism == 0:
            return parallelism
        if mode is Alignment.BALANCED and groups // parallelism < groups // target:
            return parallelism
    return target
