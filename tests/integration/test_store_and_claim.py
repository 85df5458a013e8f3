"""Batches are stored once, mark what they change, and are claimed when their windows are closed."""

from datetime import timedelta

import pytest
from django.utils import timezone

from analytics.model import segments
from analytics.model.activity import ActivityType
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.trace import HalfMessage, Records, TraceBatch, Worker
from analytics.spark.lifetimes import alive
from analytics.spark.sources import PostgresSegments
from webapp.analysis import services as analysis
from webapp.analysis.models import PendingRange, Run, RunState
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.telemetry import models, segment_store
from webapp.telemetry.services import digest_of, store_batch

pytestmark = pytest.mark.django_db

S = 1_000_000_000
PROCESSING, DATA = int(ActivityType.PROCESSING), int(ActivityType.DATA_MESSAGE)


def batch(*rows: tuple[int, int, int, int, int, int], workers: int = 2, **more: object) -> TraceBatch:
    """A batch over workers w0, w1, … and one operator ``map``."""
    names = tuple(Worker(f"w{i}") for i in range(workers))
    return TraceBatch(Records.of(rows), workers=names, operators=("map",), **more)  # type: ignore[arg-type]


def processing(worker: int, start_s: float, end_s: float) -> tuple[int, int, int, int, int, int]:
    return PROCESSING, worker, -1, 0, int(start_s * S), int(end_s * S)


@pytest.fixture
def job() -> Job:
    return ensure_job("ad-events")


def ranges(job: Job) -> list[tuple[float, float, bool]]:
    rows = PendingRange.objects.filter(job=job, run=None).order_by("id")
    return [(r.from_ns / S, r.to_ns / S, r.not_before > timezone.now()) for r in rows]


def test_a_batch_sent_twice_is_stored_once(job: Job) -> None:
    sample = MetricSample("input_rows_per_s", (("query", "q"),), 5 * S, 12.5)
    note = Annotation("micro_batch", "q-1", "batch 1", 0, S)
    delivery = batch(processing(0, 0, 5), processing(1, 1, 2), metrics=(sample,), annotations=(note,))
    first = store_batch(job, delivery, digest_of(b"one"))
    second = store_batch(job, delivery, digest_of(b"one"))
    assert (first.duplicate, first.record_count, first.metric_count) == (False, 2, 1)
    assert (second.duplicate, second.record_count, second.metric_count) == (True, 2, 1)
    assert models.Segment.objects.count() == models.MetricSample.objects.count() == 1
    assert models.Annotation.objects.count() == PendingRange.objects.count() == 1
    stored = segments.decode(bytes(models.Segment.objects.get().payload))
    assert stored.start_ns.tolist() == [0, S]


def test_names_keep_their_numbers_across_batches_whatever_their_order(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 1), processing(1, 0, 1)), digest_of(b"1"))
    swapped = TraceBatch(
        Records.of([processing(0, 1, 2), processing(1, 1, 2)]),
        workers=(Worker("w1"), Worker("w2")),
        operators=("map",),
    )
    store_batch(job, swapped, digest_of(b"2"))
    assert dict(job.workers.values_list("name", "number")) == {"w0": 0, "w1": 1, "w2": 2}
    stored = segments.decode(bytes(models.Segment.objects.latest("id").payload))
    assert stored.worker.tolist() == [1, 2]
    # w2 was first seen in the second batch: it lives from there, w0 and w1 from the job's first record
    assert dict(job.workers.values_list("name", "alive_from_ns")) == {"w0": None, "w1": None, "w2": S}


def test_a_batch_changes_the_gap_before_it_but_not_past_the_horizon(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 5), processing(1, 0, 90)), digest_of(b"1"))
    PendingRange.objects.all().delete()
    store_batch(job, batch(processing(1, 95, 96)), digest_of(b"2"))
    assert ranges(job) == [(90, 96, False)]
    PendingRange.objects.all().delete()
    store_batch(job, batch(processing(0, 97, 98)), digest_of(b"3"))
    # w0 was silent for 92 s, longer than the horizon of 60 s: only what was the job's last second changes too
    assert ranges(job) == [(96, 97, False), (97, 98, False)]


def test_late_records_are_analysed_at_once_and_their_surroundings_once_more_later(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 5), processing(0, 200, 205)), digest_of(b"1"))
    PendingRange.objects.all().delete()
    store_batch(job, batch(processing(0, 100, 101)), digest_of(b"2"))
    store_batch(job, batch(processing(0, 110, 111)), digest_of(b"3"))
    assert ranges(job) == [(100, 101, False), (40, 171, True), (110, 111, False)]


def test_halves_meet_across_batches_and_are_given_up_past_the_horizon(job: Job) -> None:
    sent = HalfMessage(DATA, False, 0, 1, 3 * S, "c1")
    lonely = HalfMessage(DATA, False, 0, 1, 3 * S, "c2")
    received = HalfMessage(DATA, True, 1, 0, 4 * S, "c1")
    store_batch(job, batch(processing(0, 0, 5), halves=(sent, lonely)), digest_of(b"1"))
    stored = store_batch(job, batch(processing(1, 4, 6), halves=(received,)), digest_of(b"2"))
    assert stored.record_count == 2
    message = segments.decode(bytes(models.Segment.objects.latest("id").payload)).take([1])  # type: ignore[arg-type]
    assert (message.worker[0], message.peer[0], message.start_ns[0], message.end_ns[0]) == (
        0,
        1,
        3 * S,
        4 * S,
    )
    late = HalfMessage(DATA, False, 0, 1, 100 * S, "c3")
    stored = store_batch(job, batch(processing(0, 99, 101), halves=(late,)), digest_of(b"3"))
    assert {(item.code, item.count) for item in stored.diagnostics} == {("unmatched_sent", 1)}


def test_only_closed_windows_are_claimed_and_the_rest_keeps_waiting(job: Job) -> None:
    store_batch(job, batch(processing(0, 0.5, 10.2)), digest_of(b"1"))
    claimed = analysis.claim_work(1, "w")
    assert claimed is not None
    run, work = claimed
    assert [part.index_ranges for part in work] == [((0, 8),)], "10.2 s less 2 s of lateness closes 8 windows"
    assert run.windows_total == 8
    assert ranges(job) == [(8.000000001, 10.2, False)]


def test_an_idle_job_has_its_last_window_closed(job: Job) -> None:
    store_batch(job, batch(processing(0, 0.5, 10.2)), digest_of(b"1"))
    Job.objects.update(last_received_at=timezone.now() - timedelta(seconds=6))
    claimed = analysis.claim_work(1, "w")
    assert claimed is not None
    assert [part.index_ranges for part in claimed[1]] == [((0, 11),)]
    assert ranges(job) == []


def test_a_job_is_worked_on_by_one_run_at_a_time(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 10)), digest_of(b"1"))
    assert analysis.claim_work(1, "a") is not None
    store_batch(job, batch(processing(0, 10, 20)), digest_of(b"2"))
    assert analysis.claim_work(1, "b") is None


def test_what_a_dead_run_held_is_claimed_again(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 10)), digest_of(b"1"))
    first = analysis.claim_work(1, "a")
    assert first is not None
    Run.objects.update(heartbeat_at=timezone.now() - timedelta(seconds=61))
    second = analysis.claim_work(1, "b")
    assert second is not None
    assert second[1] == first[1]
    assert Run.objects.get(pk=first[0].pk).state == RunState.FAILED
    with pytest.raises(analysis.RunLostError):
        analysis.finish_run(first[0], first[1], [])
    assert second[0].ranges.count() == 1, "the late first run must not take the second one's ranges away"


def test_a_restarted_worker_frees_its_own_runs_at_once(job: Job) -> None:
    store_batch(job, batch(processing(0, 0, 10)), digest_of(b"1"))
    assert analysis.claim_work(1, "a") is not None
    assert analysis.release_runs_of("b") == 0
    assert analysis.release_runs_of("a") == 1
    assert analysis.claim_work(1, "a") is not None


def test_a_silence_of_the_whole_job_reopens_its_last_window_and_counts_as_time(job: Job) -> None:
    store_batch(job, batch(processing(0, 10, 10.4)), digest_of(b"1"))
    PendingRange.objects.all().delete()
    store_batch(job, batch(processing(0, 700, 701)), digest_of(b"2"))
    assert ranges(job) == [(10.4, 700, False), (700, 701, False)]


def test_records_with_impossible_times_are_refused_and_the_others_kept(job: Job) -> None:
    ahead = timezone.now().timestamp() + 7200
    mixed = batch(processing(0, 0, 5), processing(1, 5, 90_000), processing(1, ahead, ahead + 1))
    stored = store_batch(job, mixed, digest_of(b"1"))
    assert stored.record_count == 1
    assert {item.code: item.count for item in stored.diagnostics} == {
        "longer_than_a_day": 1,
        "time_in_the_future": 1,
    }
    job.refresh_from_db()
    assert job.last_ns == 5 * S


def test_a_job_whose_analysis_fails_holds_up_no_other(job: Job) -> None:
    other = ensure_job("other")
    for each in (job, other):
        store_batch(each, batch(processing(0, 0, 10)), digest_of(b"1"))
    together = analysis.claim_work(1, "w")
    assert together is not None
    assert len(together[1]) == 2
    analysis.fail_run(together[0], "out of memory")
    alone = analysis.claim_work(1, "w")
    assert alone is not None
    assert len(alone[1]) == 1, "after a failure each is tried by itself"
    analysis.fail_run(alone[0], "out of memory")
    good = analysis.claim_work(1, "w")
    assert good is not None
    assert good[1][0].job_id != alone[1][0].job_id
    analysis.finish_run(good[0], good[1], [])
    assert analysis.claim_work(1, "w") is None, "the bad one waits longer each time"
    PendingRange.objects.update(not_before=timezone.now())
    assert analysis.claim_work(1, "w") is not None


def test_a_backlog_of_one_job_leaves_room_for_the_others(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MAX_WINDOWS_A_RUN", 20)
    other = ensure_job("other")
    store_batch(job, batch(processing(0, 0, 1000)), digest_of(b"1"))
    store_batch(other, batch(processing(0, 0, 7)), digest_of(b"1"))
    claimed = analysis.claim_work(1, "w")
    assert claimed is not None
    assert {part.job_id: part.index_ranges for part in claimed[1]} == {
        job.pk: ((0, 10),),
        other.pk: ((0, 5),),
    }


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_only_a_lost_half_named_has_no_life(job: Job) -> None:
    sent = HalfMessage(DATA, False, 0, 1, 3 * S, "c1")
    store_batch(job, batch(processing(0, 0, 5), halves=(sent,)), digest_of(b"1"))
    lives = PostgresSegments(segment_store.address()).lifetimes(job.pk)
    assert [number for number, _, _ in lives] == [0]
    alive_from, alive_until = alive(lives, (0, 5 * S))
    assert (alive_from.tolist(), alive_until.tolist()) == ([0], [5 * S])
