"""Rolling up metrics and forgetting what is past its time."""

from __future__ import annotations

import logging

from celery import shared_task

from webapp.ops.retention import forget
from webapp.telemetry.rollups import roll_up

logger = logging.getLogger(__name__)


@shared_task
def roll_up_metrics() -> None:
    """Hours that have settled, a bounded number each time."""
    if count := roll_up():
        logger.info("upkeep.rolled_up hours=%d", count)


@shared_task
def forget_old() -> None:
    """Drop old partitions and rows."""
    if gone := forget():
        logger.info("upkeep.forgot %s", gone)
