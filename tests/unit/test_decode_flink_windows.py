"""Rates from what Flink really answered: each way in which its numbers mislead is replayed."""

from dataclasses import replace
from itertools import pairwise

import pytest

from analytics.decode.flink_rest import decode_job
from analytics.decode.flink_samples import window_samples
from analytics.decode.flink_windows import instance_windows
from analytics.model.topology import InstanceCounters, InstanceWindow, JobPoll, Unknown
from tests.support.flink import answer, by_name, poll, polls, series

REFRESH_MS = 2_000
"""As the recorded cluster was configured."""
SPLIT = "4c316878fdbd0126d4087d26baae01f4"


def codes(of: list[JobPoll]) -> dict[str, int]:
    return {item.code: item.count for item in instance_windows(of, REFRESH_MS)[1]}


def windows(of: list[JobPoll]) -> dict[str, list[InstanceWindow]]:
    return by_name(instance_windows(of, REFRESH_MS)[0], of[-1])


def unknowns(of: list[JobPoll]) -> set[Unknown | None]:
    return {window.unknown for window in instance_windows(of, REFRESH_MS)[0]}


def true_rate(window: InstanceWindow) -> float:
    """Records in per second of useful time, as DS2 defines it."""
    assert window.records_in is not None
    assert window.busy_ms
    return window.records_in / window.busy_ms * 1_000


def without(of: JobPoll, operator_id: str) -> JobPoll:
    return replace(of, counters=tuple(item for item in of.counters if item.operator_id != operator_id))


def asked_at(of: JobPoll, at_ns: int) -> JobPoll:
    """The same answers at another time."""
    counters = tuple(replace(item, at_ns=at_ns) for item in of.counters)
    return replace(of, at_ns=at_ns, counters=counters)


def with_counters(of: JobPoll, operator_id: str, **values: float | None) -> JobPoll:
    changed = tuple(
        replace(item, **values) if item.operator_id == operator_id else item  # type: ignore[arg-type]
        for item in of.counters
    )
    return replace(of, counters=changed)


def test_counters_give_the_right_rates_half_a_minute_after_a_rescale() -> None:
    told = windows(polls("ci_smoke_series_after"))
    assert [len(told[name]) for name in ("Source: events", "split", "count", "out: Writer")] == [1, 5, 2, 1]
    assert {window.unknown for group in told.values() for window in group} == {None}
    for window in told["split"]:  # 5 ms a record
        assert true_rate(window) == pytest.approx(199, abs=1)
        assert window.observed_ms == pytest.approx(26_000, rel=0.01)
    for window in told["count"]:  # 0.5 ms a record
        assert true_rate(window) == pytest.approx(1_980, rel=0.01)
    source = told["Source: events"][0]
    assert source.per_s(source.records_out) == pytest.approx(900, rel=0.01)
    assert source.records_in == 0


def test_meters_of_young_tasks_are_far_off_where_counters_are_right() -> None:
    """Twenty seconds after the rescale Flink's meters say 50 records a second of useful time, counters say 199."""
    recorded = series("two_stage_ds2_series_after")
    first = next(
        at
        for at, item in enumerate(recorded)
        if {c.attempt_age_ms for c in poll(item).counters if c.operator_id == SPLIT and c.clock_ms}
        and at >= 1
    )
    young = recorded[: first + 6]
    path = next(path for path in young[-1]["responses"] if f"/{SPLIT}/metrics?" in path)
    meters = {item["id"]: float(item["value"]) for item in young[-1]["responses"][path]}
    by_meters = meters["0.numRecordsInPerSecond"] / (meters["0.busyTimeMsPerSecond"] / 1_000)
    assert by_meters < 120
    by_counters = windows([poll(item) for item in young])["split"]
    assert [true_rate(window) for window in by_counters] == pytest.approx([199.5] * 6, abs=1)


def test_the_first_seconds_are_unknown_and_not_zero() -> None:
    before = polls("ci_smoke_series_before")
    assert [len(item.counters) for item in before[:3]] == [0, 0, 4]
    assert unknowns(before[:1]) == {Unknown.NO_METRICS}
    assert unknowns(before[:2]) == {Unknown.NO_METRICS}
    assert unknowns(before[:6]) == {Unknown.TOO_SHORT}
    assert unknowns(before) == {None}
    unknown = instance_windows(before[:6], REFRESH_MS)[0]
    assert {(item.records_in, item.busy_ms, item.observed_ms) for item in unknown} == {(None, None, None)}
    assert window_samples(before[5].topology, unknown) == []


def test_counters_of_the_old_attempt_are_not_taken_for_the_new_ones() -> None:
    """For two polls after the rescale Flink lists one instance of split, with counters of the attempt before."""
    after = polls("ci_smoke_series_after")
    old, new = after[1], after[2]
    assert [item.instance for item in old.counters if item.operator_id == SPLIT] == [0]
    assert len([item for item in new.counters if item.operator_id == SPLIT]) == 5
    told = windows(after[:2])
    assert [window.unknown for window in told["split"]] == [Unknown.OLD_ATTEMPT] + 4 * [Unknown.NO_METRICS]
    assert {window.unknown for window in told["count"]} == {Unknown.OLD_ATTEMPT, Unknown.NO_METRICS}


def test_nothing_is_subtracted_across_a_rescale() -> None:
    before, after = polls("ci_smoke_series_before"), polls("ci_smoke_series_after")
    assert unknowns([*before, *after[:1]]) <= {Unknown.OLD_ATTEMPT, Unknown.NO_METRICS}
    assert unknowns([*before, *after[:6]]) == {Unknown.TOO_SHORT}
    assert codes([*before, *after])["counter_reset"] == 4
    whole, alone = windows([*before, *after]), windows(after)
    assert whole["split"] == alone["split"]
    assert whole["Source: events"] == alone["Source: events"]


def test_new_counters_with_the_cached_page_of_the_old_attempt_are_a_reset() -> None:
    """The page of a job may be 3 s old: it then names the attempt before, while the counters have begun anew."""
    before, after = series("ci_smoke_series_before"), series("ci_smoke_series_after")
    page = next(body for path, body in before[-1]["responses"].items() if path.count("/") == 2)
    cached = poll(after[2], page)
    assert cached.topology.operators == poll(before[-1]).topology.operators
    mixed = [*(poll(item) for item in before), cached]
    assert set(unknowns(mixed)) == {Unknown.TOO_SHORT}
    assert codes(mixed)["counter_reset"] == 4


def test_a_page_that_did_not_change_does_not_make_counters_look_frozen() -> None:
    series_before = series("ci_smoke_series_before")
    page = next(body for path, body in series_before[2]["responses"].items() if path.count("/") == 2)
    fresh = [poll(item, {**page, "now": round(item["t"] * 1_000)}) for item in series_before[2:]]
    assert windows(fresh)["split"] == windows(polls("ci_smoke_series_before"))["split"]


def test_an_answer_given_twice_changes_nothing() -> None:
    """Flink had not refreshed its metrics between two polls: the same counters came again."""
    after = polls("ci_smoke_series_after")
    same = [
        at
        for at in range(1, len(after))
        if [c.clock_ms for c in after[at].counters] == [c.clock_ms for c in after[at - 1].counters]
    ]
    assert 10 in same
    fewer = [item for at, item in enumerate(after) if at != 10]
    assert windows(after) == windows(fewer)
    ending = windows(after[:11])["split"][0]
    assert ending.unknown is Unknown.TOO_SHORT
    assert ending.until_ns == after[10].at_ns


def test_counters_that_stand_still_are_frozen_and_not_zero() -> None:
    """A TaskManager was killed: the job is said to run and its last counters are served, poll after poll."""
    before = polls("ci_smoke_series_before")
    page, _ = decode_job(answer("tm_loss_job"))
    assert {page.state, *(operator.state for operator in page.operators)} == {"RUNNING"}
    killed = [asked_at(before[-1], before[-1].at_ns + after_s * 10**9) for after_s in (2, 4, 6, 8)]
    assert unknowns([*before, *killed[:2]]) == {None}
    assert unknowns([*before, *killed]) == {Unknown.FROZEN}
    assert codes([*before, *killed]) == {"frozen": 4}


def test_one_refresh_that_brings_nothing_is_waited_for() -> None:
    before = polls("ci_smoke_series_before")
    silent = [
        replace(before[-1], at_ns=before[-1].at_ns + after_s * 10**9, counters=()) for after_s in (2, 4, 6)
    ]
    assert unknowns([*before, silent[0]]) == {None}
    assert unknowns([*before, *silent]) == {Unknown.NO_METRICS}


def test_an_operator_without_answer_is_unknown_and_the_others_are_not() -> None:
    told = windows([without(item, SPLIT) for item in polls("ci_smoke_series_after")])
    assert [window.unknown for window in told["split"]] == 5 * [Unknown.NO_METRICS]
    assert [window.unknown for window in told["count"]] == [None, None]


def test_a_source_that_does_not_measure_its_busy_time_is_unknown() -> None:
    """Legacy sources report "NaN": there is no own clock to divide by."""
    told = windows([with_counters(item, SPLIT, busy_ms=None) for item in polls("ci_smoke_series_after")])
    assert {window.unknown for window in told["split"]} == {Unknown.NO_CLOCK}


def test_one_counter_that_is_missing_leaves_the_others_known() -> None:
    told = windows([with_counters(item, SPLIT, records_out=None) for item in polls("ci_smoke_series_after")])
    assert {window.records_out for window in told["split"]} == {None}
    assert {window.per_s(window.records_out) for window in told["split"]} == {None}
    assert all(true_rate(window) == pytest.approx(199, abs=1) for window in told["split"])


def test_busy_time_that_shrinks_a_little_is_zero() -> None:
    """Flink gets busy time by subtraction; a source's went from 385 to 358 ms while it was back-pressured."""
    before = polls("ci_smoke_series_before")
    busy_ms = [item.counters[0].busy_ms for item in before if item.counters]
    assert (385.0, 358.0) in set(pairwise(busy_ms))
    at = next(at for at, item in enumerate(before) if item.counters and item.counters[0].busy_ms == 385.0)
    later = [
        with_counters(item, before[at].counters[0].operator_id, busy_ms=max(380.0 - n, 0.0))
        for n, item in enumerate(before[at:])
    ]
    window = windows(later)["Source: events"][0]
    assert (window.unknown, window.busy_ms) == (None, 0.0)


def test_a_job_that_restarts_is_not_running() -> None:
    before = polls("ci_smoke_series_before")
    stopped = replace(before[-1], topology=replace(before[-1].topology, state="RESTARTING"))
    assert unknowns([*before[:-1], stopped]) == {Unknown.NOT_RUNNING}


def test_a_task_that_failed_alone_is_a_reset_though_the_page_does_not_show_it() -> None:
    after = polls("ci_smoke_series_after")
    anew = [
        replace(
            item,
            counters=tuple(
                replace(c, records_in=c.records_in - 3_000, records_out=c.records_out - 9_000)  # type: ignore[operator]
                if (c.operator_id, c.instance) == (SPLIT, 3)
                else c
                for c in item.counters
            ),
        )
        for item in after[10:]
    ]
    told = windows([*after[:10], *anew])
    assert [window.unknown for window in told["split"]] == [None, None, None, Unknown.TOO_SHORT, None]


def test_an_answer_from_before_a_pause_is_not_a_beginning() -> None:
    """Metrics that nobody asked for are not refreshed: the first answer after a pause may be minutes old."""
    after = polls("ci_smoke_series_after")
    paused = asked_at(after[3], after[9].at_ns - 10**9)
    told = windows([paused, *after[9:]])
    assert {window.unknown for window in told["split"]} == {Unknown.TOO_SHORT}
    assert codes([paused, *after[9:]]) == {"clock_gap": 9}


def test_nothing_is_known_of_no_polls() -> None:
    assert instance_windows([]) == ((), ())


def test_rates_are_stored_under_names_that_fit_every_engine() -> None:
    after = polls("ci_smoke_series_after")
    samples = window_samples(after[-1].topology, instance_windows(after, REFRESH_MS)[0])
    split = {
        sample.name: sample.value
        for sample in samples
        if sample.labels == (("instance", "4"), ("operator", "split"))
    }
    assert split["records_in_per_s"] == pytest.approx(180, rel=0.01)
    assert split["records_out_per_s"] == pytest.approx(540, rel=0.01)
    assert split["busy_ratio"] + split["idle_ratio"] + split["backpressured_ratio"] == pytest.approx(1)
    assert {sample.at_ns for sample in samples} == {after[-1].at_ns}


def test_an_amount_per_second_is_unknown_without_a_time_to_divide_by() -> None:
    window = InstanceWindow("a", 0, 0, 1, observed_ms=0.0, records_in=5.0)
    assert window.per_s(window.records_in) is None
    assert window.ratio(1.0) is None
    assert InstanceCounters("a", 0, 0, busy_ms=1.0, idle_ms=1.0).clock_ms is None
