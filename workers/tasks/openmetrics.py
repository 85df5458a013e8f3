"""Scraping the endpoints that people connected."""

from __future__ import annotations

import logging
import time
from functools import cache

import httpx
from celery import shared_task
from django.db import transaction

from webapp.telemetry import backoff, scrapes, sources
from workers.collectors.http import make_client
from workers.collectors.openmetrics import ScrapeError, scrape

logger = logging.getLogger(__name__)


@shared_task
def scrape_endpoints() -> None:
    """Scrape every endpoint that is due; each in a task of its own, so that a slow one holds up nobody."""
    for pk in scrapes.due():
        scrape_endpoint.apply_async([pk], expires=5)


@shared_task
def scrape_endpoint(source_id: int) -> None:
    """Store what an endpoint exposes now, or keep why it could not be."""
    try:
        with transaction.atomic():
            _scrape(source_id)
    except Exception:  # whatever it is, it must not be tried again every second, and a person must see it
        logger.exception("scrape.failed source=%d", source_id)
        with transaction.atomic():
            if (source := sources.claim(source_id)) is not None:
                backoff.failed(
                    source, "what the endpoint answered could not be stored: the log has the reason"
                )


def _scrape(source_id: int) -> None:
    source = sources.claim(source_id)
    if source is None or not backoff.may_poll(source):
        return
    at_ns = time.time_ns()
    try:
        scrapes.save_scrape(source, scrape(_client(), source.location, at_ns), at_ns)
    except (ScrapeError, scrapes.RefusedScrapeError) as error:
        backoff.failed(source, str(error))


@cache
def _client() -> httpx.Client:
    """One per process: its connections are kept open."""
    return make_client()
