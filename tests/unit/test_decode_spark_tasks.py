"""Spark tasks as activities: expectations derived by hand from the mapping."""

import pytest

from analytics.critical_path import analyse, default_lifetimes
from analytics.model.results import Windows, WindowStatus
from analytics.model.trace import Worker
from tests.support.spark_log import (
    MS,
    application_end,
    application_start,
    codes,
    decode,
    executor_added,
    executor_removed,
    getting_result,
    line,
    messages,
    metrics,
    on,
    rows,
    stage,
    task_end,
    task_start,
)

CORE = "exec-1/core-0"


def test_a_task_becomes_ship_deserialize_fetch_process_write_serialize_return() -> None:
    # 100 ms between launch and finish, 10 + 60 + 5 of it work: a delay of 25, 0.33 × 25 = 8.25 before the start.
    batch = decode(
        application_start(),
        executor_added(),
        stage(0, "MicroBatchScan", "Exchange"),
        task_start(7, 1000),
        task_end(7, 1000, 1100, metrics(10, 60, 5, fetch=7, write_ns=2_500_001)),
    )
    operator = "MicroBatchScan → Exchange"
    start = 1_008_250_000
    wanted = [
        ("control_message", "driver", CORE, operator, 1000 * MS, start),
        ("deserialization", CORE, None, operator, start, start + 10 * MS),
        ("buffer", CORE, None, operator, start + 10 * MS, start + 17 * MS),
        ("processing", CORE, None, operator, start + 17 * MS, start + 70 * MS - 2_500_001),
        ("buffer", CORE, None, operator, start + 70 * MS - 2_500_001, start + 70 * MS),
        ("serialization", CORE, None, operator, start + 70 * MS, start + 75 * MS),
        ("control_message", CORE, "driver", operator, start + 75 * MS, 1100 * MS),
        ("waiting", "driver", None, operator, 1000 * MS, 1100 * MS),
    ]
    assert rows(batch) == wanted
    assert batch.diagnostics == ()


def test_no_message_is_instant_so_that_a_window_never_has_a_circle_of_them() -> None:
    # Each task fills its stay to the millisecond, and the second is launched in the one of the first's return;
    # the third came and went within one millisecond, too short to tell anything.
    batch = decode(
        application_start(),
        executor_added(),
        task_start(1, 1000),
        task_end(1, 1000, 1100, metrics(0, 100, 0)),
        task_start(2, 1100),
        task_end(2, 1100, 1200, metrics(0, 100, 0)),
        task_start(3, 1200),
        task_end(3, 1200, 1200, metrics(0, 0, 0)),
    )
    spans = [(row[4], row[5]) for row in rows(batch) if row[0] == "control_message"]
    starts = [(1000 * MS, 1000 * MS + 1), (1100 * MS - 1, 1100 * MS), (1100 * MS, 1100 * MS + 1)]
    assert spans == [*starts, (1200 * MS - 1, 1200 * MS)]
    assert codes(batch) == {"instant_task": 1}
    found, _ = analyse(batch.records, *default_lifetimes(batch.records, 2), Windows(500 * MS, 2, 1))
    assert found[0].status == WindowStatus.OK
    assert found[0].cp_total == pytest.approx(1, abs=1e-12)


def test_a_big_result_is_fetched_after_the_status_came_back() -> None:
    # Returned at 1060: the delay is 60 - 30 = 30, so 9.9 before the start. The driver then fetches until 1100.
    batch = decode(
        application_start(),
        executor_added(),
        task_start(1, 1000),
        getting_result(1, 1000, 1060),
        task_end(1, 1000, 1100, metrics(0, 30, 0), getting=1060),
    )
    assert on(batch, CORE) == [("processing", 1009.9, 1039.9)]
    assert messages(batch) == [("driver", CORE, 1000, 1009.9), (CORE, "driver", 1039.9, 1060)]
    assert on(batch, "driver") == [("waiting", 1000, 1060), ("buffer", 1060, 1100)]


def test_the_driver_schedules_before_a_launch_and_waits_before_a_return() -> None:
    batch = decode(
        application_start(),
        executor_added(cores=2),
        task_start(1, 1000),
        task_start(2, 1010),
        task_end(1, 1000, 1030, metrics(0, 20, 0)),
        task_end(2, 1010, 1050, metrics(0, 20, 0)),
        task_start(3, 1080),
        task_end(3, 1080, 1090, metrics(0, 10, 0)),
    )
    assert on(batch, "driver") == [
        ("scheduling", 1000, 1010),
        ("waiting", 1010, 1030),
        ("waiting", 1030, 1050),
        ("scheduling", 1050, 1080),
        ("waiting", 1080, 1090),
    ]


def test_driver_stamps_out_of_order_by_less_than_a_second_are_put_in_order() -> None:
    shuffled = decode(
        executor_added(cores=2),
        task_start(2, 1500),
        task_start(1, 1000),
        task_end(2, 1500, 1600, metrics(0, 10, 0)),
        task_end(1, 1000, 1550, metrics(0, 10, 0)),
    )
    assert on(shuffled, "driver") == [
        ("scheduling", 1000, 1500),
        ("waiting", 1500, 1550),
        ("waiting", 1550, 1600),
    ]
    late = decode(executor_added(cores=2), task_start(2, 2500), task_start(1, 1000), task_start(3, 2600))
    assert codes(late)["late_driver_stamp"] == 1
    assert on(late, "driver") == [("scheduling", 2500, 2600)]


def test_tasks_go_to_the_core_that_was_used_last() -> None:
    batch = decode(
        executor_added(cores=3),
        task_start(1, 1000),
        task_start(2, 1000),
        task_end(1, 1000, 1100, metrics(0, 100, 0)),
        task_start(3, 1200),
        task_end(2, 1000, 1300, metrics(0, 300, 0)),
        task_end(3, 1200, 1300, metrics(0, 100, 0)),
    )
    assert on(batch, CORE) == [("processing", 1000, 1100), ("processing", 1200, 1300)]
    assert on(batch, "exec-1/core-1") == [("processing", 1000, 1300)]
    assert [worker.name for worker in batch.workers] == [CORE, "exec-1/core-1", "exec-1/core-2", "driver"]


def test_a_task_launched_before_its_core_was_logged_free_comes_after_the_old_one() -> None:
    # Task 1's delay is 20; by the rule it would run from 1006.6 to 1086.6. But its core was launched on again
    # at 1085, so it had ended then. Task 2 starts at 1085 + 0.33 × 15.
    batch = decode(
        executor_added(),
        task_start(1, 1000),
        task_start(2, 1085),
        task_end(1, 1000, 1100, metrics(0, 80, 0)),
        task_end(2, 1085, 1200, metrics(0, 100, 0)),
    )
    assert on(batch, CORE) == [("processing", 1005, 1085), ("processing", 1089.95, 1189.95)]
    assert batch.diagnostics == ()


def test_a_task_that_ends_while_it_is_in_line_is_placed_when_its_core_is_free() -> None:
    # Task 1's big result is fetched for long, so its end is logged after that of task 2, which followed it.
    batch = decode(
        executor_added(),
        task_start(1, 1000),
        task_start(2, 1100),
        task_end(2, 1100, 1200, metrics(0, 100, 0)),
        task_end(1, 1000, 1500, metrics(0, 90, 0), getting=1090),
        task_start(3, 1600),
        task_end(3, 1600, 1700, metrics(0, 100, 0)),
    )
    assert on(batch, CORE) == [
        ("processing", 1000, 1090),
        ("processing", 1100, 1200),
        ("processing", 1600, 1700),
    ]
    assert batch.diagnostics == ()


def test_tasks_that_overlap_on_one_core_are_trimmed_or_left_out_and_counted() -> None:
    batch = decode(
        executor_added(),
        task_start(1, 1000),
        task_start(2, 1010),
        task_start(3, 1020),
        task_end(1, 1000, 1100, metrics(0, 100, 0)),
        task_end(2, 1010, 1150, metrics(0, 140, 0)),
        task_end(3, 1020, 1120, metrics(0, 100, 0)),
    )
    assert on(batch, CORE) == [("processing", 1000, 1100), ("processing", 1100, 1150)]
    assert codes(batch) == {"overlapping_tasks": 1, "more_tasks_than_cores": 1}


def test_a_core_whose_task_end_was_lost_is_used_again() -> None:
    log = [executor_added(), task_start(1, 1000)]
    for number in range(2, 8):
        at = 1000 + 4_000 * number
        log += [task_start(number, at), task_end(number, at, at + 100, metrics(0, 100, 0))]
    batch = decode(*log)
    assert codes(batch) == {"task_end_missing": 1}
    assert on(batch, CORE) == [("processing", 1000 + 4e3 * n, 1100 + 4e3 * n) for n in range(2, 8)]


def test_a_failed_attempt_held_its_core_as_far_as_it_was_measured() -> None:
    batch = decode(
        executor_added(),
        task_start(1, 1000),
        task_end(1, 1000, 1100, metrics(0, 100, 0), reason="ExceptionFailure"),
        task_start(2, 1200),
        task_end(2, 1200, 1300, reason="FetchFailed"),
    )
    assert on(batch, CORE) == [("processing", 1000, 1100), ("unknown", 1200, 1300)]
    assert len(messages(batch)) == 4
    assert codes(batch) == {"task_failed": 2}


def test_killed_and_speculative_attempts_are_counted_and_shown() -> None:
    batch = decode(
        executor_added(cores=2),
        task_start(1, 1000),
        task_start(2, 1400),
        task_end(2, 1400, 1500, metrics(0, 100, 0), Speculative=True),
        task_end(1, 1000, 1510, metrics(0, 500, 0), reason="TaskKilled", Killed=True),
    )
    assert codes(batch) == {"speculative_attempt": 1, "task_killed": 1}
    assert on(batch, "exec-1/core-1") == [("processing", 1400, 1500)]
    assert on(batch, CORE)[0][0] == "processing"


@pytest.mark.parametrize("removed_first", [True, False])
def test_a_lost_executor_ends_its_cores_and_sends_nothing_back(removed_first: bool) -> None:
    removal = executor_removed("1", 1050)
    loss = task_end(1, 1000, 1080 if removed_first else 1045, reason="ExecutorLostFailure")
    batch = decode(
        application_start(),
        executor_added(),
        executor_added("2"),
        task_start(1, 1000),
        *([removal, loss] if removed_first else [loss, removal]),
        task_start(2, 1090, "2"),
        task_end(2, 1090, 1190, metrics(0, 100, 0), executor="2"),
        application_end(1200),
    )
    assert on(batch, CORE) == [("unknown", 1000, 1050 if removed_first else 1045)]
    assert [message[:2] for message in messages(batch)] == [
        ("driver", CORE),
        ("driver", "exec-2/core-0"),
        ("exec-2/core-0", "driver"),
    ]
    assert on(batch, "driver") == [("scheduling", 1000, 1090), ("waiting", 1090, 1190)]
    lives = {worker.name: worker for worker in batch.workers}
    assert lives[CORE] == Worker(CORE, "h", 1 * MS, 1050 * MS)
    assert lives["exec-2/core-0"].alive_until_ns == lives["driver"].alive_until_ns == 1200 * MS
    assert codes(batch) == {"executor_lost": 1, "executor_removed": 1}


def test_work_that_exceeds_the_stay_is_cut_and_counted() -> None:
    batch = decode(executor_added(), task_start(1, 1000), task_end(1, 1000, 1050, metrics(10, 45, 5)))
    assert on(batch, CORE) == [("deserialization", 1000, 1010), ("processing", 1010, 1050)]
    assert codes(batch) == {"task_longer_than_its_stay": 1}


def test_negative_missing_and_odd_fields_are_counted_and_taken_as_nothing() -> None:
    times = metrics(-5, 50, 5) | {"Result Serialization Time": "soon"}
    del times["Executor Run Time"]
    batch = decode(
        executor_added(),
        task_start(1, 1000),
        task_end(1, 1000, 1100, times),
        task_start(2, 1100),
        task_end(2, 1100, 1050, metrics(1, 1, 1)),
        task_start(3, 1200),
        task_end(3, 1200, 1300, metrics(0, 10, 0, fetch=20)),
        line({"Event": "SparkListenerTaskEnd"}),
        b'{"Event":"SparkListenerTaskEnd","Task Info":{"Task I',
    )
    assert codes(batch) == {
        "negative_field": 1,
        "missing_field": 4,
        "wrong_type": 1,
        "negative_duration": 1,
        "parts_exceed_run_time": 1,
        "not_json": 1,
    }
    assert [activity[0] for activity in on(batch, CORE)] == ["buffer"]
    assert next(item for item in batch.diagnostics if item.code == "not_json").example.startswith("line 9:")


def test_an_end_without_a_start_and_an_unannounced_executor_are_still_shown() -> None:
    batch = decode(task_end(1, 1000, 1100, metrics(0, 100, 0), executor="9"))
    assert on(batch, "exec-9/core-0") == [("processing", 1000, 1100)]
    assert codes(batch) == {"executor_not_announced": 1, "task_start_missing": 1}


def test_repeated_and_resubmitted_ends_make_no_second_activity() -> None:
    end = task_end(1, 1000, 1100, metrics(0, 100, 0))
    again = task_end(1, 1000, 1100, metrics(0, 100, 0), reason="Resubmitted")
    batch = decode(executor_added(), task_start(1, 1000), end, end, again, task_start(1, 1000))
    assert on(batch, CORE) == [("processing", 1000, 1100)]
    assert codes(batch) == {"duplicate_task_end": 1, "task_resubmitted": 1, "duplicate_task_start": 1}


def test_local_mode_keeps_its_executor_apart_from_the_driver() -> None:
    batch = decode(
        executor_added("driver", cores=2),
        task_start(1, 1000, "driver"),
        task_end(1, 1000, 1100, metrics(0, 100, 0), executor="driver"),
    )
    assert on(batch, "local/core-0") == [("processing", 1000, 1100)]
    assert on(batch, "driver") == [("waiting", 1000, 1100)]


def test_tasks_that_never_end_are_reported_when_the_log_is_over() -> None:
    batch = decode(executor_added(), task_start(1, 1000), task_start(2, 1000))
    assert codes(batch) == {"task_end_missing": 2}


def test_tasks_killed_at_the_end_may_end_after_the_application() -> None:
    batch = decode(
        application_start(),
        executor_added(cores=2),
        task_start(1, 1000),
        task_start(2, 1000),
        task_end(1, 1000, 1100, metrics(0, 100, 0)),
        application_end(1100),
        task_end(2, 1000, 1300, metrics(0, 300, 0), reason="TaskKilled"),
    )
    assert on(batch, "exec-1/core-1") == [("processing", 1000, 1300)]
    assert on(batch, "driver") == [("waiting", 1000, 1100), ("waiting", 1100, 1300)]
    lives = {worker.name: worker.alive_until_ns for worker in batch.workers}
    assert lives["driver"] == lives["exec-1/core-1"] == 1300 * MS
