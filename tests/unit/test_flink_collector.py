"""Asking a cluster: the same counters as the decoders read from the recorded answers, and clear failures."""

from __future__ import annotations

import pytest

from tests.support.flink import polls, series
from tests.support.flink_server import replaying
from workers.collectors.flink import FlinkCluster, FlinkError

RUN = "two_stage_ds2_series_before"


def test_a_poll_reads_what_the_recorded_job_said() -> None:
    recorded, expected = series(RUN), polls(RUN)
    with replaying(recorded) as (address, replay):
        cluster = FlinkCluster(address + "/")
        (job,), _ = cluster.jobs()
        for replay.at in (0, len(recorded) - 1):
            asked = cluster.poll(job.id, expected[replay.at].at_ns)
            assert asked.poll == expected[replay.at]
        assert job.name == "bottleneck"
        assert cluster.checkpoints(job.id) is None
        assert cluster.rescales(job.id) == ()
        cluster.close()


def test_a_source_that_says_what_waits_is_read_and_one_that_says_it_for_some_instances_is_unknown() -> None:
    recorded = series(RUN)[:1]
    responses = recorded[0]["responses"]
    page = next(path for path in responses if path.count("/") == 2)
    source = polls(RUN)[0].topology.sources()[0]
    path = next(path for path in responses if f"/{source.id}/metrics?" in path)
    responses[path].append({"id": "0.Source__events.pendingRecords", "value": "1200"})
    with replaying(recorded) as (address, _):
        cluster = FlinkCluster(address)
        asked = cluster.poll(page.rsplit("/", 1)[1], 0).poll
        told = asked.lags
        cluster.close()
    assert source.parallelism == 1
    assert told == ((source.id, 1200.0),)


def test_no_cluster_a_refusal_and_an_answer_of_something_else_are_one_line_each() -> None:
    with replaying(series(RUN)[:1]) as (address, replay):
        cluster = FlinkCluster(address)
        replay.failing = True
        with pytest.raises(FlinkError, match=r"answered with 503: .*leader election") as refused:
            cluster.jobs()
        assert refused.value.status == 503
        replay.failing = False
        with pytest.raises(FlinkError, match="404"):
            cluster.poll("0" * 32, 0)
        cluster.close()
    gone = FlinkCluster(address)
    with pytest.raises(FlinkError, match="cannot be reached") as unreachable:
        gone.jobs()
    assert "\n" not in str(unreachable.value)
    gone.close()
