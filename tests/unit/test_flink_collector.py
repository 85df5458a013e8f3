"""Asking a cluster: the same counters as the decoders read from the recorded answers, and clear failures."""

from __future__ import annotations

import pytest

from analytics.decode.flink_windows import instance_windows
from analytics.model.topology import MemoryUse
from tests.support.flink import polls, series
from tests.support.flink_server import replaying
from workers.collectors.flink import FlinkCluster, FlinkError

RUN = "two_stage_ds2_series_before"
SECOND_NS = 1_000_000_000


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


def test_memory_is_asked_for_once_for_all_jobs_and_a_cluster_that_does_not_tell_is_no_failure() -> None:
    recorded = series(RUN)[:1]
    path = "/taskmanagers/metrics"
    said = [
        {"id": "Status.JVM.Memory.Heap.Used", "max": 3e8},
        {"id": "Status.JVM.Memory.Heap.Max", "max": 4e8},
    ]
    with replaying(recorded) as (address, replay):
        cluster = FlinkCluster(address)
        assert cluster.memory(SECOND_NS * 100) is None
        recorded[0]["responses"][f"{path}?get=everything"] = said
        assert cluster.memory(SECOND_NS * 104) is None, "not asked again yet"
        asked = len(replay.asked)
        assert cluster.memory(SECOND_NS * 105) == MemoryUse(None, 0.75, None)
        assert [url.partition("?")[0] for url in replay.asked[asked:]] == [path] * 3
        (job,), _ = cluster.jobs()
        assert cluster.poll(job.id, SECOND_NS * 106).poll.memory == MemoryUse(None, 0.75, None)
        assert sum(path in url for url in replay.asked[asked:]) == 3
        cluster.close()


def test_what_waits_in_front_of_each_instance_is_read_and_averaged() -> None:
    recorded = series(RUN)
    name = "0.Shuffle.Netty.Input.Buffers.inputQueueLength"
    split = polls(RUN)[0].topology.operators[1]
    for number, line in enumerate(recorded):
        path = next(path for path in line["responses"] if f"/{split.id}/metrics?" in path)
        line["responses"][path].append({"id": name, "value": str(10 + number % 2)})
    with replaying(recorded) as (address, replay):
        cluster = FlinkCluster(address)
        (job,), _ = cluster.jobs()
        found = []
        for replay.at, expected in enumerate(polls(RUN)):
            found.append(cluster.poll(job.id, expected.at_ns).poll)
        cluster.close()
    windows, _ = instance_windows(found)
    queued = {window.operator_id: window.queued for window in windows}
    assert queued[split.id] == pytest.approx(10.5, abs=0.1)
    assert queued[found[0].topology.operators[2].id] is None


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
