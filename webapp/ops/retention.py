"""Forgetting: how long each class of data is kept (operations guide, *What is kept for how long*)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef
from django.utils import timezone

from webapp.api.idempotency import KEPT_HOURS
from webapp.api.models import IdempotentAnswer
from webapp.bursts.models import HeadroomPoint, ModelVersion, Simulation, Survey
from webapp.notifications import retention as notifications
from webapp.ops.partitions import drop_older
from webapp.telemetry.models import Refused

CHUNK = 1_000
"""Rows deleted in one statement, so that no lock is held for long."""


def forget() -> dict[str, int]:
    """Drop what is past its time; returns how much of each class."""
    raw, rolled_up, results = (
        settings.WEIR_KEEP_RAW_DAYS, settings.WEIR_KEEP_ROLLUPS_DAYS, settings.WEIR_KEEP_RESULTS_DAYS,
    )  # fmt: skip
    now = timezone.now()
    gone = {
        "sample days": len(drop_older("telemetry_metricsample", raw)),
        "report days": len(drop_older("jobs_report", raw)),
        "rollup days": sum(
            len(drop_older(table, rolled_up)) for table in ("telemetry_minuterollup", "telemetry_hourrollup")
        ),
        "result days": len(drop_older("analysis_window", results)),
        "rate days": len(drop_older("jobs_rates", results)),
        "deliveries": _old_deliveries(raw),
        "refusals": Refused.objects.filter(at__lt=now - timedelta(days=raw)).delete()[0],
        **notifications.forget(now - timedelta(days=raw), now - timedelta(days=results)),
        "headroom points": HeadroomPoint.objects.filter(
            at_ns__lt=int((now - timedelta(days=results)).timestamp() * 1e9)
        ).delete()[0],
        "burst models": _old_models(now - timedelta(days=results)),
        "kept answers": IdempotentAnswer.objects.filter(
            created_at__lt=now - timedelta(hours=KEPT_HOURS)
        ).delete()[0],
    }
    return {what: count for what, count in gone.items() if count}


def _old_models(before: datetime) -> int:
    """Burst models that were replaced long ago and that no kept answer was computed from."""
    mine = {"model": OuterRef("pk")}
    rows = ModelVersion.objects.filter(superseded_at__lt=before)
    unused = rows.exclude(Exists(Survey.objects.filter(**mine))).exclude(
        Exists(Simulation.objects.filter(**mine))
    )
    return unused.delete()[0]


def _old_deliveries(days: int) -> int:
    """Deliveries and their segments by when they were received: an old trace stored today is wanted today."""
    total = 0
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "WITH old AS (SELECT id FROM telemetry_batch WHERE received_at < now() - make_interval(days => %s) "
                "LIMIT %s), gone AS (DELETE FROM telemetry_segment WHERE batch_id IN (SELECT id FROM old)) "
                "SELECT array_agg(id) FROM old",
                [days, CHUNK],
            )
            found = cursor.fetchone()
            ids = found[0] if found else None
            if not ids:
                return total
            cursor.execute("DELETE FROM telemetry_batch WHERE id = ANY(%s)", [ids])
            total += len(ids)
