"""Reading the tables of Flink autoscalers that people connected."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.db import transaction

from webapp.telemetry import autoscaler, backoff, sources
from webapp.telemetry.models import SourceKind
from workers.collectors.autoscaler import AutoscalerError, read_tables

logger = logging.getLogger(__name__)

EVERY = timedelta(seconds=20)
"""The autoscaler itself decides once a minute."""


@shared_task
def poll_autoscalers() -> None:
    """Read all tables that are due; each in a task of its own, so that a slow one holds up nobody."""
    for pk in sources.due(SourceKind.AUTOSCALER, not_since=EVERY):
        poll_autoscaler.apply_async([pk], expires=10)


@shared_task
def poll_autoscaler(source_id: int) -> None:
    """Store what the tables say now, or keep why they could not be read."""
    with transaction.atomic():
        source = sources.claim(source_id)
        if source is None or not backoff.may_poll(source):
            return
        try:
            found = read_tables(source.location)
        except AutoscalerError as error:
            backoff.failed(source, str(error))
            return
        for job_key in sorted(found):
            autoscaler.save_job(source, job_key, found[job_key].states, found[job_key].events)
        backoff.answered(source)
