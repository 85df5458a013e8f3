"""Window summaries written by hand."""

from __future__ import annotations

import numpy as np

from analytics.model.activity import TYPE_COUNT
from analytics.model.results import WindowStatus, WindowSummary
from tests.support.traces_small import DATA, PROCESSING

Shares = dict[int, float]


def summary(
    start_ns: int = 0,
    end_ns: int = 10,
    *,
    activity: Shares | None = None,
    worker: Shares | None = None,
    operator: Shares | None = None,
    channel: dict[tuple[int, int], float] | None = None,
    busy: float = 0.0,
    status: WindowStatus = WindowStatus.OK,
) -> WindowSummary:
    """A window with these participations; whatever has one has ``busy`` as its conventional share."""
    by_type = np.zeros(TYPE_COUNT)
    for kind, value in (activity or {}).items():
        by_type[kind] = value
    workers, operators, channels = worker or {}, operator or {}, channel or {}
    return WindowSummary(
        index=0,
        start_ns=start_ns,
        end_ns=end_ns,
        status=status,
        reason="" if status is WindowStatus.OK else "Something is wrong.",
        log10_paths=1.0,
        cp_total=1.0,
        record_count=1,
        activity_cp=by_type,
        activity_conventional=np.where(by_type > 0, busy, 0.0),
        worker_ids=np.array(list(workers), np.int32),
        worker_cp=np.array(list(workers.values()), np.float64),
        worker_conventional=np.full(len(workers), busy),
        operator_ids=np.array(list(operators), np.int32),
        operator_types=np.full(len(operators), PROCESSING, np.uint8),
        operator_cp=np.array(list(operators.values()), np.float64),
        operator_conventional=np.full(len(operators), busy),
        operator_workers=np.ones(len(operators), np.int32),
        channel_src=np.array([src for src, _ in channels], np.int32),
        channel_dst=np.array([dst for _, dst in channels], np.int32),
        channel_types=np.full(len(channels), DATA, np.uint8),
        channel_cp=np.array(list(channels.values()), np.float64),
        channel_conventional=np.full(len(channels), busy),
    )
