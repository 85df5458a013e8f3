"""Scraping an OpenMetrics or Prometheus endpoint."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from analytics.decode.limits import UnreadableFileError
from analytics.decode.openmetrics import SCRAPE_LIMITS, decode_exposition
from analytics.model.samples import MetricBatch
from workers.collectors.http import FetchError, fetch

ACCEPT = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
WITHIN_S = 10.0
OK = 200


class ScrapeError(Exception):
    """The endpoint gave no metrics; the message is one line for people."""


def scrape(client: httpx.Client, address: str, at_ns: int, within_s: float = WITHIN_S) -> MetricBatch:
    """The samples that an endpoint exposes now; those without a time of their own get ``at_ns``.

    Raises
    ------
    ScrapeError
        If it cannot be reached, answers with an error or too much, or with something else than metrics.
    """
    try:
        answer = fetch(
            client, address, max_bytes=SCRAPE_LIMITS.max_bytes, within_s=within_s, headers={"Accept": ACCEPT}
        )
    except FetchError as error:
        raise ScrapeError(f"{address}: {error}") from error
    if answer.status != OK:
        raise ScrapeError(f"{address} was answered with {answer.status} {answer.reason}".rstrip())
    try:
        batch = decode_exposition(answer.body, answer.content_type, at_ns, urlsplit(address).netloc)
    except UnreadableFileError as error:
        raise ScrapeError(f"the answer of {address} is no list of metrics: {error}") from error
    if not len(batch) and not batch.rejected_count:
        raise ScrapeError(f"the answer of {address} has no metrics")
    return batch
