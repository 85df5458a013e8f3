"""Single answers of Flink's REST API: what they mean, and what becomes of those that are not answers."""

from dataclasses import replace

import orjson
import pytest

from analytics.decode.flink_counters import (
    MAX_QUERY_CHARS,
    counter_queries,
    decode_listed_counters,
    decode_memory,
    decode_metric_list,
    decode_vertex,
    memory_queries,
    metric_queries,
    pending_record_names,
)
from analytics.decode.flink_rest import (
    decode_checkpoints,
    decode_job,
    decode_jobs_overview,
    decode_requirements,
    decode_rescales,
    decode_settings,
    load,
    refusal,
)
from analytics.decode.flink_samples import (
    checkpoint_records,
    operator_names,
    rescale_annotations,
    topology_samples,
)
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.model.topology import Edge, MemoryUse, Operator
from tests.support.flink import answer

SOURCE, SPLIT, COUNT, OUT = (
    "0c80f7e50ab54b30f6a2580946f9e942",
    "4c316878fdbd0126d4087d26baae01f4",
    "b71731f1c0df9c3076c4a455334d0ad6",
    "4d648856f35492026b8f75b0a6ec795e",
)


def codes(diagnostics: object) -> dict[str, int]:
    assert isinstance(diagnostics, tuple)
    return {item.code: item.count for item in diagnostics}


def test_a_job_has_operators_edges_and_a_scheduler() -> None:
    job, diagnostics = decode_job(answer("get_job"))
    assert diagnostics == ()
    assert (job.job_name, job.state, job.scheduler, job.max_parallelism) == (
        "over_provisioned", "RUNNING", "Adaptive", 128,
    )  # fmt: skip
    assert (job.started_at_ms, job.running_since_ms, job.at_ms) == (
        1795252477788, 1795252578363, 1795252868253,
    )  # fmt: skip
    assert [(item.name, item.parallelism) for item in job.operators] == [
        ("Source: events", 1), ("split", 3), ("count", 1), ("out: Writer", 1),
    ]  # fmt: skip
    assert job.operators[0] == Operator(SOURCE, "Source: events", 1, 128, "RUNNING", 1795252578364)
    assert Edge(SPLIT, COUNT, "HASH") in job.edges
    assert [item.id for item in job.sources()] == [SOURCE]
    assert [sample.value for sample in topology_samples(job, 1)] == [1, 3, 1, 1]


def test_a_page_of_jobs_lists_them_with_their_state() -> None:
    jobs, _ = decode_jobs_overview(answer("get_jobs_overview"))
    assert [(job.name, job.state, job.scheduler) for job in jobs] == [
        ("over_provisioned", "RUNNING", "Adaptive"),
        ("middle_only", "CANCELED", "Adaptive"),
    ]


def test_one_unknown_name_makes_the_aggregated_answer_empty_and_everything_unknown() -> None:
    assert decode_metric_list(answer("get_one_known_one_unknown")) == {}


def test_an_instance_that_does_not_exist_is_missing_and_the_others_are_there() -> None:
    assert decode_metric_list(answer("get_metrics_missing_subtask")) == {"0.busyTimeMsPerSecond": 670.0}


def test_nan_is_unknown() -> None:
    body = b'[{"id":"0.busyTime","value":"NaN"},{"id":"a","value":"7"},{"id":"b"},{"id":"c","value":"x"}]'
    assert decode_metric_list(body) == {"0.busyTime": None, "a": 7.0, "b": None, "c": None}
    job, _ = decode_job(answer("get_job"))
    listed = (
        b'[{"id":"0.accumulateBusyTimeMs","value":"NaN"},{"id":"0.accumulateIdleTimeMs","value":"5"},'
        b'{"id":"0.accumulateBackPressuredTimeMs","value":"5"},{"id":"0.numRecordsOut","value":"9"}]'
    )
    (counters,), _ = decode_listed_counters([listed], job.operators[0], job, 1)
    assert (counters.busy_ms, counters.clock_ms, counters.records_out) == (None, None, 9.0)


def test_the_page_of_a_vertex_tells_counters_and_attempt_of_each_instance() -> None:
    counters, diagnostics = decode_vertex(answer("get_vertex_detail"), 5)
    assert diagnostics == ()
    assert [(item.instance, item.attempt, item.records_in) for item in counters] == [
        (0, 1, 38612), (1, 1, 38612), (2, 1, 38609),
    ]  # fmt: skip
    assert counters[0].clock_ms == 95941 + 193553
    assert counters[0].attempt_age_ms == 1795252868134 - 1795252578364
    assert counters[0].operator_id == SPLIT
    assert counters[0].bytes_out == 2_895_806
    assert counters[0].bytes_out / 38_612 == pytest.approx(75, abs=0.1), "three records of 25 bytes for each"


def test_zeros_that_flink_has_not_counted_yet_are_unknown() -> None:
    page = orjson.loads(answer("get_vertex_detail"))
    metrics = page["subtasks"][1]["metrics"]
    metrics |= {key: 0 for key in metrics if not key.endswith("-complete")}
    metrics |= {f"{name}-complete": False for name in ("read-records", "write-records", "write-bytes")}
    _, young, _ = decode_vertex(orjson.dumps(page), 5)[0]
    assert (young.records_in, young.records_out, young.busy_ms, young.idle_ms) == (None, None, None, None)
    assert (young.clock_ms, young.bytes_out) == (None, None)


def test_counters_of_more_instances_than_there_are_now_are_left_out() -> None:
    job, _ = decode_job(answer("get_job"))
    body = orjson.dumps(
        [
            {"id": f"{instance}.numRecordsIn", "value": value}
            for instance, value in (
                ("0", "5"),
                ("1", "-5"),
                ("2", "1e300"),
                ("9", "5"),
                ("9" * 30, "5"),
                ("-1", "5"),
            )
        ]
    )
    counters, diagnostics = decode_listed_counters([body], job.operators[1], job, 1)
    assert [(item.instance, item.records_in) for item in counters] == [(0, 5.0)]
    assert codes(diagnostics) == {"beyond_parallelism": 2, "negative_counter": 1, "implausible_counter": 1}


def test_busy_time_just_below_zero_is_zero() -> None:
    job, _ = decode_job(answer("get_job"))
    body = (
        b'[{"id":"0.accumulateBusyTimeMs","value":"-3.0"},{"id":"0.accumulateIdleTimeMs","value":"9"},'
        b'{"id":"0.accumulateBackPressuredTimeMs","value":"1"}]'
    )
    (counters,), diagnostics = decode_listed_counters([body], job.operators[0], job, 1)
    assert (counters.busy_ms, counters.clock_ms, diagnostics) == (0.0, 10.0, ())


def test_questions_fit_into_a_request_line_and_name_every_counter_once() -> None:
    queries = list(counter_queries(400))
    assert max(map(len, queries)) <= MAX_QUERY_CHARS + len("get=")
    names = [name for query in queries for name in query.removeprefix("get=").split(",")]
    assert len(names) == len(set(names)) == 7 * 400
    listed = decode_metric_list(answer("get_metrics_list"))
    asked = {name for query in counter_queries(3) for name in query.removeprefix("get=").split(",")}
    assert asked <= set(listed), "Flink has them all"
    assert list(metric_queries([])) == []
    assert list(metric_queries(["0.a b&c"])) == ["get=0.a%20b%26c"]


# Figures of the recorded cluster's exporter; Flink says -1 where there is no limit.
def test_how_short_of_memory_the_cluster_is_comes_from_its_task_managers() -> None:
    gc = b'[{"id":"Status.JVM.GarbageCollector.All.TimeMsPerSecond","max":24.5}]'
    heap = (
        b'[{"id":"Status.JVM.Memory.Heap.Used","max":2.603238E8},'
        b'{"id":"Status.JVM.Memory.Heap.Max","max":1.254883328E9}]'
    )
    no_limit = (
        b'[{"id":"Status.JVM.Memory.Metaspace.Used","max":5.6E7},'
        b'{"id":"Status.JVM.Memory.Metaspace.Max","max":-1}]'
    )
    use = decode_memory([gc, heap, no_limit])
    assert use is not None
    assert (use.gc_ratio, use.metaspace_ratio) == (0.0245, None)
    assert use.heap_ratio == pytest.approx(0.20745, abs=1e-5)
    assert decode_memory([b"[]", heap, b"[]"]) == MemoryUse(None, use.heap_ratio, None)
    assert decode_memory([b"[]", b"[]", b"[]"]) is None
    assert [query.count(",") for query in memory_queries()] == [0, 1, 1]
    with pytest.raises(UnreadableFileError):
        decode_memory([b'{"errors":["Not found."]}'])


def test_waiting_records_are_found_by_the_end_of_the_name() -> None:
    names = ["1.Source__events.pendingRecords", "0.Source__events.pendingRecords", "0.numRecordsIn"]
    assert pending_record_names(names) == (
        "0.Source__events.pendingRecords",
        "1.Source__events.pendingRecords",
    )


def test_checkpoints_tell_when_they_ended_how_long_they_took_and_why_they_failed() -> None:
    checkpoints, diagnostics = decode_checkpoints(answer("get_checkpoints"))
    assert diagnostics == ()
    assert dict(checkpoints.counts) == {
        "completed": 78, "failed": 1, "in_progress": 0, "restored": 1, "total": 79,
    }  # fmt: skip
    newest = checkpoints.history[0]
    assert (newest.id, newest.duration_ms, newest.state_bytes) == (79, 22, 21989)
    samples, annotations = checkpoint_records(checkpoints)
    assert len(annotations) == len(checkpoints.history)
    assert [item.value for item in samples[:2]] == [22, 21989]
    assert annotations[0].label == "checkpoint 79 completed"


def test_a_failed_and_a_running_checkpoint() -> None:
    body = {
        "counts": {},
        "history": [
            {"id": 22, "status": "FAILED", "trigger_timestamp": 100, "latest_ack_timestamp": -1,
             "end_to_end_duration": 19, "failure_timestamp": 119, "failure_message": "declined", "state_size": 0},
            {"id": 23, "status": "IN_PROGRESS", "trigger_timestamp": 200, "latest_ack_timestamp": -1},
            {"id": "x"},
        ],
    }  # fmt: skip
    checkpoints, diagnostics = decode_checkpoints(orjson.dumps(body))
    failed, running = checkpoints.history
    assert (failed.ended_at_ms, failed.duration_ms, failed.state_bytes) == (119, 19, None)
    assert (running.ended_at_ms, running.duration_ms) == (None, None)
    assert codes(diagnostics) == {"missing_field": 1}
    samples, annotations = checkpoint_records(checkpoints)
    assert samples == []
    assert [item.label for item in annotations] == ["checkpoint 22 declined"]


def test_a_job_without_checkpoints_has_none() -> None:
    checkpoints, diagnostics = decode_checkpoints(answer("no_checkpoints"))
    assert (checkpoints.history, diagnostics) == ((), ())


def test_rescales_tell_what_changed_and_why() -> None:
    job, _ = decode_job(answer("get_job"))
    (rescale,), diagnostics = decode_rescales(answer("rescale_details"))
    assert diagnostics == ()
    assert (rescale.outcome, rescale.trigger) == ("COMPLETED", "UPDATE_REQUIREMENT")
    assert {name: (before, after) for name, before, after in rescale.changes}[SPLIT] == (1, 5)
    (annotation,) = rescale_annotations(job, [rescale])
    assert annotation.label == "update requirement completed: split 1 → 5, count 1 → 2"
    history, _ = decode_rescales(answer("get_rescales_history"))
    assert [item.trigger for item in history] == ["UPDATE_REQUIREMENT", "INITIAL_SCHEDULE"]
    assert rescale_annotations(job, [replace(history[0], ended_at_ms=None)]) == []


def test_requirements_are_whole_or_refused() -> None:
    assert decode_requirements(answer("get_requirements")) == {
        SOURCE: (1, 1), OUT: (1, 1), COUNT: (1, 1), SPLIT: (1, 3),
    }  # fmt: skip
    with pytest.raises(UnreadableFileError, match="has no lowerBound"):
        decode_requirements(b'{"a":{"parallelism":{"lowerBound":1}}}')
    with pytest.raises(UnreadableFileError, match="The DefaultScheduler does not support changing"):
        decode_requirements(answer("fixed_scheduler_requirements"))


def test_settings_are_read_by_key() -> None:
    assert decode_settings(b'[{"key":"metrics.fetcher.update-interval","value":"2000"},{"key":""},3]') == {
        "metrics.fetcher.update-interval": "2000"
    }


def test_a_refusal_is_one_line_without_stack_trace() -> None:
    assert refusal(answer("get_unknown_job")) == "Job ffffffffffffffffffffffffffffffff not found"
    assert refusal(answer("put_missing_vertex")) == (
        f"The request is incomplete, missing job vertex [{COUNT}] resource requirements."
    )
    assert refusal(b'{"errors":["Internal server error."]}') == "Flink refused without saying why"
    assert refusal(b'{"errors":[3, null]}') == "Flink refused without saying why"
    assert refusal(answer("get_job")) == ""
    assert refusal(b"<html>") == ""


@pytest.mark.parametrize(
    "decode",
    [decode_job, decode_jobs_overview, decode_checkpoints, decode_rescales, decode_requirements,
     decode_settings, decode_metric_list, lambda body: decode_vertex(body, 1)],
)  # fmt: skip
def test_what_is_no_answer_gives_one_clear_line(decode: object) -> None:
    assert callable(decode)
    for body in (
        b"",
        b"<html>502 Bad Gateway</html>",
        b"NaN",
        b"3",
        b'"x"',
        b"[" * 5_000,
        answer("get_unknown_job"),
    ):
        with pytest.raises(UnreadableFileError) as told:
            decode(body)
        assert str(told.value)
        assert "\n" not in str(told.value)


def test_an_answer_is_read_up_to_its_limits_only() -> None:
    with pytest.raises(TooLargeError, match="100 bytes"):
        load(b"[" + b" " * 100 + b"]", Limits(100, 10))
    many = orjson.dumps({"vertices": [{"id": str(at), "parallelism": 1} for at in range(200_001)]})
    with pytest.raises(TooLargeError, match="200,000 records"):
        decode_job(many)


def test_vertices_that_cannot_be_used_are_counted() -> None:
    page = orjson.loads(answer("get_job"))
    page["vertices"] += [page["vertices"][0], {"id": "x"}, {"parallelism": 0, "id": "y"}, 7]
    page["plan"]["nodes"].append({"id": "z", "inputs": [{"id": SOURCE}]})
    job, diagnostics = decode_job(orjson.dumps(page))
    assert len(job.operators) == 4
    assert codes(diagnostics) == {"duplicate_operator": 1, "missing_field": 2, "unknown_operator": 1}


def test_operators_of_one_name_are_told_apart() -> None:
    job, _ = decode_job(answer("get_job"))
    twins = replace(job, operators=(job.operators[0], replace(job.operators[1], name="Source: events")))
    assert operator_names(twins) == {
        SOURCE: "Source: events (0c80f7e5)",
        SPLIT: "Source: events (4c316878)",
    }
