"""Scaling recommendations for all jobs with new rates."""

from __future__ import annotations

import logging
import time

from celery import shared_task

from analytics.spark.jobs import scaling
from webapp.analysis import recommendations
from webapp.queue import enqueue
from workers import spark
from workers.queues import DEFAULT

logger = logging.getLogger(__name__)

FOLLOW_TASK = "workers.tasks.proposals.follow_recommendations"


@shared_task
def recommend() -> None:
    """One Spark job asks every job's policy; one transaction stores what they say."""
    wanted = recommendations.due(time.time_ns())
    if not wanted:
        return
    found = scaling.run(spark.session(), spark.rates(), wanted)
    kept = recommendations.keep(found)
    if kept.fresh:
        enqueue(FOLLOW_TASK, queue=DEFAULT)  # if it is lost, the next sweep does its work
    for advice in found:
        if advice.error:
            logger.warning("recommend.no_advice job=%d error=%s", advice.job_id, advice.error)
    logger.info(
        "recommend.done jobs=%d new=%d confirmed=%d late=%d",
        len(wanted), len(kept.fresh), kept.confirmed, kept.late,
    )  # fmt: skip
