"""Spark event log lines as Spark 4.3 writes them, with only the fields that matter to a test."""

from typing import Any

import orjson

from analytics.decode.batch import merge_batches
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, TraceBatch

Row = tuple[str, str, str | None, str | None, int, int]
"""Type, worker, peer, operator, start and end (ns)."""

MS = 1_000_000


def line(event: dict[str, Any]) -> bytes:
    return orjson.dumps(event)


def application_start(at: int = 1) -> bytes:
    return line(
        {"Event": "SparkListenerApplicationStart", "App Name": "app", "App ID": "app-1", "Timestamp": at}
    )


def application_end(at: int) -> bytes:
    return line({"Event": "SparkListenerApplicationEnd", "Timestamp": at})


def executor_added(executor: str = "1", cores: int = 1, at: int = 1) -> bytes:
    info = {"Host": "h", "Total Cores": cores}
    event = {"Event": "SparkListenerExecutorAdded", "Timestamp": at, "Executor ID": executor}
    return line(event | {"Executor Info": info})


def executor_removed(executor: str, at: int, reason: str = "gone") -> bytes:
    event = {"Event": "SparkListenerExecutorRemoved", "Timestamp": at, "Executor ID": executor}
    return line(event | {"Removed Reason": reason})


def stage(number: int, *scopes: str, query: str = "", batch: int = 0, name: str = "") -> bytes:
    rdds = [
        {"RDD ID": i, "Scope": orjson.dumps({"id": str(i), "name": scope}).decode()}
        for i, scope in enumerate(scopes)
    ]
    properties = {"sql.streaming.queryId": query, "streaming.sql.batchId": str(batch)} if query else {}
    info = {"Stage ID": number, "Stage Name": name, "RDD Info": rdds}
    return line({"Event": "SparkListenerStageSubmitted", "Stage Info": info, "Properties": properties})


def task_info(task: int, executor: str, launch: int, finish: int = 0, getting: int = 0) -> dict[str, Any]:
    return {
        "Task ID": task,
        "Executor ID": executor,
        "Launch Time": launch,
        "Getting Result Time": getting,
        "Finish Time": finish,
        "Speculative": False,
        "Killed": False,
    }


def task_start(task: int, launch: int, executor: str = "1", stage_id: int = 0) -> bytes:
    info = task_info(task, executor, launch)
    return line({"Event": "SparkListenerTaskStart", "Stage ID": stage_id, "Task Info": info})


def getting_result(task: int, launch: int, getting: int, executor: str = "1") -> bytes:
    info = task_info(task, executor, launch, getting=getting)
    return line({"Event": "SparkListenerTaskGettingResult", "Task Info": info})


def metrics(deserialize: int, run: int, serialize: int, fetch: int = 0, write_ns: int = 0) -> dict[str, Any]:
    return {
        "Executor Deserialize Time": deserialize,
        "Executor Run Time": run,
        "Result Serialization Time": serialize,
        "Shuffle Read Metrics": {"Fetch Wait Time": fetch},
        "Shuffle Write Metrics": {"Shuffle Write Time": write_ns},
    }


def task_end(
    task: int,
    launch: int,
    finish: int,
    times: dict[str, Any] | None = None,
    *,
    executor: str = "1",
    stage_id: int = 0,
    getting: int = 0,
    reason: str = "Success",
    **info: Any,
) -> bytes:
    event: dict[str, Any] = {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage_id,
        "Task End Reason": {"Reason": reason},
        "Task Info": task_info(task, executor, launch, finish, getting) | info,
    }
    return line(event | ({"Task Metrics": times} if times is not None else {}))


def decode(*lines: bytes) -> TraceBatch:
    """A whole log."""
    decoder = SparkEventLogDecoder()
    return merge_batches([decoder.feed(lines), decoder.finish()])


def rows(batch: TraceBatch) -> list[Row]:
    """The records by name, in the order the decoder gave them."""
    found = batch.records
    return [
        (
            ActivityType(found.type[i]).label,
            batch.workers[found.worker[i]].name,
            None if found.peer[i] == NONE else batch.workers[found.peer[i]].name,
            None if found.operator[i] == NONE else batch.operators[found.operator[i]],
            int(found.start_ns[i]),
            int(found.end_ns[i]),
        )
        for i in range(len(found))
    ]


def in_ms(time_ns: int) -> float:
    """To ten nanoseconds: a task that leaves its messages no time gives them one nanosecond each."""
    return round(time_ns / MS, 5)


def on(batch: TraceBatch, worker: str) -> list[tuple[str, float, float]]:
    """What this worker did itself, in time order, in ms."""
    own = [row for row in rows(batch) if row[1] == worker and row[2] is None]
    return sorted(((row[0], in_ms(row[4]), in_ms(row[5])) for row in own), key=lambda row: row[1:])


def messages(batch: TraceBatch) -> list[tuple[str, str, float, float]]:
    """All messages in time order, in ms."""
    found = [(row[1], row[2], in_ms(row[4]), in_ms(row[5])) for row in rows(batch) if row[2] is not None]
    return sorted(found, key=lambda row: row[2:])


def codes(batch: TraceBatch) -> dict[str, int]:
    """Diagnostics by code."""
    return {item.code: item.count for item in batch.diagnostics}
