"""Digests: noting what limits each job every hour, planning what is due, sending it. Alerts and messages."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from webapp.notifications.alert_evaluation import evaluate_due
from webapp.notifications.deliveries import plan_due
from webapp.notifications.limiters import note_hour
from workers import channels
from workers.digests import send_due

logger = logging.getLogger(__name__)

ROUND_S = 45.0
"""A round ends by itself; the next goes on."""


@shared_task
def note_limiters() -> None:
    """Keep what limits each job at this hour, for the digests to come."""
    if noted := note_hour(timezone.now()):
        logger.info("notify.noted jobs=%d", noted)


@shared_task
def send_digests() -> None:
    """Plan what is due and send it."""
    planned = 0
    while made := plan_due(timezone.now()):
        planned += made
    tally = send_due(ROUND_S)
    if planned or tally.sent or tally.skipped or tally.failed:
        logger.info(
            "notify.digests planned=%d sent=%d skipped=%d failed=%d",
            planned, tally.sent, tally.skipped, tally.failed,
        )  # fmt: skip


@shared_task
def evaluate_alerts() -> None:
    """Look whether a rule that is due fires, or no longer does."""
    if done := evaluate_due(timezone.now()):
        logger.debug("notify.evaluated rules=%d", done)


@shared_task
def send_messages() -> None:
    """Send what waits for channels."""
    if sent := channels.send_due(ROUND_S):
        logger.info("notify.messages sent=%d", sent)
