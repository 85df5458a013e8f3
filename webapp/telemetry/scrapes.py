"""What scraping an endpoint found, as metric samples of the endpoint's job."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from analytics.model.samples import MetricBatch
from webapp.ops.partitions import TooManyDaysError
from webapp.telemetry.backoff import answered
from webapp.telemetry.intake import in_time
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.services import digest_of, store_metrics
from webapp.telemetry.sources import read_now


class RefusedScrapeError(Exception):
    """Nothing of a scrape could be stored; the message is one line for people."""


def due() -> list[int]:
    """Ids of endpoints whose interval since the last scrape is over, longest waiting first."""
    now = timezone.now()
    rows = read_now().filter(kind=SourceKind.OPENMETRICS).values_list("id", "polled_at", "interval_s")
    waiting = [(at, pk) for pk, at, every_s in rows if at and at + timedelta(seconds=every_s or 0) <= now]
    return [pk for pk, at, _ in rows if at is None] + [pk for _, pk in sorted(waiting)]


def save_scrape(source: Source, batch: MetricBatch, at_ns: int) -> None:
    """Store the samples of one scrape. Those of series above the job's limit are left out, and said.

    Raises
    ------
    RefusedScrapeError
        If none could be stored.
    """
    if source.job is None:
        raise RefusedScrapeError("the job that these metrics belonged to is gone: remove this connection")
    try:
        stored = store_metrics(
            source.job, in_time(batch), digest_of("openmetrics", source.location, str(at_ns))
        )
    except TooManyDaysError as error:
        raise RefusedScrapeError(str(error)) from error
    if not stored.metric_count:
        raise RefusedScrapeError(
            "; ".join(f"{item.code} ({item.count:,}): {item.example}" for item in stored.diagnostics)
            or "no sample could be used"
        )
    answered(source)
