"""A Flink cluster as a source: its recorded polls become jobs, reports, rates, metrics; failures wait and heal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from analytics.model.rates import Observation
from analytics.model.topology import MemoryUse
from analytics.scaling import ds2, rates
from tests.support.flink import polls, series
from tests.support.flink_server import Replay, replaying
from webapp.jobs import reports
from webapp.jobs.models import Job, Rates, Report
from webapp.telemetry import flink, sources
from webapp.telemetry.models import MetricSample, Source, SourceKind
from workers.tasks import flink as tasks

pytestmark = pytest.mark.django_db(transaction=True)

RUN = "two_stage_ds2_series_before"
TARGET_PER_S = 900.0


@pytest.fixture
def cluster() -> Iterator[tuple[Source, Replay]]:
    with replaying(series(RUN)) as (address, replay):
        yield sources.add_source(SourceKind.FLINK, address), replay
    tasks._cluster.cache_clear()


def follow(cluster: Source) -> Source:
    tasks.poll_cluster(cluster.pk)
    return Source.objects.get(parent=cluster)


def play(source: Source) -> None:
    """All recorded polls at the times they were made, from a cluster that gets short of memory."""
    for number, poll in enumerate(polls(RUN)):
        use = MemoryUse(number / 1000, 0.5, None)
        flink.save_poll(source, replace(poll, memory=use), ())


def test_a_job_of_the_cluster_is_followed_under_its_name_and_a_second_look_changes_nothing(
    cluster: tuple[Source, Replay],
) -> None:
    source = follow(cluster[0])
    assert follow(cluster[0]) == source
    assert source.job is not None
    assert (source.job.name, source.job.engine, source.job.engine_job_id) == (
        "bottleneck",
        "flink",
        source.identity,
    )
    tasks.poll_job(source.pk)
    report = reports.newest_report(source.job)
    assert report is not None
    assert report.topology == polls(RUN)[0].topology
    assert report.counters[0].records_out == polls(RUN)[0].counters[0].records_out
    job = Job.objects.get()
    assert job.last_received_at is not None
    assert Source.objects.get(pk=source.pk).error == ""


def test_the_recorded_polls_become_the_rates_from_which_ds2_asks_for_what_really_helped(
    cluster: tuple[Source, Replay],
) -> None:
    source = follow(cluster[0])
    play(source)
    assert source.job is not None
    measured = reports.newest_rates(source.job)
    assert measured is not None
    operator = measured.topology.sources()[0]
    targets = rates.source_targets(measured.topology, measured.window, {operator.id: TARGET_PER_S})
    decision = ds2.decide(Observation(measured.topology, measured.window, targets))
    names = {item.id: item.name for item in measured.topology.operators}
    assert {names[key]: value for key, value in decision.changes.items()} == {"split": 5, "count": 2}
    assert Report.objects.count() == len(polls(RUN))
    assert 0 < Rates.objects.count() < Report.objects.count()
    memory = measured.window.memory
    assert memory is not None
    assert (memory.heap_ratio, memory.metaspace_ratio) == (0.5, None)
    assert memory.gc_ratio is not None
    assert memory.gc_ratio > 0


def test_a_poll_stored_twice_is_stored_once(cluster: tuple[Source, Replay]) -> None:
    source = follow(cluster[0])
    play(source)
    before = (Report.objects.count(), Rates.objects.count(), MetricSample.objects.count())
    play(source)
    assert (Report.objects.count(), Rates.objects.count(), MetricSample.objects.count()) == before


def test_charts_get_rates_busy_shares_and_the_input_by_operator_and_instance(
    cluster: tuple[Source, Replay],
) -> None:
    play(follow(cluster[0]))
    busy = MetricSample.objects.filter(series__name="busy_ratio", series__labels__operator="split")
    assert busy.order_by("-at_ns").values_list("value", flat=True)[0] == pytest.approx(1.0, abs=0.05)
    read = MetricSample.objects.filter(series__name="input_rows_per_s").order_by("-at_ns")
    assert read[0].value == pytest.approx(198, rel=0.05)


def test_a_cluster_that_does_not_answer_says_so_waits_longer_each_time_and_heals(
    cluster: tuple[Source, Replay],
) -> None:
    source, replay = cluster
    replay.failing = True
    waits = []
    for _ in range(3):
        Source.objects.filter(pk=source.pk).update(
            state={**(source.state or {}), "not_before": "2026-01-01T00:00:00+00:00"}
        )
        tasks.poll_cluster(source.pk)
        source.refresh_from_db()
        assert source.state is not None
        waits.append(source.state["not_before"])
    assert "503" in source.error
    assert "leader election" in source.error
    assert waits == sorted(waits)
    assert source.state["failures"] == 3
    asked = len(replay.asked)
    tasks.poll_cluster(source.pk)
    assert len(replay.asked) == asked
    replay.failing = False
    Source.objects.filter(pk=source.pk).update(state=None)
    tasks.poll_cluster(source.pk)
    source.refresh_from_db()
    assert (source.error, source.state) == ("", None)
    assert Job.objects.count() == 1


def test_a_job_that_the_cluster_forgot_or_that_ended_is_finished(cluster: tuple[Source, Replay]) -> None:
    source = follow(cluster[0])
    cluster[1].recorded = [{"t": 0, "responses": {}}]
    tasks.poll_job(source.pk)
    source.refresh_from_db()
    assert source.finished
    assert Job.objects.get().finished


def test_a_redeployed_job_keeps_its_history_and_two_of_one_name_are_two(
    cluster: tuple[Source, Replay],
) -> None:
    source = follow(cluster[0])
    page = next(iter(cluster[1].recorded[0]["responses"]))
    body = cluster[1].recorded[0]["responses"][page]
    again = {**body, "jid": "b" * 32}
    cluster[1].recorded = [{"t": 0, "responses": {page: body, "/jobs/" + "b" * 32: again}}]
    tasks.poll_cluster(cluster[0].pk)
    assert set(Job.objects.values_list("name", flat=True)) == {"bottleneck", "bottleneck (bbbbbbbb)"}
    Source.objects.filter(parent=cluster[0]).update(finished=True)
    third = {**body, "jid": "c" * 32}
    cluster[1].recorded = [{"t": 0, "responses": {"/jobs/" + "c" * 32: third}}]
    tasks.poll_cluster(cluster[0].pk)
    assert Source.objects.get(identity="c" * 32).job == source.job


def test_jobs_found_together_are_asked_in_turns_and_each_comes_round() -> None:
    place = "http://jobmanager:8081"
    cluster = sources.add_source(SourceKind.FLINK, place)
    jobs = [sources.add_source(SourceKind.FLINK_JOB, f"{place}/jobs/{at}", cluster) for at in range(10)]
    asked: list[int] = []
    for _ in range(4):
        turn = sources.due_in_turns(SourceKind.FLINK_JOB, not_since=tasks.JOB_EVERY, turns=4)
        assert len(turn) <= 3
        Source.objects.filter(pk__in=turn).update(polled_at=timezone.now())
        asked += turn
    assert sorted(asked) == sorted(job.pk for job in jobs)
    assert sources.due_in_turns(SourceKind.FLINK_JOB, not_since=tasks.JOB_EVERY, turns=4) == []


def test_a_new_cluster_is_due_at_once_and_again_after_its_interval() -> None:
    source = sources.add_source(SourceKind.FLINK, "http://127.0.0.1:9")
    assert sources.due(SourceKind.FLINK, not_since=tasks.CLUSTER_EVERY) == [source.pk]
    Source.objects.update(polled_at=timezone.now())
    assert sources.due(SourceKind.FLINK, not_since=tasks.CLUSTER_EVERY) == []
    Source.objects.update(polled_at=timezone.now() - timedelta(seconds=11))
    assert sources.due(SourceKind.FLINK, not_since=tasks.CLUSTER_EVERY) == [source.pk]
