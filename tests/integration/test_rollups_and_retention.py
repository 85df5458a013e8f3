"""Samples are rolled up once they have settled, and each class of data is forgotten in its time."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from analytics.model.activity import ActivityType
from analytics.model.metrics import MetricSample as Sample
from analytics.model.trace import Records, TraceBatch, Worker
from webapp.bursts.models import Cluster, ModelVersion, Origin, Simulation, Survey
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.ops.partitions import DAY_NS, drop_older, ensure_days
from webapp.ops.retention import forget
from webapp.telemetry.metric_store import HOUR_NS
from webapp.telemetry.models import Batch, HourRollup, MetricSample, MinuteRollup, RollupDue, Segment
from webapp.telemetry.rollups import MINUTE_NS, roll_up
from webapp.telemetry.services import digest_of, store_batch

pytestmark = pytest.mark.django_db

HOUR = time.time_ns() // HOUR_NS * HOUR_NS - 3 * HOUR_NS


@pytest.fixture
def job() -> Job:
    return ensure_job("j")


def store(job: Job, *samples: tuple[int, float], name: str = "m") -> None:
    values = tuple(Sample(name, (("host", "a"),), at_ns, value) for at_ns, value in samples)
    store_batch(job, TraceBatch(Records.of([]), metrics=values), digest_of(repr(samples), name))


def settle() -> int:
    RollupDue.objects.update(not_before=timezone.now())
    return roll_up()


def test_minutes_and_hours_say_what_the_samples_said(job: Job) -> None:
    store(job, (HOUR, 4.0), (HOUR + 5, 1.0), (HOUR + MINUTE_NS - 1, 2.0), (HOUR + 10 * MINUTE_NS, 9.0))
    assert roll_up() == 0, "an hour that still gets samples waits"
    assert settle() == 1
    fields = ("at_ns", "minimum", "maximum", "total", "count", "last")
    assert list(MinuteRollup.objects.order_by("at_ns").values_list(*fields)) == [
        (HOUR, 1.0, 4.0, 7.0, 3, 2.0),
        (HOUR + 10 * MINUTE_NS, 9.0, 9.0, 9.0, 1, 9.0),
    ]
    assert list(HourRollup.objects.values_list(*fields)) == [(HOUR, 1.0, 9.0, 16.0, 4, 9.0)]
    assert settle() == 0


def test_a_late_sample_changes_its_hour_and_a_second_delivery_does_not(job: Job) -> None:
    store(job, (HOUR, 4.0))
    settle()
    store(job, (HOUR, 4.0))
    assert not RollupDue.objects.exists()
    store(job, (HOUR + 1, 6.0))
    assert settle() == 1
    assert HourRollup.objects.values_list("total", "count").get() == (10.0, 2)


def test_what_a_job_measured_goes_with_the_job_and_nothing_else_does(job: Job) -> None:
    store(job, (HOUR, 4.0))
    other = ensure_job("other")
    values = (Sample("m", (), HOUR, 1.0),)
    store_batch(other, TraceBatch(Records.of([]), metrics=values), digest_of("of the other"))
    job.delete()
    assert list(MetricSample.objects.values_list("series__job__name", "value")) == [("other", 1.0)]


def test_each_job_and_hour_is_rolled_up_by_itself(job: Job) -> None:
    store(job, (HOUR, 1.0), (HOUR + HOUR_NS, 2.0))
    store(ensure_job("k"), (HOUR, 3.0))
    assert settle() == 3
    assert sorted(HourRollup.objects.values_list("total", flat=True)) == [1.0, 2.0, 3.0]


def partitions(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = %s::regclass ORDER BY 1",
            [table],
        )
        return [name for (name,) in cursor.fetchall()]


def made_long_ago(table: str, days: int) -> None:
    day = (timezone.now() - timedelta(days=days)).date().isoformat()
    with connection.cursor() as cursor:
        for name in partitions(table):
            cursor.execute(f"COMMENT ON TABLE {name} IS '{day}'")


def test_days_are_dropped_when_they_are_old_and_were_made_long_ago() -> None:
    table, now = "telemetry_metricsample", time.time_ns()
    before = partitions(table)
    ensure_days(table, [now, now - 20 * DAY_NS, now - 8 * DAY_NS, 0, -DAY_NS])
    assert drop_older(table, 14) == [], "they were made today"
    made_long_ago(table, 15)
    dropped = drop_older(table, 14)
    today = now // DAY_NS
    assert {f"{table}_d{today - 20}", f"{table}_d0", f"{table}_dm1"} <= set(dropped)
    assert set(partitions(table)) - set(before) == {f"{table}_d{today}", f"{table}_d{today - 8}"} - set(
        before
    )


def test_no_table_that_grows_by_days_is_forgotten_by_the_forgetting() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT partrelid::regclass::text FROM pg_partitioned_table")
        tables = {name for (name,) in cursor.fetchall()}
    assert {"jobs_report", "jobs_rates"} <= tables
    for table in tables:
        ensure_days(table, [0])
        made_long_ago(table, 1_000)
    forget()
    assert {table for table in tables if f"{table}_d0" in partitions(table)} == set()


def test_what_engines_said_goes_with_the_raw_data_and_the_rates_made_of_it_stay(settings: Any) -> None:
    settings.WEIR_KEEP_RAW_DAYS, settings.WEIR_KEEP_RESULTS_DAYS = 2, 90
    day = time.time_ns() // DAY_NS - 5
    for table in ("jobs_report", "jobs_rates"):
        ensure_days(table, [day * DAY_NS])
        made_long_ago(table, 5)
    forget()
    assert f"jobs_report_d{day}" not in partitions("jobs_report")
    assert f"jobs_rates_d{day}" in partitions("jobs_rates")


def test_a_replaced_burst_model_is_forgotten_unless_something_was_computed_from_it() -> None:
    cluster = Cluster.objects.create(name="c")
    long_ago = timezone.now() - timedelta(days=91)
    times = (long_ago, long_ago, long_ago, timezone.now(), None)
    models = [
        ModelVersion.objects.create(
            cluster=cluster, number=number, version=str(number), origin=Origin.UPLOADED, payload=b"",
            applications=[], node_count=1, superseded_at=time_,
        )
        for number, time_ in enumerate(times)
    ]  # fmt: skip
    Survey.objects.create(cluster=cluster, model=models[1])
    Simulation.objects.create(model=models[2], key="k", params={}, requested_at=long_ago)
    assert forget() == {"burst models": 1}
    assert list(ModelVersion.objects.order_by("number").values_list("number", flat=True)) == [1, 2, 3, 4]


def test_rollups_outlive_their_samples_and_late_ones_do_not_spoil_them(job: Job, settings: Any) -> None:
    settings.WEIR_KEEP_RAW_DAYS = 2
    old = HOUR - 5 * DAY_NS
    store(job, (old, 1.0), (old + 1, 2.0))
    settle()
    made_long_ago("telemetry_metricsample", 10)
    forget()
    assert MetricSample.objects.count() == 0
    store(job, (old + 2, 30.0))
    settle()
    assert HourRollup.objects.values_list("total", "count").get() == (3.0, 2)


def test_deliveries_are_forgotten_by_when_they_came_not_by_what_they_tell(job: Job, settings: Any) -> None:
    settings.WEIR_KEEP_RAW_DAYS = 2
    for number in range(2):
        row = (int(ActivityType.PROCESSING), 0, -1, -1, number * 10**9, number * 10**9 + 5)
        store_batch(job, TraceBatch(Records.of([row]), workers=(Worker("w"),)), digest_of(str(number)))
    assert forget() == {}, "an old trace stored today is wanted today"
    first = Batch.objects.earliest("id")
    Batch.objects.filter(pk=first.pk).update(received_at=timezone.now() - timedelta(days=3))
    assert forget() == {"deliveries": 1}
    assert Segment.objects.count() == Batch.objects.count() == 1
