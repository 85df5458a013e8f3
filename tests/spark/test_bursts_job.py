"""The Spark job says about every cluster what this process says, and the task stores it once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from analytics.bursts.fleet import ClusterAnswer, answer
from analytics.bursts.index import unpacked
from analytics.spark.clusters import PostgresClusters
from analytics.spark.jobs import bursts
from analytics.spark.session import create_session, warm_up
from tests.support import clusters
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


def _without_index(one: ClusterAnswer) -> ClusterAnswer:
    return replace(one, index=b"")
