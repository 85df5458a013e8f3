"""Reading sources that Weir follows by itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from celery import shared_task
from django.db import transaction

from analytics.decode.event_log_files import UnreadableLogError
from analytics.decode.event_log_follower import LogReplacedError
from webapp.telemetry import sources
from webapp.telemetry.models import SourceKind
from workers.collectors.event_log import EventLogCollector, find_logs

logger = logging.getLogger(__name__)

LOG_EVERY = timedelta(milliseconds=500)
DIRECTORY_EVERY = timedelta(seconds=3)
POLLS_A_TASK = 20
"""A long log is read in steps of some megabytes; after so many, others get their turn."""

MAX_NAME = 150
"""Of a job, so that an id can follow it."""

_collectors: dict[str, EventLogCollector] = {}
"""Open logs of this process, kept only to save work: the position is in the database."""


@shared_task
def poll_sources() -> None:
    """Poll every source that is due; each in a task of its own, so that a slow one holds up nobody."""
    for pk in sources.due(SourceKind.SPARK_EVENT_LOG_DIRECTORY, not_since=DIRECTORY_EVERY):
        poll_directory(pk)
    for pk in sources.due(SourceKind.SPARK_EVENT_LOG, not_since=LOG_EVERY):
        poll_event_log.apply_async([pk], expires=2)


def poll_directory(source_id: int) -> None:
    """Register the logs that appeared in a directory."""
    with transaction.atomic():
        source = sources.claim(source_id)
        if source is None:
            return
        try:
            found = [str(path) for path in find_logs(Path(source.location))]
        except UnreadableLogError as error:
            sources.poll_failed(source_id, str(error))
            return
        sources.discovered(source, SourceKind.SPARK_EVENT_LOG, found)


@shared_task
def poll_event_log(source_id: int) -> None:
    """Store what a log has grown by, step by step, until its present end."""
    for more in _polls(source_id):
        if not more:
            return


def _polls(source_id: int) -> Iterator[bool]:
    for _ in range(POLLS_A_TASK):
        try:
            with transaction.atomic():
                more = _poll(source_id)
        except Exception as error:  # whatever it is, the person who owns the log must read it on the page
            if not isinstance(error, UnreadableLogError):
                logger.exception("collect.failed source=%d", source_id)
            _forget(source_id)
            if isinstance(error, LogReplacedError):
                sources.restart(source_id)
            sources.poll_failed(source_id, f"{error}")
            more = False
        yield more


def _poll(source_id: int) -> bool:
    """One step; whether there is more to read now. The row stays locked, so no other process reads along."""
    source = sources.claim(source_id)
    if source is None or source.finished:
        return False
    collector = _collectors.setdefault(source.location, EventLogCollector(Path(source.location)))
    batch, state = collector.poll(source.state)
    application = collector.application
    over = application.finished and collector.caught_up
    # A log that lost its first lines does not name its application; its own name must do.
    name = (application.name or (Path(source.location).name if len(batch.records) else ""))[:MAX_NAME]
    identity = f"{application.app_id} {application.started_ns}" if application.app_id else ""
    job = sources.save_poll(source, sources.Poll(batch, state, name, identity, application.started_ns, over))
    if over:
        logger.info("collect.finished source=%d job=%s", source_id, job)
        _forget(source_id)
    return not collector.caught_up


def _forget(source_id: int) -> None:
    """Close the log; the next poll begins from the stored position."""
    location = sources.location(source_id)
    if (collector := _collectors.pop(location, None)) is not None:
        collector.close()
