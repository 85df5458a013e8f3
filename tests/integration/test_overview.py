"""The list of jobs: what limits each, what needs attention first, page by page, whatever their number."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.support import seed
from webapp.accounts.models import User
from webapp.analysis import selectors, standings
from webapp.analysis.models import Standing
from webapp.analysis.overview import PAGE_ROWS, JobRow, Overview, overview
from webapp.jobs import freshness
from webapp.jobs.models import Engine, Job
from webapp.telemetry.models import Source

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def alice() -> User:
    return User.objects.create_user("alice", password="a long password")


def many(count: int) -> None:
    """Jobs with a standing each; job 7 fails, job 8 is silent, job 9 has no limiter, job 10 is done."""
    now = timezone.now()
    jobs = Job.objects.bulk_create(
        Job(name=f"job-{i:05}", engine=Engine.FLINK, last_received_at=now, finished=i == 10)
        for i in range(count)
    )
    Standing.objects.bulk_create(
        Standing(
            job=job, computed_at=now, activity=None if i == 9 else 4, operator=f"op-{i % 7}", sparkline=[0.5, None],
            cp=None if i == 9 else (i % 100) / 100, conventional=0.1, unknown_cp=0.01, input_rows_per_s=float(i),
        )
        for i, job in enumerate(jobs)
    )  # fmt: skip
    Source.objects.create(kind="spark-event-log", location="/logs/x", job=jobs[7], error="permission denied")
    Job.objects.filter(pk=jobs[8].pk).update(last_received_at=now - timedelta(hours=1))


def names(found: Overview) -> list[str]:
    return [row.job.name for row in found.rows]


def test_a_job_says_what_the_page_of_the_job_says(alice: User) -> None:
    job = seed.make_job("ad-events")
    seed.stream(job, int(time.time()) - 65, 60)
    now_ns = time.time_ns()
    (row,) = overview(alice, timezone.now()).rows
    limits = selectors.limits(job, now_ns - standings.SPAN_NS, now_ns)
    assert limits.limiter is not None
    assert row.limiter is not None
    assert (row.limiter.activity, row.limiter.operator) == (limits.limiter.activity, limits.limiter.operator)
    assert row.limiter.cp == pytest.approx(limits.limiter.cp, abs=1e-3)
    assert row.input_rows_per_s is not None
    assert len(row.sparkline) == 60
    assert any(value is not None for value in row.sparkline)


def test_what_needs_attention_comes_first_and_each_state_can_be_asked_for(alice: User) -> None:
    many(20)
    found = overview(alice, timezone.now())
    assert names(found)[:3] == ["job-00007", "job-00008", "job-00009"]
    assert names(found)[-1] == "job-00010"
    assert found.counts == {"all": 20, "quiet": 1, "error": 1, "unlimited": 1}
    for show, name in (("error", "job-00007"), ("quiet", "job-00008"), ("unlimited", "job-00009")):
        assert names(overview(alice, timezone.now(), show=show)) == [name]
    assert names(overview(alice, timezone.now(), search="-0001")) == [
        f"job-{i:05}" for i in (*range(11, 20), 10)
    ]


@pytest.mark.parametrize(
    ("sort", "first"), [("name", 0), ("-name", 249), ("-cp", 99), ("cp", 0), ("-rate", 249)]
)
def test_every_column_sorts_over_all_pages(alice: User, sort: str, first: int) -> None:
    many(250)
    found = overview(alice, timezone.now(), sort=sort)
    assert names(found)[0] == f"job-{first:05}"
    pages = [overview(alice, timezone.now(), sort=sort, page=page) for page in range(3)]
    assert [len(page.rows) for page in pages] == [PAGE_ROWS, PAGE_ROWS, 50]
    assert len({name for page in pages for name in names(page)}) == 250
    assert names(overview(alice, timezone.now(), sort=sort, page=99)) == names(pages[2])


def test_ten_thousand_jobs_take_as_many_queries_as_ten(alice: User) -> None:
    asked = []
    for count in (10, 10_000):
        Source.objects.all().delete()
        Job.objects.all().delete()
        many(11 if count == 10 else count)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            found = overview(alice, timezone.now(), page=3)
        asked.append(len(queries))
    assert asked[0] == asked[1] <= 3
    assert found.row_count == 10_000


def test_a_limiter_of_an_hour_ago_is_not_told_as_todays(alice: User) -> None:
    many(12)
    Standing.objects.update(computed_at=timezone.now() - timedelta(hours=1))
    found = overview(alice, timezone.now())
    assert {row.limiter for row in found.rows} == {None}
    assert found.counts["unlimited"] == 12


def test_results_outdate_a_standing_once_until_it_is_worked_out(alice: User) -> None:
    job = seed.make_job("a")
    standings.outdate([job.pk, job.pk])
    first = Standing.objects.get(job=job).outdated_at
    standings.outdate([job.pk])
    assert Standing.objects.get(job=job).outdated_at == first
    assert [standings.refresh(), standings.refresh()] == [1, 0]


@pytest.mark.parametrize("age_s", [0, 29, 31, 300])
@pytest.mark.parametrize("window_s", [1, 60])
@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("error", ["", "permission denied"])
def test_a_list_and_a_page_agree_on_the_state_of_a_job(
    alice: User, age_s: int, window_s: int, finished: bool, error: str
) -> None:
    now = timezone.now()
    job = Job.objects.create(
        name="a",
        window_ns=window_s * 10**9,
        finished=finished,
        last_received_at=now - timedelta(seconds=age_s),
    )
    Source.objects.create(kind="spark-event-log", location="/logs/x", job=job, error=error)
    (row,) = overview(alice, now).rows
    assert row.job.state == freshness.state_of(job, error, now)  # type: ignore[attr-defined]


def test_a_job_that_never_reported_is_silent(alice: User) -> None:
    Job.objects.create(name="a")
    found = overview(alice, timezone.now(), show="quiet")
    assert [isinstance(row, JobRow) for row in found.rows] == [True]
