"""Real logs of Spark 4.3; the troubled one's expectations were read from its lines by hand."""

import itertools
from pathlib import Path

from analytics.decode.batch import merge_batches
from analytics.decode.event_log_follower import Follower
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.trace import TraceBatch
from tests.support.spark_log import codes, messages, on

GOLDEN = Path(__file__).parents[1] / "golden" / "spark_event_log"
BASE_MS = 1_795_259_800_000


def read(name: str) -> tuple[TraceBatch, SparkEventLogDecoder]:
    decoder = SparkEventLogDecoder()
    return merge_batches([decoder.feed(Follower(GOLDEN / name).remaining()), decoder.finish()]), decoder


def test_the_troubled_cluster_log() -> None:
    batch, decoder = read("app-20261121111734-0000")
    assert (decoder.application.name, decoder.application.finished) == ("troubled", True)
    assert codes(batch) == {"executor_lost": 2, "executor_removed": 1, "task_failed": 1}
    lives = {worker.name: worker for worker in batch.workers}
    assert set(lives) == {"driver"} | {f"exec-{n}/core-{core}" for n in "01" for core in (0, 1)}
    assert lives["exec-1/core-0"].alive_from_ns == (BASE_MS + 63_147) * 10**6
    assert lives["exec-1/core-0"].alive_until_ns == (BASE_MS + 78_588) * 10**6
    # 26 attempts were shipped; the two on the killed executor never returned.
    assert len(messages(batch)) == 26 + 24


def test_the_troubled_logs_failed_task_and_its_second_attempt() -> None:
    # Task 12 on executor 0: launched 69410, finished 69999, ran 518 ms: delay 71, start 69410 + 23.43.
    # The two tasks before it on this core: 7 or 9, of which 9 ended its core last; see the log's lines 40 to 49.
    batch, _ = read("app-20261121111734-0000")
    every = [
        (kind, round(start - BASE_MS, 3), round(end - BASE_MS, 3))
        for core in ("exec-0/core-0", "exec-0/core-1", "exec-1/core-0", "exec-1/core-1")
        for kind, start, end in on(batch, core)
    ]
    assert ("processing", 69_433.43, 69_951.43) in every
    # Task 15, its second attempt: launched 70004, finished 70103, 2 + 57 + 20 ms: delay 20, start 70010.6.
    assert ("deserialization", 70_010.6, 70_012.6) in every
    assert ("processing", 70_012.6, 70_069.6) in every
    assert ("serialization", 70_069.6, 70_089.6) in every
    # Tasks 20 and 22 were lost with executor 1 at 78587 and 78580.
    assert ("unknown", 78_379.0, 78_587.0) in every
    assert ("unknown", 78_380.0, 78_580.0) in every


def test_the_troubled_logs_big_results_are_fetched_by_the_driver() -> None:
    # Status times 69185, 69186, 69197, 69214; results there at 69304, 69306, 69308 (two).
    batch, _ = read("app-20261121111734-0000")
    fetching = [
        (kind, start - BASE_MS, end - BASE_MS)
        for kind, start, end in on(batch, "driver")
        if 69_100 < start - BASE_MS < 69_310
    ]
    assert fetching[:6] == [
        ("waiting", 69_185, 69_186),
        ("waiting", 69_186, 69_197),
        ("waiting", 69_197, 69_214),
        ("buffer", 69_214, 69_304),
        ("buffer", 69_304, 69_306),
        ("buffer", 69_306, 69_308),
    ]


def test_the_rolling_streaming_log() -> None:
    batch, decoder = read("eventlog_v2_local-1795259882760")
    assert (decoder.application.name, decoder.application.finished) == ("ad-events", True)
    assert set(batch.operators) == {
        "MicroBatchScan → Project → EventTimeWatermark → Exchange [campaigns]",
        "Exchange → WholeStageCodegen → Exchange [campaigns]",
        "Exchange → StateStoreRestore → StateStoreSave [campaigns]",
    }
    assert codes(batch) == {"task_killed": 2}
    assert [note.label for note in batch.annotations][3:6] == [
        "batch 3 · 300 rows",
        "batch 4 · 300 rows",
        "batch 5 · 300 rows",
    ]
    assert {worker.name for worker in batch.workers} == {"driver", "local/core-0", "local/core-1"}


def test_no_worker_does_two_things_at_once() -> None:
    for name in ("app-20261121111734-0000", "eventlog_v2_local-1795259882760"):
        batch, _ = read(name)
        for worker in batch.workers:
            own = on(batch, worker.name)
            assert all(before[2] <= after[1] for before, after in itertools.pairwise(own))


def test_no_message_arrives_before_it_was_sent() -> None:
    for name in ("app-20261121111734-0000", "eventlog_v2_local-1795259882760"):
        assert all(sent <= received for _, _, sent, received in messages(read(name)[0]))
