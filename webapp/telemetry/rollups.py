"""Samples by minute and hour, for charts over long ranges and for when the samples themselves are gone.

The store notes every hour of a job that gets samples. Such an hour is computed whole from its samples, again if
late ones come; an hour whose samples were dropped stays as it is.
"""

from __future__ import annotations

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from webapp.ops.partitions import DAY_NS, ensure_days
from webapp.telemetry.metric_store import HOUR_NS
from webapp.telemetry.models import RollupDue

MINUTE_NS = 60_000_000_000

_FROM_SAMPLES = """
    INSERT INTO telemetry_minuterollup (series_id, at_ns, minimum, maximum, total, count, last)
    SELECT series_id, at_ns / %(minute)s * %(minute)s, min(value), max(value), sum(value), count(*),
           (array_agg(value ORDER BY at_ns DESC))[1]
    FROM telemetry_metricsample
    WHERE series_id IN (SELECT id FROM telemetry_series WHERE job_id = %(job)s)
      AND at_ns >= %(hour)s AND at_ns < %(hour)s + %(width)s
    GROUP BY 1, 2
    ON CONFLICT (series_id, at_ns) DO UPDATE SET minimum = excluded.minimum, maximum = excluded.maximum,
        total = excluded.total, count = excluded.count, last = excluded.last
"""
_FROM_MINUTES = """
    INSERT INTO telemetry_hourrollup (series_id, at_ns, minimum, maximum, total, count, last)
    SELECT series_id, %(hour)s, min(minimum), max(maximum), sum(total), sum(count),
           (array_agg(last ORDER BY at_ns DESC))[1]
    FROM telemetry_minuterollup
    WHERE series_id IN (SELECT id FROM telemetry_series WHERE job_id = %(job)s)
      AND at_ns >= %(hour)s AND at_ns < %(hour)s + %(width)s
    GROUP BY 1
    ON CONFLICT (series_id, at_ns) DO UPDATE SET minimum = excluded.minimum, maximum = excluded.maximum,
        total = excluded.total, count = excluded.count, last = excluded.last
"""


def roll_up(most: int = 1_000) -> int:
    """Roll up the hours that are due, at most so many; returns how many were."""
    done = 0
    while done < most and _next():
        done += 1
    return done


@transaction.atomic
def _next() -> bool:
    """One hour of one job. Its row goes first: a delivery that touches it meanwhile waits, and notes it anew."""
    now = timezone.now()
    due = RollupDue.objects.select_for_update(skip_locked=True).filter(not_before__lte=now)
    row = due.order_by("not_before").first()
    if row is None:
        return False
    row.delete()
    kept_from_ns = int(now.timestamp() * 1e9) - settings.WEIR_KEEP_RAW_DAYS * DAY_NS
    if row.hour_ns // DAY_NS * DAY_NS < kept_from_ns - DAY_NS and _rolled_up(row):
        return True  # some of its samples may be gone: what is known is better than what is left
    values = {"job": row.job_id, "hour": row.hour_ns, "minute": MINUTE_NS, "width": HOUR_NS}
    for table, statement in (
        ("telemetry_minuterollup", _FROM_SAMPLES),
        ("telemetry_hourrollup", _FROM_MINUTES),
    ):
        ensure_days(table, [row.hour_ns])
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
    return True


def _rolled_up(row: RollupDue) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT 1 FROM telemetry_hourrollup r JOIN telemetry_series s ON s.id = r.series_id "
            "WHERE s.job_id = %s AND r.at_ns = %s)",
            [row.job_id, row.hour_ns],
        )
        found = cursor.fetchone()
    return bool(found and found[0])
