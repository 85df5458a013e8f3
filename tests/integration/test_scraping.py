"""Scraping endpoints: Flink's own text becomes metrics, and whatever an endpoint does is bounded and said."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from django.utils import timezone

from tests.support.api import person
from tests.support.metrics_server import Endpoint, exposing, taskmanager
from webapp.jobs.models import Job
from webapp.telemetry import scrapes
from webapp.telemetry.connections import services
from webapp.telemetry.connections.wanted import Wanted
from webapp.telemetry.models import MetricSample, Series, Source
from workers.collectors.http import make_client
from workers.collectors.openmetrics import ScrapeError, scrape
from workers.tasks import openmetrics

pytestmark = pytest.mark.django_db(transaction=True)
Scraped = tuple[Source, Endpoint]


@pytest.fixture
def endpoint() -> Iterator[Scraped]:
    with exposing(taskmanager()) as (address, steer):
        admin = person("root")
        admin.is_staff = True
        admin.save()
        wanted = Wanted("openmetrics", address, "bottleneck", 15)
        yield services.add_connection(admin, wanted), steer
    openmetrics._client.cache_clear()


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with make_client() as made:
        yield made


def again(source: Source) -> Source:
    """Scrape now, whatever the source waits for."""
    Source.objects.filter(pk=source.pk).update(polled_at=None, state=None)
    openmetrics.scrape_endpoint(source.pk)
    source.refresh_from_db()
    return source


def test_what_a_taskmanager_exposes_becomes_metrics_of_the_job_that_was_named(endpoint: Scraped) -> None:
    source, steer = endpoint
    openmetrics.scrape_endpoint(source.pk)
    source.refresh_from_db()
    assert (source.error, source.state, steer.asked) == ("", None, 1)
    assert source.polled_at is not None
    job = Job.objects.get(name="bottleneck")
    busy = Series.objects.filter(job=job, name="flink_taskmanager_job_task_busyTimeMsPerSecond")
    assert busy.count() > 0
    assert {row.labels["instance"] for row in busy} == {source.location.split("/")[2]}
    assert MetricSample.objects.filter(series__job=job).count() == Series.objects.filter(job=job).count()
    assert job.last_received_at is not None
    again(source)
    assert MetricSample.objects.filter(series__in=busy).count() == 2 * busy.count()


def test_an_endpoint_is_due_at_once_then_after_its_interval_and_not_while_paused(endpoint: Scraped) -> None:
    source, _ = endpoint
    assert scrapes.due() == [source.pk]
    now = timezone.now()
    Source.objects.update(polled_at=now - timedelta(seconds=14))
    assert scrapes.due() == []
    Source.objects.update(polled_at=now - timedelta(seconds=16))
    assert scrapes.due() == [source.pk]
    Source.objects.update(paused=True)
    assert scrapes.due() == []


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (503, b"", "answered with 503"),
        (302, b"", "answered with 302"),
        (200, b"<html>Sign in</html>", "is no list of metrics: line 1"),
        (200, b"up 1\nbroken{\n", "line 2"),
        (200, b"\xff\xfe", "no UTF-8"),
        (200, b"", "has no metrics"),
        (200, b"# HELP nothing is here\n", "has no metrics"),
        (200, b"temperature NaN\n", ""),
    ],
)
def test_an_endpoint_that_gives_no_metrics_says_why_and_waits_longer_each_time(
    endpoint: Scraped, status: int, body: bytes, says: str
) -> None:
    source, steer = endpoint
    steer.status, steer.body = status, body
    openmetrics.scrape_endpoint(source.pk)
    source.refresh_from_db()
    assert says in source.error
    assert source.error
    assert "\n" not in source.error
    assert source.state is not None
    assert source.state["failures"] == 1
    openmetrics.scrape_endpoint(source.pk)
    assert steer.asked == 1
    steer.status, steer.body = 200, b"up 1\n"
    assert again(source).error == ""
    assert MetricSample.objects.filter(series__name="up").count() == 1


def test_an_endpoint_that_is_not_there_is_a_state_and_not_a_crash(client: httpx.Client) -> None:
    with pytest.raises(ScrapeError, match="cannot be reached"):
        scrape(client, "http://127.0.0.1:9/metrics", 1)


def test_an_answer_that_trickles_ends_with_the_time_there_is_for_it(client: httpx.Client) -> None:
    with exposing(b"# a comment that goes on\n" * 40) as (address, steer):
        steer.parts, steer.pause_s = 40, 0.05
        with pytest.raises(ScrapeError, match=r"not complete after 0\.3 s"):
            scrape(client, address, 1, within_s=0.3)


def test_an_answer_without_end_and_a_compressed_one_are_refused(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exposing(b"up 1\n") as (address, steer):
        assert len(scrape(client, address, 10**18)) == 1
        assert steer.accepted == "identity"
        steer.headers = {"Content-Encoding": "gzip"}
        with pytest.raises(ScrapeError, match="compressed"):
            scrape(client, address, 10**18)
        steer.headers, steer.body = {}, b"#" * ((16 << 20) + 2)
        with pytest.raises(ScrapeError, match="longer than 16,777,216 bytes"):
            scrape(client, address, 10**18)


def test_what_cannot_be_stored_is_said_on_the_connection_too(endpoint: Scraped, settings: object) -> None:
    source, steer = endpoint
    settings.WEIR_MAX_SERIES_PER_JOB = 0  # type: ignore[attr-defined]
    assert "too_many_series" in again(source).error
    Job.objects.all().delete()
    steer.body = b"up 1\n"
    assert "job that these metrics belonged to is gone" in again(source).error
