"""Burst headroom of all clusters with new rates or a new model, and simulations that pages wait for."""

from __future__ import annotations

import logging
import time

from celery import shared_task

from analytics.spark.clusters import PostgresClusters
from analytics.spark.jobs import bursts
from webapp.bursts import deriving, simulations, surveys
from webapp.telemetry import segment_store
from workers import spark

logger = logging.getLogger(__name__)


@shared_task
def derive() -> None:
    """Models that follow what jobs report are made anew when these run otherwise, and every hour."""
    if count := deriving.refresh_due(time.time_ns()):
        logger.info("bursts.derived clusters=%d", count)


@shared_task
def survey() -> None:
    """One Spark job answers for every cluster; one transaction stores what it says."""
    wanted = surveys.due(time.time_ns())
    if not wanted:
        return
    found = bursts.run(spark.session(), PostgresClusters(segment_store.address()), wanted)
    kept = surveys.keep(found)
    logger.info(
        "bursts.done clusters=%d stored=%d failed=%d late=%d",
        len(wanted),
        kept.stored,
        kept.failed,
        kept.late,
    )


@shared_task
def simulate(simulation_id: int) -> None:
    """Play the bursts that a page waits for."""
    simulations.compute(simulation_id)
