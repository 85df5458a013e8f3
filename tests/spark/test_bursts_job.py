"""The Spark job says about every cluster what this process says, and the task stores it once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from analytics.bursts.fleet import ClusterAnswer, answer, together
from analytics.bursts.index import unpacked
from analytics.bursts.survey import survey as survey_of
from analytics.model import packed
from analytics.model.burst_answers import Survey as Answers
from analytics.model.bursts_json import burst_model
from analytics.model.plain import from_plain
from analytics.spark.clusters import PostgresClusters
from analytics.spark.jobs import bursts
from analytics.spark.session import create_session, warm_up
from tests.support import clusters
from tests.support import fleet as fleet_of_jobs
from tests.support.burst_models import worked_example
from webapp.accounts.models import User
from webapp.bursts import services, surveys
from webapp.bursts.models import HeadroomPoint, ModelVersion, Survey
from webapp.telemetry import segment_store
from workers import spark as spark_worker
from workers.tasks.bursts import survey

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

CLUSTERS = 30


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = create_session(tmp_path_factory.mktemp("spark"))
    warm_up(session)
    return session


def fleet() -> None:
    """Random clusters; one has no rates, so that nothing can be told about it."""
    boss = User.objects.create_superuser("boss")
    for seed in range(CLUSTERS):
        clusters.random_cluster(boss, seed, applications=2 + seed % 3)
    services.create_cluster(boss, "silent", clusters.worked_example())


def test_spark_answers_for_every_cluster_as_this_process_does_and_the_task_stores_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet()
    source, wanted = PostgresClusters(segment_store.address()), surveys.due(time.time_ns())
    assert len(wanted) == CLUSTERS + 1
    here = [answer(one) for one in source.read(wanted)]
    monkeypatch.setattr(bursts, "CLUSTERS_A_PARTITION", 7)
    found = bursts.run(spark, source, wanted)
    assert [_without_index(one) for one in found] == [_without_index(one) for one in here]
    for one, other in zip(found, here, strict=True):
        assert one.index_points == other.index_points
        if one.index:
            assert (unpacked(one.index).points == unpacked(other.index).points).all()
    assert [one.error for one in found if one.error] == ["the input rate of app1 is not known"]
    monkeypatch.setattr(spark_worker, "session", lambda: spark)
    survey()
    assert Survey.objects.filter(error="").count() == CLUSTERS
    assert HeadroomPoint.objects.count() == CLUSTERS
    assert not ModelVersion.objects.filter(index_points=None, surveys__isnull=False).exists()
    assert surveys.due(time.time_ns()) == []


def test_scenarios_and_pairs_of_a_large_cluster_are_spread_over_partitions_and_joined(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    boss = User.objects.create_superuser("boss")
    clusters.random_cluster(boss, 1, applications=10, nodes=6)
    clusters.random_cluster(boss, 2)
    services.create_cluster(boss, "silent", worked_example())
    source, wanted = PostgresClusters(segment_store.address()), surveys.due(time.time_ns())
    here = [answer(one) for one in source.read(wanted)]
    monkeypatch.setattr(bursts, "LARGE", 3)
    monkeypatch.setattr(bursts, "MOST_PARTS", 5)
    found = bursts.run(spark, source, wanted)
    assert [one.cluster_id for one in found] == [one.cluster_id for one in here]
    for one, other in zip(found, here, strict=True):
        assert (one.parts, one.error, one.index_points) == (1, other.error, other.index_points)
        assert one.ratio == pytest.approx(other.ratio, abs=1e-6)
        if not one.error:
            _say_the_same(answers_in(one), answers_in(other))
    assert len(answers_in(found[0]).maps) == 28, "of ten applications the eight with most load"
    assert surveys.keep(found).stored == 2


def test_all_parts_of_a_large_cluster_are_of_the_rates_of_when_it_was_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boss, now_ns = User.objects.create_superuser("boss"), time.time_ns()
    job = fleet_of_jobs.store(fleet_of_jobs.measured(3, now_ns - 2 * 10**9, operators=2, instances=2))
    document = worked_example()
    document["applications"][job.name] = document["applications"].pop("app2")
    clusters.cluster(boss, "measured and given", document, {"app1": 0.05}, now_ns)
    source, wanted = PostgresClusters(segment_store.address()), surveys.due(now_ns)
    monkeypatch.setattr(bursts, "LARGE", 4)
    (first,), (second,) = bursts._partitions(wanted, source)
    begun = list(bursts._answers(source, [first]))
    fleet_of_jobs.store(fleet_of_jobs.measured(4, now_ns - 10**9, operators=2, instances=2), job.name)
    late = list(bursts._answers(source, [second]))
    rates = answers_in(together([*begun, *late])).headroom.rates
    model = burst_model(document)[0]
    alone = survey_of(model, rates)
    _say_the_same(answers_in(together([*begun, *late])), alone)


def answers_in(one: ClusterAnswer) -> Answers:
    found: Answers = from_plain(Answers, packed.unpack(one.payload))
    return found


def _say_the_same(one: Answers, other: Answers) -> None:
    assert [loss.node for loss in one.losses] == [loss.node for loss in other.losses]
    for loss, known in zip(one.losses, other.losses, strict=True):
        assert loss.proportional == pytest.approx(known.proportional, abs=1e-6)
    assert [item.applications for item in one.maps] == [item.applications for item in other.maps]
    for mine, theirs in zip(one.maps, other.maps, strict=True):
        assert sorted(mine.vertices) == [
            pytest.approx(vertex, abs=1e-6) for vertex in sorted(theirs.vertices)
        ]


def _without_index(one: ClusterAnswer) -> ClusterAnswer:
    return replace(one, index=b"")
