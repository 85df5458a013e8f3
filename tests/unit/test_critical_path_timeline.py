"""How a worker's timeline is laid out: nesting, overlaps, ties within a moment, gaps, lives."""

import numpy as np
import pytest

from analytics.critical_path import covering_windows, window_edges
from analytics.model.trace import Records
from tests.support.traces_small import DATA, PROCESSING, UNKNOWN, WAITING, message, wait, work

SERIALIZATION, BUFFER = 6, 2


def lay_out(rows, lives, worker=0, *, horizon_ns=None, span=(0, 20)):
    """One worker's stretches ``(start, end, type)`` over the whole span, and the diagnostics as {code: count}."""
    born, died = (np.array(x, np.int64) for x in zip(*lives, strict=True))
    windows = covering_windows(span, span[1] - span[0], span[0])
    _, edges, found = window_edges(
        Records.of(rows), born, died, windows, bounds_ns=span, horizon_ns=horizon_ns
    )
    mine = (edges.src == worker) & (edges.dst == worker)
    columns = (edges.src_ns, edges.dst_ns, edges.type)
    stretches = list(zip(*(column[mine].tolist() for column in columns), strict=True))
    return stretches, {d.code: d.count for d in found}


ALL = [(0, 20), (0, 20)]


def test_an_activity_within_another_splits_it_in_three():
    found, odd = lay_out([work(0, 0, 20), work(0, 5, 8, SERIALIZATION)], ALL)
    assert found == [(0, 5, PROCESSING), (5, 8, SERIALIZATION), (8, 20, PROCESSING)]
    assert odd == {}


def test_activities_nest_to_any_depth_and_may_share_a_border():
    rows = [
        work(0, 0, 20),
        work(0, 4, 12, BUFFER),
        work(0, 4, 9, SERIALIZATION),
        work(0, 10, 12, SERIALIZATION),
    ]
    found, odd = lay_out(rows, ALL)
    assert found == [
        (0, 4, PROCESSING), (4, 9, SERIALIZATION), (9, 10, BUFFER), (10, 12, SERIALIZATION), (12, 20, PROCESSING),
    ]  # fmt: skip
    assert odd == {}


def test_of_two_that_overlap_the_later_begins_where_the_earlier_ends():
    found, odd = lay_out([work(0, 0, 12), work(0, 8, 20, BUFFER)], ALL)
    assert found == [(0, 12, PROCESSING), (12, 20, BUFFER)]
    assert odd == {"overlapping_activities": 1}


def test_of_two_at_the_same_time_the_lower_operator_then_type_counts_once():
    rows = [work(0, 0, 20, SERIALIZATION, operator=1), work(0, 0, 20, PROCESSING, operator=2)]
    assert lay_out(rows, ALL) == lay_out(rows[::-1], ALL) == ([(0, 20, SERIALIZATION)], {})


def test_a_message_sent_or_received_within_an_activity_splits_it():
    rows = [work(0, 0, 20), work(1, 0, 20), message(0, 5, 1, 6), message(1, 8, 0, 9)]
    assert lay_out(rows, ALL)[0] == [(0, 5, PROCESSING), (5, 9, PROCESSING), (9, 20, PROCESSING)]


@pytest.mark.parametrize(
    ("before", "at_five", "expected"),
    [
        ([work(0, 0, 5)], [], WAITING),
        ([work(0, 0, 4)], [message(0, 5, 1, 6)], WAITING),  # after a Sent
        ([], [message(1, 3, 0, 5)], UNKNOWN),  # after a Received
        ([work(0, 0, 5)], [message(1, 3, 0, 5)], UNKNOWN),  # End, then Received
        ([], [message(1, 3, 0, 5), message(0, 5, 1, 6)], WAITING),  # Received, then Sent
        ([], [message(1, 3, 0, 5), work(0, 5, 5)], WAITING),  # Received, then an activity of no length
    ],
)
def test_a_gap_that_ends_at_a_received_message_is_a_wait_unless_it_begins_after_one(
    before, at_five, expected
):
    rows = [*before, *at_five, message(1, 9, 0, 10), work(1, 0, 20)]
    assert (5, 10, expected) in lay_out(rows, ALL)[0]


@pytest.mark.parametrize("after", [work(0, 10, 12), message(0, 10, 1, 11), work(0, 10, 10)])
def test_a_gap_that_ends_otherwise_is_unknown(after):
    assert (5, 10, UNKNOWN) in lay_out([work(0, 0, 5), after], ALL)[0]


def test_a_moment_with_a_received_message_and_a_start_ends_a_wait():
    rows = [work(0, 0, 5), work(0, 10, 12), message(1, 9, 0, 10)]
    assert (5, 10, WAITING) in lay_out(rows, ALL)[0]


def test_gaps_at_the_borders_of_a_life_are_unknown():
    rows = [message(1, 3, 0, 5), work(0, 5, 12)]
    assert lay_out(rows, [(2, 15), (0, 20)])[0] == [(2, 5, UNKNOWN), (5, 12, PROCESSING), (12, 15, UNKNOWN)]


def test_a_worker_with_no_record_is_unknown_all_its_life():
    assert lay_out([work(1, 0, 20)], [(3, 9), (0, 20)]) == ([(3, 9, UNKNOWN)], {})


def test_a_life_is_extended_to_the_records_outside_it():
    found, odd = lay_out([work(0, 1, 3), work(0, 14, 16)], [(5, 10), (0, 20)])
    assert found == [(1, 3, PROCESSING), (3, 14, UNKNOWN), (14, 16, PROCESSING)]
    assert odd == {"outside_life": 4}


def test_a_worker_whose_life_nobody_reported_lives_from_its_first_to_its_last_record():
    found, odd = lay_out([work(0, 4, 6), work(0, 9, 10)], [(0, -1), (0, 20)])
    assert found == [(4, 6, PROCESSING), (6, 9, UNKNOWN), (9, 10, PROCESSING)]
    assert odd == {}


def test_a_gap_longer_than_the_horizon_is_unknown():
    rows = [work(0, 0, 5), message(1, 9, 0, 10), work(1, 0, 20)]
    assert (5, 10, WAITING) in lay_out(rows, ALL, horizon_ns=5)[0]
    assert (5, 10, UNKNOWN) in lay_out(rows, ALL, horizon_ns=4)[0]


def test_a_life_is_not_extended_across_a_silence_longer_than_the_horizon():
    found, odd = lay_out([work(0, 2, 4), work(0, 14, 16)], [(0, 6), (0, 20)], horizon_ns=7)
    assert found == [(0, 2, UNKNOWN), (2, 4, PROCESSING), (4, 6, UNKNOWN), (14, 16, PROCESSING)]
    assert odd == {"outside_life": 2}


def test_a_wait_the_source_reports_is_kept_and_flagged_if_no_message_ends_it():
    rows = [work(0, 0, 5), wait(0, 5, 9), work(0, 9, 20), wait(1, 0, 8), message(0, 7, 1, 8)]
    found, odd = lay_out(rows, ALL)
    assert (7, 9, WAITING) in found
    assert odd == {"wait_without_receive": 2}  # at 7, where it sends in the midst of it, and at 9


def test_records_that_cannot_be_are_ignored_and_told():
    rows = [
        work(0, 0, 20),
        work(0, 9, 4),
        work(7, 1, 2),
        work(0, 1, 2, kind=13),
        (PROCESSING, 0, 1, -1, 1, 2),
    ]
    found, odd = lay_out(rows, ALL)
    assert found == [(0, 20, PROCESSING)]
    assert odd == {"negative_duration": 1, "unusable_record": 3}


def test_the_two_ends_of_a_message_to_oneself_split_the_timeline():
    rows = [work(0, 0, 20), message(0, 5, 0, 9)]
    local = [(0, 5, PROCESSING), (5, 9, PROCESSING), (9, 20, PROCESSING)]
    assert lay_out(rows, ALL)[0] == [*local, (5, 9, DATA)]
