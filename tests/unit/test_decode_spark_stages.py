"""Stage names and streaming progress from Spark's event log."""

from analytics.model.metrics import Annotation, MetricSample
from tests.support.spark_log import (
    MS,
    codes,
    decode,
    executor_added,
    line,
    metrics,
    stage,
    task_end,
    task_start,
)


def names(*stages: bytes) -> list[str]:
    """The operators of one task in each of these stages, which are numbered from 0."""
    log = [executor_added()]
    for number, submitted in enumerate(stages):
        at = 1000 + number * 100
        log += [submitted, task_start(number, at, stage_id=number)]
        log.append(task_end(number, at, at + 10, metrics(0, 10, 0), stage_id=number))
    return list(decode(*log).operators)


def test_a_stage_has_one_name_in_every_micro_batch() -> None:
    def batch(number: int, first_stage: int) -> list[bytes]:
        scan = ("MicroBatchScan", "WholeStageCodegen (2)", f"Exchange ({number})")
        save = ("Exchange", "StateStoreRestore", "WholeStageCodegen (4)", "StateStoreSave")
        return [
            stage(first_stage, *scan, query="q", batch=number),
            stage(first_stage + 1, *save, query="q", batch=number),
        ]

    assert names(*batch(0, 0), *batch(1, 2), *batch(2, 4)) == [
        "MicroBatchScan → Exchange",
        "Exchange → StateStoreRestore → StateStoreSave",
    ]


def test_two_stages_of_one_batch_with_the_same_scopes_are_told_apart() -> None:
    assert names(
        stage(0, "Scan", query="q"), stage(1, "Scan", query="q"), stage(2, "Scan", query="q", batch=1)
    ) == [
        "Scan",
        "Scan #2",
    ]


def test_a_named_query_names_its_stages() -> None:
    started = line(
        {
            "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent",
            "id": "q",
            "name": "ads",
        }
    )
    log = [started, executor_added(), stage(0, "Scan", query="q"), task_start(0, 1000)]
    assert decode(*log, task_end(0, 1000, 1010, metrics(0, 10, 0))).operators == ("Scan [ads]",)


def test_plumbing_is_named_only_where_it_is_all_there_is() -> None:
    assert names(stage(0, "Exchange", "WholeStageCodegen (1)", "Exchange", query="q")) == [
        "Exchange → WholeStageCodegen → Exchange"
    ]
    assert names(stage(0, "WholeStageCodegen (1)", query="q")) == ["WholeStageCodegen"]
    assert names(stage(0, *"abcdefgh", query="q")) == ["a → b → c → d → … → h"]


def test_outside_of_streaming_the_call_site_tells_stages_apart() -> None:
    assert names(
        stage(0, "parallelize", name="count at /home/x/report.py:12"), stage(1, name="save at X.scala:3")
    ) == [
        "parallelize · count at report.py:12",
        "save at X.scala:3 · save at X.scala:3",
    ]
    assert names(stage(0, "Scan parquet", name="start at NativeMethodAccessorImpl.java:0")) == [
        "Scan parquet"
    ]


def test_a_stage_that_was_never_announced_goes_by_its_number() -> None:
    log = [executor_added(), task_start(0, 1000, stage_id=12)]
    assert decode(*log, task_end(0, 1000, 1010, metrics(0, 10, 0), stage_id=12)).operators == ("stage 12",)


PROGRESS = {
    "id": "0-0",
    "name": "ads",
    "timestamp": "1970-01-01T00:00:10.000Z",
    "batchId": 12,
    "batchDuration": 400,
    "durationMs": {"addBatch": 300, "walCommit": 40},
    "eventTime": {"watermark": "1970-01-01T00:00:04.000Z"},
    "stateOperators": [{"operatorName": "stateStoreSave", "numRowsTotal": 5, "memoryUsedBytes": 9000}],
    "sources": [
        {"numInputRows": 1000, "inputRowsPerSecond": 100.0, "processedRowsPerSecond": "NaN"},
        {"numInputRows": 500, "inputRowsPerSecond": 50.5},
    ],
    "sink": {"numOutputRows": -1},
}


def progress(**changes: object) -> bytes:
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"
    return line({"Event": name, "progress": PROGRESS | changes})


def test_progress_becomes_metrics_at_the_batch_end_and_an_annotation() -> None:
    batch = decode(progress())
    query = ("query", "ads")
    end_ns = 10_400 * MS
    assert batch.annotations == (
        Annotation("micro_batch", "ads/12", "batch 12 · 1,500 rows", 10_000 * MS, end_ns),
    )
    assert set(batch.metrics) == {
        MetricSample("input_rows", (query,), end_ns, 1500),
        MetricSample("input_rows_per_s", (query,), end_ns, 150.5),
        MetricSample("watermark_lag_ms", (query,), end_ns, 6000),
        MetricSample("batch_duration_ms", (query,), end_ns, 400),
        MetricSample("batch_phase_ms", (("phase", "addBatch"), query), end_ns, 300),
        MetricSample("batch_phase_ms", (("phase", "walCommit"), query), end_ns, 40),
        MetricSample("state_rows", (("operator", "stateStoreSave"), query), end_ns, 5),
        MetricSample("state_memory_bytes", (("operator", "stateStoreSave"), query), end_ns, 9000),
    }
    assert batch.diagnostics == ()


def test_progress_without_a_time_a_query_or_a_number_is_reported() -> None:
    batch = decode(progress(timestamp="noon"), progress(id=None, name=None), progress(batchId="x"))
    assert batch.metrics == batch.annotations == ()
    assert codes(batch) == {"unreadable_progress": 3}


def test_a_batch_before_the_first_row_has_no_watermark_lag() -> None:
    batch = decode(progress(eventTime={"watermark": "1970-01-01T00:00:00.000Z"}))
    assert "watermark_lag_ms" not in {sample.name for sample in batch.metrics}
