"""Keeping what limits each job now, so that the list of all jobs does not work it out for every look."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection, transaction
from django.utils import timezone

from analytics.model.activity import ActivityType
from webapp.analysis import selectors, shares
from webapp.analysis.models import Standing
from webapp.analysis.shares import Steps
from webapp.jobs.models import Job

MINUTE_NS = 60_000_000_000
SPAN_NS, HOUR_NS = 15 * MINUTE_NS, 60 * MINUTE_NS
METRIC_SPAN_NS = 5 * MINUTE_NS
BATCH = 200


def outdate(job_ids: Sequence[int]) -> None:
    """Have these jobs' standings worked out again; called in the transaction that changes their results."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO analysis_standing (job_id, outdated_at, operator, sparkline) "
            "SELECT id, %s, '', '{}' FROM unnest(%s::bigint[]) AS id "
            "ON CONFLICT (job_id) DO UPDATE "
            "SET outdated_at = coalesce(analysis_standing.outdated_at, excluded.outdated_at)",
            [timezone.now(), sorted(set(job_ids))],
        )


def refresh() -> int:
    """Work out up to ``BATCH`` outdated standings, those that wait longest first; returns how many.

    Several workers may do so at the same time: each takes other rows.
    """
    with transaction.atomic():
        waiting = (
            Standing.objects.select_for_update(skip_locked=True, of=("self",))
            .filter(outdated_at__isnull=False)
            .select_related("job")
            .order_by("outdated_at")[:BATCH]
        )
        rows = list(waiting)
        for row in rows:
            _work_out(row, row.job)
            row.save()
    return len(rows)


def _work_out(row: Standing, job: Job) -> None:
    row.computed_at, row.outdated_at = timezone.now(), None
    now_ns = int(row.computed_at.timestamp() * 1e9)
    cover = shares.coverage(job, Steps.over(now_ns - SPAN_NS, now_ns, job.window_ns))
    activities = shares.activity_shares(job, cover)
    operators = shares.operator_shares(job, cover)
    names = dict(job.operators.values_list("number", "name"))
    found = selectors.limiter_of(activities, operators, names)
    row.input_rows_per_s = selectors.latest_metric(job, "input_rows_per_s", now_ns - METRIC_SPAN_NS)
    row.activity, row.operator, row.cp, row.conventional, row.unknown_cp = None, "", None, None, None
    row.sparkline = []
    if found is None:
        return
    row.activity, row.operator = int(found.activity), found.operator
    row.cp, row.conventional = found.cp, found.conventional
    unknown = (int(ActivityType.UNKNOWN),)
    row.unknown_cp = next((share.cp for share in activities if share.key == unknown), 0.0)
    hour = shares.coverage(job, Steps(now_ns - HOUR_NS, MINUTE_NS, 60))
    line = next((s for s in shares.activity_shares(job, hour) if s.key == (row.activity,)), None)
    row.sparkline = [] if line is None else [None if v != v else float(v) for v in line.cp_steps]
