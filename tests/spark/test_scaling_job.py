"""The Spark job says about every job what the policies say in this process, and the task stores it once."""

from __future__ import annotations

import random
import time

import orjson
import pytest
from pyspark.sql import SparkSession

from analytics.model import packed
from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import Observation
from analytics.scaling.evidence import act, gather, recompute, to_json
from analytics.scaling.policies import POLICIES
from analytics.scaling.rates import source_targets
from analytics.scaling.settings import settings_of
from analytics.spark.jobs import scaling
from analytics.spark.rates import PostgresRates
from analytics.spark.session import create_session, warm_up
from tests.support import fleet
from webapp.analysis import recommendations
from webapp.analysis.models import Recommendation, ScalingSetup
from webapp.jobs.reports import Measured
from webapp.telemetry import segment_store
from workers import spark as spark_worker
from workers.tasks.recommend import recommend

pytestmark = [pytest.mark.spark, pytest.mark.django_db(transaction=True)]

JOBS = 300
SETTINGS = {
    "ds2": {"ds2": {"scaling_factor": 0.2, "target_rate_ratio": 1.1}, "ignore_changes_up_to": 1},
    "flink-autoscaler": {"metrics_window_s": 20.0, "stabilization_s": 0.0, "scale_down_interval_s": 0.0},
    "dhalion": {"settings": {"scale_down_ratio": 0.9}},
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    session = create_session(tmp_path_factory.mktemp("spark"))
    warm_up(session)
    return session


def fleet_of(count: int, end_ns: int) -> dict[int, tuple[Measured, ScalingSetup | None]]:
    """Odd and even jobs; two of three have a setup, with or without settings, targets and a memory."""
    draw = random.Random(5)
    found: dict[int, tuple[Measured, ScalingSetup | None]] = {}
    for seed in range(count):
        end = end_ns - draw.randint(0, 10**9)
        seen = fleet.odd(seed, end) if seed % 2 else fleet.measured(seed, end, operators=4)
        job, setup = fleet.store(seen), None
        if seed % 3:
            policy = draw.choice(list(POLICIES))
            setup = ScalingSetup(job=job, policy=policy, revision=draw.randint(0, 5))
            setup.settings = SETTINGS[policy] if draw.random() < 0.7 else {}
            setup.targets_per_s = draw.choice(({}, {"operator-0": draw.uniform(1, 1e4)}, {"operator-0": 500}))
            setup.save()
        found[job.pk] = seen, setup
    return found


def test_spark_says_what_this_process_says_however_jobs_are_grouped(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_ns = time.time_ns()
    jobs = fleet_of(JOBS, now_ns)
    wanted = recommendations.due(now_ns)
    assert [job_id for job_id, _ in wanted] == sorted(jobs)
    rates = PostgresRates(segment_store.address())
    advised = scaling.run(spark, rates, wanted)
    monkeypatch.setattr(scaling, "JOBS_A_PARTITION", 37)
    assert scaling.run(spark, rates, wanted) == advised
    assert [item.job_id for item in advised] == sorted(jobs)
    moves = set()
    for item in advised:
        seen, setup = jobs[item.job_id]
        policy = setup.policy if setup else "ds2"
        configured = {name: float(rate) for name, rate in setup.targets_per_s.items()} if setup else {}
        targets = source_targets(seen.topology, seen.window, configured)
        given = settings_of(policy, setup.settings if setup else {})
        evidence = gather(policy, Observation(seen.topology, seen.window, targets), given)
        action, _ = act(evidence)
        stored = packed.unpack(item.payload)
        assert item.error == ""
        assert item.revision == (setup.revision if setup else 0)
        assert orjson.dumps(stored["action"]) == orjson.dumps(to_plain(action))
        assert stored["evidence"] == to_json(evidence)
        assert from_plain(Observation, stored["evidence"]["seen"]).topology == seen.topology
        assert orjson.dumps(recompute(stored["evidence"])) == orjson.dumps(stored["action"])
        moves.add((policy, item.move))
    assert {"ds2", "flink-autoscaler", "dhalion"} == {policy for policy, _ in moves}
    assert {"rescale", "keep", "wait"} <= {move for _, move in moves}


def test_the_task_stores_what_is_said_about_all_jobs_and_is_done_until_there_are_new_rates(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_worker, "session", lambda: spark)
    jobs = fleet_of(20, time.time_ns())
    recommend()
    assert set(Recommendation.objects.values_list("job_id", flat=True)) == set(jobs)
    before = list(Recommendation.objects.order_by("pk").values_list("pk", "confirmed_at"))
    recommend()
    assert list(Recommendation.objects.order_by("pk").values_list("pk", "confirmed_at")) == before
    fleet_of(20, time.time_ns())
    recommend()
    assert Recommendation.objects.filter(superseded_at=None).count() == 20
    assert all(row[1] is not None for row in ScalingSetup.objects.values_list("memory", "seen_ns"))
