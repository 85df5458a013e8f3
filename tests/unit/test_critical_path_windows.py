"""Which windows cover a trace, how edges are cut to them, and which records they count."""

import numpy as np
import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes, window_edges
from analytics.model.results import Windows
from analytics.model.trace import Records
from tests.support.traces_small import message, work


@pytest.mark.parametrize(
    ("bounds", "width", "origin", "first", "count"),
    [
        ((0, 30), 10, 0, 0, 3),
        ((0, 31), 10, 0, 0, 4),
        ((9, 11), 10, 0, 0, 2),
        ((10, 20), 10, 0, 1, 1),
        ((0, 30), 10, 5, -1, 4),
        ((-25, -5), 10, 0, -3, 3),
        ((7, 7), 10, 0, 0, 1),
        ((10, 10), 10, 0, 1, 1),
    ],
)
def test_windows_cover_the_trace_and_no_more(bounds, width, origin, first, count):
    assert covering_windows(bounds, width, origin) == Windows(width, first, count, origin)


def test_no_records_need_no_windows():
    assert covering_windows(Records.of([]), 10).count == 0


def test_every_worker_with_a_record_lives_as_long_as_the_trace_by_default():
    rows = [work(0, 5, 9), message(1, 30, 0, 2), work(1, 99, 50)]  # the last one cannot be
    born, died = default_lifetimes(Records.of(rows), 3)
    # the third is named nowhere but by the lost half of a message, say
    assert (born.tolist(), died.tolist()) == ([2, 2, 0], [30, 30, -1])


def test_the_first_and_last_window_shrink_to_the_job_not_to_the_records_at_hand():
    records = Records.of([work(0, 14, 16)])
    lives = np.array([3]), np.array([27])
    (summary,), _ = analyse(records, *lives, Windows(10, 1, 1), bounds_ns=(3, 27))
    assert (summary.start_ns, summary.end_ns) == (10, 20)
    (first, _, last), _ = analyse(records, *lives, Windows(10, 0, 3), bounds_ns=(3, 27))
    assert (first.start_ns, first.end_ns, last.start_ns, last.end_ns) == (3, 10, 20, 27)
    assert first.cp_total == last.cp_total == pytest.approx(1)


def test_messages_in_flight_leave_from_and_arrive_at_the_borders():
    records = Records.of([work(0, 0, 30), work(1, 0, 30), message(0, 5, 1, 25), message(1, 12, 0, 22)])
    lives = default_lifetimes(records, 2)
    _, edges, _ = window_edges(records, *lives, Windows(10, 1, 1))
    found = zip(
        edges.src.tolist(), edges.src_ns.tolist(), edges.dst.tolist(), edges.dst_ns.tolist(), strict=True
    )
    assert [e for e in found if e[0] != e[2]] == [(0, 10, 1, 20), (1, 12, 0, 20)]


def test_a_message_that_only_touches_a_window_is_not_in_it_but_one_of_no_length_is_in_both():
    rows = [work(0, 0, 30), work(1, 0, 30), message(0, 10, 1, 20), message(1, 20, 0, 20)]
    records = Records.of(rows)
    summaries, _ = analyse(records, *default_lifetimes(records, 2), covering_windows(records, 10))
    assert [s.record_count for s in summaries] == [2, 4, 3]
    channels = [list(zip(s.channel_src.tolist(), s.channel_dst.tolist(), strict=True)) for s in summaries]
    assert channels == [[], [(0, 1), (1, 0)], [(1, 0)]]
    assert [round(10**s.log10_paths) for s in summaries] == [2, 5, 3]


def test_operator_numbers_of_any_size_keep_apart():
    rows = [work(0, 0, 4, operator=2**31 - 1), work(0, 4, 10, operator=300), work(1, 0, 10, operator=300)]
    records = Records.of(rows)
    (summary,), _ = analyse(records, *default_lifetimes(records, 2), covering_windows(records, 10))
    assert summary.operator_ids.tolist() == [300, 2**31 - 1]
    assert summary.operator_workers.tolist() == [2, 1]
    assert summary.operator_cp == pytest.approx([0.8, 0.2])


def test_many_workers_keep_their_channels_apart():
    workers = 700
    rows = [work(w, 0, 10) for w in range(workers)]
    rows += [message(w, 2, w + 1, 5) for w in range(workers - 1)]
    records = Records.of(rows)
    (summary,), _ = analyse(records, *default_lifetimes(records, workers), covering_windows(records, 10))
    assert summary.channel_src.tolist() == list(range(workers - 1))
    assert summary.channel_dst.tolist() == list(range(1, workers))
    assert summary.log10_paths == pytest.approx(np.log10(2 * workers - 1))
    assert summary.cp_total == pytest.approx(1)


def test_times_near_the_end_of_64_bits_stay_exact():
    base = 2**63 - 2**20
    records = Records.of(
        [work(0, base, base + 3), work(1, base, base + 3), message(0, base + 1, 1, base + 2)]
    )
    (summary,), _ = analyse(records, *default_lifetimes(records, 2), Windows(3, 0, 1, base))
    assert summary.channel_cp == pytest.approx([1 / 9], abs=1e-15)


def test_records_as_they_come_from_a_segment_give_the_same():
    from analytics.model.segments import decode, encode

    records = Records.of([work(0, 0, 30), work(1, 0, 30), message(0, 5, 1, 25)])
    read = decode(encode(records))
    lives = default_lifetimes(records, 2)
    (a,), _ = analyse(records, *lives, Windows(30, 0, 1))
    (b,), _ = analyse(read, *default_lifetimes(read, 2), Windows(30, 0, 1))
    assert a.worker_cp.tobytes() == b.worker_cp.tobytes()
