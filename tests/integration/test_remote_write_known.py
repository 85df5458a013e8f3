"""Remote write of series that are known: nobody waits for a neighbour, and nothing remembered is ever wrong."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from django.db import connection, transaction

from tests.support import remote_write as rw
from tests.support.api import Caller, problem_of, secret
from tests.support.at_once import at_once
from tests.support.waiting import eventually
from webapp.accounts.models import Scope
from webapp.jobs.models import Job
from webapp.ops.partitions import DAY_NS
from webapp.telemetry.models import Batch, MetricSample, RollupDue, Series

pytestmark = pytest.mark.django_db(transaction=True)

NOW_MS = time.time_ns() // 1_000_000
V1 = {"Content_Type": "application/x-protobuf", "Content_Encoding": "snappy"}
HOSTS = range(40)


def body(at_ms: int, value: float = 1.0, *, hosts: Any = HOSTS, job: str = "known") -> bytes:
    """One sample of each host, as Prometheus sends them."""
    labels = {"job": job} if job else {}
    return rw.packed(
        b"".join(
            rw.series_v1({"__name__": "m", "host": str(host), **labels}, [(value, at_ms)]) for host in hosts
        )
    )


def send(at_ms: int, value: float = 1.0, *, caller: Caller | None = None, **more: Any) -> Any:
    return (caller or Caller(secret(Scope.INGEST))).post("/api/v1/write", body(at_ms, value, **more), **V1)


def values(at_ms: int) -> set[float]:
    return set(MetricSample.objects.filter(at_ns=at_ms * 10**6).values_list("value", flat=True))


@pytest.fixture
def known() -> Caller:
    """A program whose series this server process has stored before, in two deliveries."""
    caller = Caller(secret(Scope.INGEST))
    for back in (2_000, 1_000):
        assert send(NOW_MS - back, caller=caller).status_code == 204
    return caller


def test_a_known_delivery_waits_for_no_other_that_stores_for_the_same_job(known: Caller) -> None:
    job = Job.objects.get(name="known")
    done: list[int] = []

    def act() -> None:
        try:
            done.append(send(NOW_MS, 2.0, caller=known).status_code)
        finally:
            connection.close()

    with transaction.atomic():
        Job.objects.select_for_update(no_key=True).get(pk=job.pk)
        thread = threading.Thread(target=act)
        thread.start()
        thread.join(20)
        assert done == [204]
    assert values(NOW_MS) == {2.0}
    assert send(NOW_MS + 1, caller=known).status_code == 204
    job.refresh_from_db()
    assert job.last_received_at is not None
    assert RollupDue.objects.filter(job=job).exists()


def test_a_new_series_waits_for_the_other_and_is_made_once(known: Caller) -> None:
    more = range(len(HOSTS) + 20)
    acts = [
        lambda number=number: _accepted(send(NOW_MS + number, caller=known, hosts=more))
        for number in range(4)
    ]
    assert at_once(acts) == {"done": 4}
    assert Series.objects.filter(job__name="known").count() == len(more)
    assert MetricSample.objects.filter(at_ns__gte=NOW_MS * 10**6).count() == 4 * len(more)


def test_deliveries_of_the_same_samples_in_opposite_orders_wait_for_each_other_at_most_once(
    known: Caller,
) -> None:
    """As two Prometheus servers send that scrape the same targets: a circle would make one of them fail."""
    first, last = Series.objects.order_by("id").values_list("id", flat=True)[:: len(HOSTS) - 1]
    done: list[int] = []

    def act() -> None:
        try:
            done.append(send(NOW_MS, 3.0, caller=known, hosts=HOSTS[::-1]).status_code)
        finally:
            connection.close()

    with transaction.atomic():
        MetricSample.objects.create(series_id=first, at_ns=NOW_MS * 10**6, value=4.0)
        thread = threading.Thread(target=act)
        thread.start()
        eventually(_somebody_waits, "the delivery waits for the first of its samples", 20)
        MetricSample.objects.create(series_id=last, at_ns=NOW_MS * 10**6, value=4.0)
    thread.join(20)
    assert done == [204]
    assert values(NOW_MS) == {3.0}


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_many_who_send_the_same_samples_at_once_are_all_taken(known: Caller) -> None:
    acts = [
        lambda hosts=hosts, value=value: _accepted(send(NOW_MS, value, caller=known, hosts=hosts))
        for value, hosts in ((3.0, HOSTS), (4.0, HOSTS[::-1]), (5.0, HOSTS[::-1]), (6.0, HOSTS))
    ]
    assert at_once(acts) == {"done": 4}
    assert values(NOW_MS) <= {3.0, 4.0, 5.0, 6.0}
    assert MetricSample.objects.filter(at_ns=NOW_MS * 10**6).count() == len(HOSTS)


def test_the_first_deliveries_of_a_job_are_all_taken_when_they_come_at_once() -> None:
    caller = Caller(secret(Scope.INGEST))
    for number in range(10):
        acts = [
            lambda at_ms=at_ms, job=f"new-{number}": _accepted(
                send(at_ms, caller=caller, hosts=range(2), job=job)
            )
            for at_ms in range(NOW_MS, NOW_MS + 4)
        ]
        assert at_once(acts) == {"done": 4}
    assert Job.objects.filter(name__startswith="new-").count() == 10


def test_one_body_sent_by_many_at_once_is_one_batch(known: Caller) -> None:
    before = Batch.objects.count()
    assert at_once([lambda: _accepted(send(NOW_MS, 5.0, caller=known))] * 4) == {"done": 4}
    assert Batch.objects.count() == before + 1
    assert Batch.objects.latest("id").metric_count == len(HOSTS)


def test_a_day_whose_partition_was_dropped_gets_one_again(known: Caller) -> None:
    yesterday_ms = NOW_MS - 86_400_000
    assert send(yesterday_ms, caller=known).status_code == 204
    with connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE telemetry_metricsample_d{yesterday_ms * 10**6 // DAY_NS}")
    assert send(yesterday_ms + 1, 6.0, caller=known).status_code == 204
    assert values(yesterday_ms + 1) == {6.0}


def test_a_series_that_two_jobs_have_is_stored_for_the_one_whose_token_sends_it() -> None:
    callers = {name: Caller(secret(Scope.INGEST, jobs=(name,))) for name in ("one", "two")}
    for number in range(3):
        for name, caller in callers.items():
            value = float(len(name) + number + (10 if name == "two" else 0))
            assert send(NOW_MS + number, value, caller=caller, job="").status_code == 204
    for name, least in (("one", 3.0), ("two", 13.0)):
        rows = MetricSample.objects.filter(series__job__name=name)
        assert set(rows.values_list("value", flat=True)) == {least, least + 1, least + 2}
        assert rows.count() == 3 * len(HOSTS)


def test_a_job_deleted_and_made_again_has_series_of_its_own(known: Caller) -> None:
    old = set(Series.objects.values_list("id", flat=True))
    Job.objects.get(name="known").delete()
    assert send(NOW_MS, 7.0, caller=known).status_code == 204
    new = set(Series.objects.values_list("id", flat=True))
    assert len(new) == len(HOSTS)
    assert not new & old
    assert set(MetricSample.objects.values_list("series_id", flat=True)) == new


def test_at_its_limit_a_job_keeps_its_known_series_and_says_what_it_left_out(
    known: Caller, settings: Any
) -> None:
    settings.WEIR_MAX_SERIES_PER_JOB = len(HOSTS)
    answer = send(NOW_MS, caller=known, hosts=range(len(HOSTS) + 3))
    assert problem_of(answer, 400) == "samples_rejected"
    assert "too_many_series (3)" in answer.json()["detail"]
    row = Batch.objects.latest("id")
    assert row.metric_count == len(HOSTS)
    assert [item["code"] for item in row.diagnostics] == ["too_many_series"]
    assert problem_of(send(NOW_MS, caller=known, hosts=range(100, 103)), 429) == "too_many_series"
    assert send(NOW_MS + 1, caller=known).status_code == 204


def _accepted(answer: Any) -> None:
    assert answer.status_code == 204, answer.content
