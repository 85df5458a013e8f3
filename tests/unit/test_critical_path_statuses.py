"""When a window has no critical participation, it says so, why, and by which worker."""

import numpy as np
import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes, window_edges
from analytics.model.results import Windows
from analytics.model.trace import Records
from tests.support.traces_small import message, wait, work


def summaries_of(rows, workers, width, *, lives=None, windows=None, **options):
    records = Records.of(rows)
    born, died = default_lifetimes(records, workers)
    if lives is not None:
        born, died = (np.array(x, np.int64) for x in zip(*lives, strict=True))
    found, diagnostics = analyse(records, born, died, windows or covering_windows(records, width), **options)
    return found, {d.code: d.count for d in diagnostics}


def assert_forbidden(summary):
    assert summary.log10_paths == summary.cp_total == 0
    for name in ("activity_cp", "worker_cp", "operator_cp", "channel_cp"):
        assert not getattr(summary, name).any()


def test_a_window_in_which_all_wait_has_no_critical_path_and_names_who_waits():
    rows = [work(0, 0, 4), wait(0, 4, 10), work(1, 0, 3), wait(1, 3, 10)]
    (summary,), odd = summaries_of(rows, 2, 10)
    assert summary.status == "no_critical_path"
    assert "worker 0, 4 ns after the start" in summary.reason
    assert_forbidden(summary)
    assert summary.worker_conventional == pytest.approx([0.4, 0.3])
    assert odd == {"wait_without_receive": 2}


def test_a_window_that_nobody_is_alive_at_the_start_of_has_no_critical_path():
    (summary,), _ = summaries_of([work(0, 5, 10)], 1, 10, lives=[(5, 10)], bounds_ns=(0, 10))
    assert summary.status == "no_critical_path"
    assert summary.reason == "No worker is alive at the start of this window, so no path begins there."


def test_a_worker_that_is_added_within_a_window_is_no_start_and_one_removed_no_end():
    # Worker 1 comes at 4 and gets work from worker 0; worker 2 goes at 6. Neither makes the window odd.
    rows = [work(0, 0, 10), work(1, 5, 10), work(2, 0, 6), message(0, 4, 1, 5)]
    (summary,), odd = summaries_of(rows, 3, 10, lives=[(0, 10), (4, 10), (0, 6)])
    assert (summary.status, summary.reason, odd) == ("ok", "", {})
    assert summary.log10_paths == pytest.approx(np.log10(2))
    assert summary.worker_cp == pytest.approx([0.4 + 0.3, 0.25, 0])


def test_a_message_received_before_it_was_sent_makes_only_the_windows_it_overlaps_skewed():
    rows = [work(0, 0, 30), work(1, 0, 30), message(0, 14, 1, 12)]
    (before, during, after), odd = summaries_of(rows, 2, 10)
    assert (before.status, after.status) == ("ok", "ok")
    assert during.status == "clock_skew"
    assert during.reason.startswith("Worker 1 received a message at 12 ns, 2 ns before worker 0 sent it")
    assert_forbidden(during)
    assert during.worker_conventional == pytest.approx([1, 1])
    assert during.channel_conventional.tolist() == []
    assert odd == {"clock_skew": 1}


def test_the_skewed_message_that_is_named_does_not_depend_on_the_order_of_records():
    rows = [work(0, 0, 30), work(1, 0, 30), message(0, 9, 1, 8), message(1, 5, 0, 3), message(0, 5, 1, 4)]
    (first,), _ = summaries_of(rows, 2, 30)
    (second,), _ = summaries_of(rows[::-1], 2, 30)
    assert first.reason == second.reason
    assert "Worker 0 received a message at 3 ns, 2 ns before worker 1" in first.reason
    assert "3 such messages" in first.reason


def test_messages_in_a_circle_within_one_moment_are_named_as_a_cycle():
    rows = [work(w, 0, 10) for w in range(4)]
    rows += [message(1, 5, 2, 5), message(2, 5, 3, 5), message(3, 5, 1, 5), message(0, 2, 1, 3)]
    (summary,), _ = summaries_of(rows, 4, 10)
    assert summary.status == "cycle"
    assert "5 ns, go in a circle: worker 1 to worker 2 to worker 3 to worker 1." in summary.reason
    assert_forbidden(summary)
    assert summary.activity_conventional[4] == pytest.approx(4)


def test_a_cycle_of_many_workers_is_named_in_part():
    workers = 30
    rows = [work(w, 0, 10) for w in range(workers)]
    rows += [message(w, 10, (w + 1) % workers, 10) for w in range(workers)]
    (summary,), _ = summaries_of(rows, workers, 10)
    assert summary.status == "cycle"
    assert "one instant, 10 ns" in summary.reason
    assert "and on (30 in all)." in summary.reason


def test_messages_of_no_duration_are_no_cycle_by_themselves():
    rows = [work(0, 0, 10), work(1, 0, 10), message(0, 5, 1, 5), message(0, 0, 1, 0), message(1, 10, 0, 10)]
    (summary,), _ = summaries_of(rows, 2, 10)
    assert summary.status == "ok"
    # From 0: stay 0, or cross at 0, 5; from 1 stay; and each that is on worker 1 at 10 may cross once more.
    assert summary.log10_paths == pytest.approx(np.log10(1 + 2 * 3))


def test_a_worker_back_long_after_its_reported_end_makes_the_window_incomplete():
    rows = [work(0, 0, 40), work(1, 0, 5), work(1, 33, 36)]
    found, odd = summaries_of(rows, 2, 10, lives=[(0, 40), (0, 6)], horizon_ns=8)
    assert [s.status for s in found] == ["ok", "ok", "ok", "incomplete"]
    assert "Worker 1 has records again from 33 ns on" in found[3].reason
    assert_forbidden(found[3])
    assert found[3].worker_conventional == pytest.approx([1, 0.3])
    assert odd == {"outside_life": 2}


def test_a_window_with_no_life_and_no_record_is_empty():
    rows = [work(0, 0, 5), work(1, 25, 30)]
    found, _ = summaries_of(rows, 2, 10, lives=[(0, 5), (25, 30)])
    assert [s.status for s in found] == ["no_critical_path", "empty", "no_critical_path"]
    assert found[1].worker_ids.tolist() == []
    assert found[1].reason


def test_a_window_that_only_a_silent_worker_lives_in_is_unknown_not_empty():
    found, _ = summaries_of([work(0, 0, 5), work(0, 25, 30)], 1, 10)
    assert [s.status for s in found] == ["ok", "ok", "ok"]
    assert found[1].activity_cp[11] == 1
    assert found[1].record_count == 0


def test_windows_outside_the_job_are_empty_and_keep_their_bounds():
    found, _ = summaries_of([work(0, 12, 27)], 1, 10, windows=Windows(10, 0, 5))
    assert [s.status for s in found] == ["empty", "ok", "ok", "empty", "empty"]
    assert [(s.start_ns, s.end_ns) for s in found] == [(0, 10), (12, 20), (20, 27), (30, 40), (40, 50)]


def test_a_job_of_one_moment_has_a_window_but_no_path():
    (summary,), _ = summaries_of([work(0, 7, 7)], 1, 10)
    assert (summary.status, summary.record_count) == ("no_critical_path", 1)
    assert "lasts no time" in summary.reason


def test_nothing_at_all_is_nothing():
    assert summaries_of([], 0, 10) == ([], {})
    (summary,), _ = summaries_of([], 2, 10, windows=Windows(10, 0, 1))
    assert summary.status == "empty"
    empty = np.zeros(0, np.int64)
    summary, edges, _ = window_edges(Records.of([]), empty, empty, Windows(10, 0, 1))
    assert (summary.status, len(edges.src)) == ("empty", 0)


def test_a_caller_who_asks_for_the_impossible_is_told():
    records, lives = Records.of([work(0, 0, 5)]), np.zeros(1, np.int64)
    with pytest.raises(ValueError, match="one entry for every worker"):
        analyse(records, lives, np.zeros(2, np.int64), Windows(10, 0, 1))
    with pytest.raises(ValueError, match="longer than 0 ns"):
        analyse(records, lives, lives, Windows(0, 0, 1))
    with pytest.raises(ValueError, match="horizon of -1 ns"):
        analyse(records, lives, lives, Windows(1, 0, 1), horizon_ns=-1)
    with pytest.raises(ValueError, match="one window at a time"):
        window_edges(records, lives, lives, Windows(1, 0, 2))
    with pytest.raises(ValueError, match="longer than 0 ns"):
        covering_windows(records, 0)
