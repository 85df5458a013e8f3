"""Why was it waiting: chains derived by hand, and what happens at a window's borders."""

import numpy as np
import pytest

from analytics.critical_path import default_lifetimes
from analytics.critical_path.why import combined, why, why_at
from analytics.model.answers import EdgeExample
from analytics.model.trace import Records
from tests.support.traces_small import CONTROL, DATA, PROCESSING, UNKNOWN, message, wait, work
from tests.support.window_graphs import many_windows, one_window

SERIALIZATION = 6

# Worker 0 waits 2-12 for a message sent at 9 by worker 1, which serialized 7-9 after processing 5-7 what it had
# received at 5 from worker 2, sent at 4 after processing 0-4.
CHAIN = [
    work(0, 0, 2), message(1, 9, 0, 12), work(0, 12, 14, operator=1),
    work(1, 0, 1), work(1, 5, 7, operator=2), work(1, 7, 9, SERIALIZATION, 2), message(2, 4, 1, 5, CONTROL),
    work(2, 0, 4, operator=3), work(2, 4, 14),
]  # fmt: skip


def told(answer):
    return [(g.hop, g.type, g.operator, g.worker, g.count, g.duration_ns, g.during_ns) for g in answer.groups]


def test_a_chain_without_forks_accounts_for_the_whole_wait():
    answer = why(*one_window(CHAIN, 3), hops=5, worker=0)
    assert (answer.wait_count, answer.wait_ns) == (1, 10)
    assert told(answer) == [
        (1, DATA, -1, 1, 1, 3, 3),
        (2, SERIALIZATION, 2, 1, 1, 2, 2),
        (3, PROCESSING, 2, 1, 1, 2, 2),
        (4, CONTROL, -1, 2, 1, 1, 1),
        (5, PROCESSING, 3, 2, 1, 4, 2),  # 0-4, of which 2-4 was while worker 0 waited
    ]
    assert sum(group.during_ns for group in answer.groups) == answer.wait_ns
    assert answer.groups[0].example == EdgeExample(1, 9, 0, 12)
    assert answer.reached_start_count == 1


def test_hops_are_bounded():
    assert {group.hop for group in why(*one_window(CHAIN, 3), hops=2, worker=0).groups} == {1, 2}
    for hops in (0, 65):
        with pytest.raises(ValueError):
            why(*one_window(CHAIN, 3), hops=hops)


def test_edges_meet_on_the_same_worker_only():
    # Worker 3 finishes something in the very nanosecond in which the message to worker 0 was sent, and another in
    # which the wait ends: neither has anything to do with it.
    answer = why(*one_window([*CHAIN, work(3, 0, 9), work(3, 9, 12), work(3, 12, 14)], 4), worker=0)
    assert 3 not in {group.worker for group in answer.groups}


def test_an_edge_counts_once_a_wait_however_many_chains_lead_to_it():
    # Two messages of worker 1, sent at 4 and 6, end one wait; the processing 4-6 and then 0-4 lies behind both.
    rows = [
        work(0, 0, 2), message(1, 4, 0, 8), message(1, 6, 0, 8), work(0, 8, 10),
        work(1, 0, 10, operator=5),
    ]  # fmt: skip
    answer = why(*one_window(rows, 2), hops=3)
    assert told(answer) == [
        (1, DATA, -1, 1, 2, 6, 6),
        (2, PROCESSING, 5, 1, 2, 6, 4),  # 0-4 behind the first, 4-6 behind the second
        (3, PROCESSING, 5, 1, 1, 4, 2),  # 0-4 again, behind 4-6
    ]


def test_several_waits_add_up_by_group():
    rows = [
        work(0, 0, 20),
        *(row for w in (1, 2) for row in (work(w, 0, 2), message(0, 9, w, 10), work(w, 10, 20))),
    ]
    answer = why(*one_window(rows, 3), hops=1)
    assert (answer.wait_count, answer.wait_ns) == (2, 16)
    assert told(answer) == [(1, DATA, -1, 0, 2, 2, 2)]
    assert why(*one_window(rows, 3), hops=1, worker=2).wait_count == 1
    assert why(*one_window(rows, 3), hops=1, worker=0).wait_count == 0


def test_a_wait_cut_by_the_windows_end_is_counted_and_explained_in_the_window_where_it_ends():
    # Worker 1 waits 3-17 over three windows of 6; the message was sent at 16.
    rows = [work(0, 0, 18), work(1, 0, 3), message(0, 16, 1, 17), work(1, 17, 18)]
    first, middle, last = (why(*window, hops=1, trace_end_ns=18) for window in many_windows(rows, 2, 6))
    assert [(a.wait_count, a.cut_count, a.cut_ns) for a in (first, middle)] == [(0, 1, 3), (0, 1, 6)]
    assert (last.wait_count, last.wait_ns, last.begun_before_count, last.cut_count) == (1, 5, 1, 0)
    assert told(last) == [(1, DATA, -1, 0, 1, 1, 1)]
    whole = combined([first, middle, last])
    assert (whole.wait_count, whole.cut_count, whole.cut_ns, whole.start_ns, whole.end_ns) == (1, 2, 9, 0, 18)
    assert told(whole) == told(last)


def test_a_message_on_its_way_at_the_border_is_not_taken_for_the_cause():
    rows = [work(0, 0, 20), work(1, 0, 3), message(0, 4, 1, 15), message(0, 11, 1, 12), work(1, 15, 20)]
    first = why(*many_windows(rows, 2, 10)[0], hops=1)
    assert (first.wait_count, first.cut_count, first.groups) == (0, 1, ())


def test_a_wait_that_ends_with_the_trace_is_not_cut():
    rows = [work(0, 0, 10), work(1, 0, 3), message(0, 9, 1, 10)]
    answer = why(*one_window(rows, 2), trace_end_ns=10)
    assert (answer.wait_count, answer.cut_count) == (1, 0)
    assert why(*one_window(rows, 2)).cut_count == 1


def test_a_wait_that_no_message_ended_has_no_cause():
    answer = why(*one_window([work(0, 0, 10), work(1, 0, 3), wait(1, 3, 7), work(1, 7, 10)], 2))
    assert (answer.wait_count, answer.uncaused_count, answer.uncaused_ns, answer.groups) == (0, 1, 4, ())


def test_the_window_widens_until_wait_and_chain_fit():
    records = Records.of(CHAIN)
    lives = default_lifetimes(records, 3)
    answer = why_at(records, *lives, 0, 6, 1, hops=5)
    assert told(answer) == told(why(*one_window(CHAIN, 3), hops=5, worker=0))
    assert (answer.begun_before_count, answer.start_ns) == (0, 0)
    near = why_at(records, *lives, 0, 6, 1, hops=1)
    assert (near.wait_ns, near.start_ns >= 0, told(near)) == (10, True, [(1, DATA, -1, 1, 1, 3, 3)])
    assert why_at(records, *lives, 0, 13, 1).wait_count == 0
    assert why_at(records, *lives, 2, 6, 1).wait_count == 0


def test_a_wait_outside_the_trace_is_no_wait():
    records = Records.of(CHAIN)
    answer = why_at(records, *default_lifetimes(records, 3), 0, 1_000_000, 10)
    assert (answer.wait_count, answer.groups) == (0, ())


def test_unknown_time_is_part_of_a_chain():
    rows = [work(0, 0, 2), message(1, 9, 0, 10), work(0, 10, 12), work(1, 0, 3), work(1, 11, 12)]
    assert told(why(*one_window(rows, 2), hops=3)) == [
        (1, DATA, -1, 1, 1, 1, 1),
        (2, UNKNOWN, -1, 1, 1, 6, 6),
        (3, PROCESSING, -1, 1, 1, 3, 1),
    ]


def test_a_walk_too_wide_to_follow_stops_and_says_where(monkeypatch):
    monkeypatch.setattr("analytics.critical_path.why.MOST_PAIRS", 6)
    rows = [
        work(0, 0, 20),
        *(row for w in range(1, 4) for row in (work(w, 0, 2), message(0, 8, w, 10), work(w, 10, 20))),
    ]
    assert why(*one_window(rows, 4), hops=3).stopped_at_hop == 0
    rows += [message(0, 7, w, 10) for w in range(1, 4)]
    answer = why(*one_window(rows, 4), hops=3)
    assert (answer.stopped_at_hop, answer.groups) == (1, ())


def test_the_smallest_groups_are_left_out_and_counted(monkeypatch):
    monkeypatch.setattr("analytics.critical_path.why.MOST_GROUPS", 2)
    rows = [work(0, 0, 2), work(0, 15, 20)]
    rows += [row for w in range(1, 5) for row in (work(w, 0, 20), message(w, 15 - w, 0, 15))]
    answer = why(*one_window(rows, 5), hops=1, worker=0)
    assert [group.duration_ns for group in answer.groups] == [4, 3]
    assert answer.groups_left_out == 2


def test_nothing_to_combine_is_an_error():
    with pytest.raises(ValueError):
        combined([])


def test_arrays_of_an_empty_window_are_fine():
    window = many_windows([work(0, 0, 10)], 1, 10)[0]
    assert np.all(window[1].type == PROCESSING)
    assert why(*window).wait_count == 0
