"""Questions about critical participation over a time range, answered in the database.

A range is cut into at most ``MAX_POINTS`` equal steps. The value of a step is the mean over its windows with
a result, each weighted by its effective length; a group that is absent from a window counts as zero there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from analytics.model.activity import TYPE_COUNT, ActivityType
from webapp.jobs.models import Job

MAX_POINTS = 300
Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Steps:
    """How a range is cut: step ``i`` is ``[start_ns + i*width_ns, start_ns + (i+1)*width_ns)``."""

    start_ns: int
    width_ns: int
    count: int

    @staticmethod
    def over(from_ns: int, to_ns: int, window_ns: int) -> Steps:
        """At most ``MAX_POINTS`` steps of whole windows that cover the range."""
        first = from_ns // window_ns
        windows = max(1, -(-to_ns // window_ns) - first)
        per_step = -(-windows // MAX_POINTS)
        return Steps(first * window_ns, per_step * window_ns, -(-windows // per_step))

    @property
    def end_ns(self) -> int:
        """End of the last step."""
        return self.start_ns + self.count * self.width_ns


@dataclass(frozen=True, eq=False)
class Share:
    """CP and conventional profile of one group: over the whole range, and per step (NaN: no result there)."""

    key: tuple[int, ...]
    cp: float
    conventional: float
    cp_steps: Matrix
    conventional_steps: Matrix


@dataclass(frozen=True, eq=False)
class Coverage:
    """What the shares rest on: windows with a result, and windows without one by status."""

    steps: Steps
    weight_ns: Matrix
    window_count: int
    without_result: dict[str, int]
    reason: str
    record_count: int
    last_window_ns: int | None


def coverage(job: Job, steps: Steps) -> Coverage:
    """How many windows of the range have a result, and how much time of each step they cover."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (start_ns - %s) / %s, status, count(*), sum(effective_end_ns - effective_start_ns), "
            "max(reason), sum(record_count), max(start_ns) FROM analysis_window "
            "WHERE job_id = %s AND start_ns >= %s AND start_ns < %s GROUP BY 1, 2",
            [steps.start_ns, steps.width_ns, job.pk, steps.start_ns, steps.end_ns],
        )
        rows = cursor.fetchall()
    weight = np.zeros(steps.count)
    without: dict[str, int] = {}
    reason, good = "", 0
    for step, status, count, length_ns, why, _, _ in rows:
        if status == "ok":
            weight[step] += float(length_ns)
            good += count
        else:
            without[status] = without.get(status, 0) + count
            reason = reason or why
    records = sum(int(row[5]) for row in rows)
    last = max((int(row[6]) for row in rows), default=None)
    return Coverage(steps, weight, good, without, reason, records, last)


def activity_shares(job: Job, cover: Coverage) -> list[Share]:
    """One share an activity type that occurs, in the order of the codes."""
    rows = _grouped(
        job,
        cover,
        ("part.ord - 1",),
        "unnest(activity_cp, activity_conventional) WITH ORDINALITY AS part(cp, conventional, ord)",
        f"part.ord BETWEEN 2 AND {TYPE_COUNT}",
    )
    return sorted((s for s in rows if s.cp or s.conventional), key=lambda share: share.key)


def worker_shares(job: Job, cover: Coverage) -> list[Share]:
    """One share a worker's timeline (key: worker number), highest CP first."""
    return _ranked(job, cover, ("worker",), ("worker_ids", "worker_cp", "worker_conventional"))


def operator_shares(job: Job, cover: Coverage) -> list[Share]:
    """One share an operator and activity type (key: operator number, activity code), highest CP first."""
    columns = ("operator_ids", "operator_types", "operator_cp", "operator_conventional")
    return _ranked(job, cover, ("operator", "kind"), columns)


def operator_processing(job: Job, cover: Coverage) -> list[Share]:
    """SnailTrail's operator summary: processing CP per worker that ran the operator, highest first."""
    part = (
        "unnest(operator_ids, operator_types, operator_cp, operator_conventional, operator_workers) "
        "AS raw(operator, kind, raw_cp, raw_conventional, workers) "
        "CROSS JOIN LATERAL (SELECT raw_cp / greatest(workers, 1) AS cp, "
        "raw_conventional / greatest(workers, 1) AS conventional) AS part"
    )
    return _by_cp(_grouped(job, cover, ("operator",), part, f"raw.kind = {int(ActivityType.PROCESSING)}"))


def channel_shares(job: Job, cover: Coverage) -> list[Share]:
    """One share a channel (key: sender, receiver, message code), highest CP first."""
    columns = ("channel_src", "channel_dst", "channel_types", "channel_cp", "channel_conventional")
    return _ranked(job, cover, ("src", "dst", "kind"), columns)


def _ranked(job: Job, cover: Coverage, keys: tuple[str, ...], columns: tuple[str, ...]) -> list[Share]:
    part = f"unnest({', '.join(columns)}) AS part({', '.join(keys)}, cp, conventional)"
    return _by_cp(_grouped(job, cover, keys, part, "TRUE"))


def _by_cp(shares: list[Share]) -> list[Share]:
    return sorted(shares, key=lambda share: (-share.cp, share.key))


def _grouped(job: Job, cover: Coverage, keys: tuple[str, ...], part: str, condition: str) -> list[Share]:
    """Weighted sums by step and key. Names in the SQL come from this module, never from a caller."""
    steps = cover.steps
    names = ", ".join(keys)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT (start_ns - %s) / %s, {names}, "  # noqa: S608
            "sum(part.cp * (effective_end_ns - effective_start_ns)), "
            "sum(part.conventional * (effective_end_ns - effective_start_ns)) "
            f"FROM analysis_window CROSS JOIN LATERAL {part} "
            "WHERE job_id = %s AND start_ns >= %s AND start_ns < %s AND status = 'ok' "
            f"AND {condition} GROUP BY 1, {names}",
            [steps.start_ns, steps.width_ns, job.pk, steps.start_ns, steps.end_ns],
        )
        rows = cursor.fetchall()
    sums: dict[tuple[int, ...], tuple[Matrix, Matrix]] = {}
    for step, *key, cp, conventional in rows:
        pair = sums.setdefault(tuple(key), (np.zeros(steps.count), np.zeros(steps.count)))
        pair[0][step], pair[1][step] = float(cp), float(conventional)
    return [_share(key, *pair, cover.weight_ns) for key, pair in sums.items()]


def _share(key: tuple[int, ...], cp: Matrix, conventional: Matrix, weight_ns: Matrix) -> Share:
    whole = float(weight_ns.sum())
    weights = np.where(weight_ns > 0, weight_ns, np.nan)
    return Share(
        key, float(cp.sum()) / whole, float(conventional.sum()) / whole, cp / weights, conventional / weights
    )
