"""What if: graphs small enough to be re-timed by hand, with the derivation beside each."""

import math
import time

import pytest

from analytics.critical_path import covering_windows, default_lifetimes, every_window_edges
from analytics.critical_path.what_if import paths, rank, what_if
from analytics.model.answers import PathPart, Target, TargetKind
from tests.bench.bench_kernel import SECOND_NS, make_trace
from tests.support.traces_small import CONTROL, DATA, PROCESSING, UNKNOWN, WAITING, message, wait, work
from tests.support.window_graphs import many_windows, one_window

SCHEDULING, SERIALIZATION = 3, 6
MS = 1_000_000


def saved(rows, workers, target, factor):
    (window,) = what_if([one_window(rows, workers)], target, factor).windows
    assert window.status == "ok", window.reason
    return window.saved_ns


def operator(number):
    return Target(TargetKind.OPERATOR, number)


def worker(number):
    return Target(TargetKind.WORKER, number)


def activity(kind):
    return Target(TargetKind.ACTIVITY, kind)


# Figure 2 of the SnailTrail paper, times in thousands: b(1,0) c(1,3) d(1,4) e(1,5); f(2,0) g(2,1) h(2,2) i(2,5).
# Worker 0 waits b-c, works c-d-e; worker 1 works f-g-h-i; messages b-g, h-c, d-i.
FIGURE_2 = [
    wait(0, 0, 3000),
    work(0, 3000, 5000),
    work(1, 0, 5000),
    message(0, 0, 1, 1000),
    message(1, 2000, 0, 3000),
    message(0, 4000, 1, 5000),
]


@pytest.mark.parametrize(
    ("target", "factor", "wanted_ns"),
    [
        # g = max(message 1000, f-g 0) = 1000, h = 1000, c = 2000, d = 3000, e = 4000, i = max(h, d + 1000) = 4000.
        (worker(1), math.inf, 1000),
        # g = 1000, h = 1500, c = 2500, d = 3500, e = 4500, i = max(h + 1500, d + 1000) = 4500.
        (worker(1), 2.0, 500),
        # c = 3000 as before, d = e = 3000, but i = h + 3000 = 5000: worker 1 is as late as ever.
        (worker(0), math.inf, 0),
        # g = 1000 (message), h = 1000, c = 2000 (message), d = e = 2000, i = d + 1000 = 3000.
        (activity(PROCESSING), math.inf, 2000),
        # g = 1000 by its own work, h = 2000, c = 2000, d = 3000, e = 4000, i = max(h + 3000, d) = 5000.
        (activity(DATA), math.inf, 0),
    ],
)
def test_figure_2_of_the_paper(target, factor, wanted_ns):
    assert saved(FIGURE_2, 2, target, factor) == wanted_ns


# Worker 0 works on operator 7 until 10 and on until 12, then nothing is known until 15. It sends at 10; worker 1
# worked until 2, waited, receives at 11 and works on operator 8 until 15.
STRAGGLER = [
    work(0, 0, 10_000, operator=7),
    work(0, 10_000, 12_000),
    work(1, 0, 2_000),
    message(0, 10_000, 1, 11_000),
    work(1, 11_000, 15_000, operator=8),
]


@pytest.mark.parametrize(
    ("target", "factor", "wanted_ns"),
    [
        # Sends at 5, received at 6, done at 10; worker 0 itself at 5 + 2 + 3 unknown = 10.
        (operator(7), 2.0, 5_000),
        # Sends at 0, but worker 1 is busy until 2: the wait is gone, it is done at 6; worker 0 at 0 + 2 + 3 = 5.
        (operator(7), math.inf, 9_000),
        # Worker 1 done at 13, but worker 0's unknown time lasts until 15 as before.
        (operator(8), 2.0, 0),
        # The wait grows: worker 1 is there at 1 and waits until 11 all the same.
        (worker(1), 2.0, 0),
        # Worker 0: 0 + 0 + 3 unknown. Worker 1: max(2, 0 + 1) + 4 = 6.
        (worker(0), math.inf, 9_000),
        # Everything at once: worker 0 at 3 (unknown), worker 1 at max(0, 0 + 1) = 1.
        (activity(PROCESSING), math.inf, 12_000),
        (operator(99), 2.0, 0),
    ],
)
def test_a_straggler_and_who_waits_for_it(target, factor, wanted_ns):
    assert saved(STRAGGLER, 2, target, factor) == wanted_ns


def test_a_wait_that_nobody_ends_keeps_its_length():
    # Worker 1 says that it waits 2-8 but no message is recorded: 1 + 6 + 1 at twice the speed, worker 0 at 5.
    rows = [work(0, 0, 10), work(1, 0, 2), wait(1, 2, 8), work(1, 8, 10)]
    assert saved(rows, 2, activity(PROCESSING), 2.0) == 10 - 8


def test_a_wait_that_goes_on_after_the_window_holds_up_nothing():
    # Window 0-10: worker 1 works until 2 and waits until 15. Worker 0 twice as fast is done at 5, so the window is.
    rows = [work(0, 0, 20), work(1, 0, 2), message(0, 14, 1, 15), work(1, 15, 20)]
    first = many_windows(rows, 2, 10)[0]
    (window,) = what_if([first], worker(0), 2.0).windows
    assert window.saved_ns == 5


def test_nothing_before_the_window_gets_faster():
    # Window 10-20: the message left at 8 and arrives at 14: its 4 inside stay, then 3 of 6 ns of work.
    rows = [
        work(0, 0, 8), wait(0, 8, 17), work(0, 17, 20), message(1, 16, 0, 17),
        work(1, 0, 5), message(0, 8, 1, 14), work(1, 14, 20),
    ]  # fmt: skip
    second = many_windows(rows, 2, 10)[1]
    (window,) = what_if([second], worker(1), 2.0).windows
    # Worker 1: 14, sends at 15, ends at 17. Worker 0: received at 16, ends at 19.
    assert window.saved_ns == 1


def test_scheduling_for_an_operator_is_not_the_operators_work():
    rows = [work(0, 0, 6, SCHEDULING, 1), work(0, 6, 10, PROCESSING, 1)]
    assert saved(rows, 1, operator(1), math.inf) == 4
    assert saved(rows, 1, activity(SCHEDULING), math.inf) == 6


def test_the_new_path_is_told_at_new_and_old_times():
    (window,) = what_if([one_window(STRAGGLER, 2)], operator(7), math.inf).windows
    # Worker 1 until 2, no wait (0 + 1 < 2), then its work until 6.
    assert [(s.src, s.src_ns, s.dst, s.dst_ns, s.was_src_ns, s.was_dst_ns, s.type) for s in window.path] == [
        (1, 0, 1, 2_000, 0, 2_000, PROCESSING),
        (1, 2_000, 1, 2_000, 2_000, 11_000, WAITING),
        (1, 2_000, 1, 6_000, 11_000, 15_000, PROCESSING),
    ]
    assert window.limits == (PathPart(PROCESSING, 8, 1, 4_000), PathPart(PROCESSING, -1, 1, 2_000))
    assert window.steps_left_out == 0
    (short,) = what_if([one_window(STRAGGLER, 2)], operator(7), math.inf, most_steps=1).windows
    assert (short.path, short.steps_left_out) == (window.path[-1:], 2)


def told(steps):
    return [(s.src, s.src_ns, s.dst, s.dst_ns, s.type) for s in steps]


def test_the_path_as_it_is_stands_beside_the_one_it_would_be():
    # Figure 2 as it is: of the ends, i is reached by 4 paths and e by 2. Back from i: over d-i and h-i come 2 paths
    # each, the tie goes to the lower worker, so d-i; before it c-d and h-c (no other way); then g-h; before g the
    # tie of b-g and f-g goes to worker 0 again.
    found = paths(*one_window(FIGURE_2, 2), worker(1), math.inf)
    assert told(found.now) == [
        (0, 0, 1, 1000, DATA),
        (1, 1000, 1, 2000, PROCESSING),
        (1, 2000, 0, 3000, DATA),
        (0, 3000, 0, 4000, PROCESSING),
        (0, 4000, 1, 5000, DATA),
    ]
    assert all((s.src_ns, s.dst_ns) == (s.was_src_ns, s.was_dst_ns) for s in found.now)
    # Worker 1 in no time: g = h = 1000, c = 2000, d = 3000, e = i = 4000. Of e and i the lower worker's, e: its
    # work c-e took 3000-5000 and is one stretch from 2000 on.
    assert told(found.window.path) == [
        (0, 0, 1, 1000, DATA),
        (1, 1000, 1, 1000, PROCESSING),
        (1, 1000, 0, 2000, DATA),
        (0, 2000, 0, 4000, PROCESSING),
    ]
    assert (found.window.saved_ns, found.now_left_out) == (1000, 0)
    short = paths(*one_window(FIGURE_2, 2), worker(1), math.inf, most_steps=2)
    assert (short.now, short.now_left_out) == (found.now[-2:], 3)
    assert (short.window.path, short.window.steps_left_out) == (found.window.path[-2:], 2)


def test_a_window_without_a_critical_path_has_neither_path():
    rows = [work(0, 0, 10), work(1, 0, 10), message(0, 7, 1, 5)]
    found = paths(*many_windows(rows, 2, 10)[0], worker(0), 2.0)
    assert (found.now, found.window.path, found.window.saved_ns) == ((), (), 0)
    with pytest.raises(ValueError, match="at least 1"):
        paths(*many_windows(rows, 2, 10)[0], worker(0), 0.5)


def test_the_ranking_puts_first_what_saves_most():
    ranking = rank([one_window(STRAGGLER, 2)])
    assert (ranking.factors, ranking.window_count, ranking.length_ns) == ((1.5, 2.0, math.inf), 1, 15_000)
    best = [(row.target, row.saved_ns[1:]) for row in ranking.rows]
    # Twice as fast: worker 0 (5 + 1 + 3 = 9; worker 1: 5 + 1 + 4 = 10) saves no more than operator 7 alone.
    # All processing: worker 0 at 9, worker 1 at 6 + 2 = 8: 6 saved.
    assert best[0] == (activity(PROCESSING), (6_000, 12_000))
    assert best[1:3] == [(worker(0), (5_000, 9_000)), (operator(7), (5_000, 9_000))]
    # N = 2: worker 0 to its end, or over the message. CP: 10/15 of all paths for operator 7; half of 2/15 more.
    assert ranking.rows[1].cp == pytest.approx(11 / 15)
    assert ranking.rows[2].cp == pytest.approx(10 / 15)
    assert {row.target.kind for row in ranking.rows if max(row.saved_ns) == 0} == set(TargetKind)


def test_windows_without_a_critical_path_claim_nothing_and_are_counted():
    rows = [work(0, 0, 10), work(1, 0, 10), message(0, 7, 1, 5), work(0, 10, 20), work(1, 10, 20)]
    windows = many_windows(rows, 2, 10)
    assert [summary.status for summary, _ in windows] == ["clock_skew", "ok"]
    answer = what_if(windows, activity(PROCESSING), math.inf)
    assert (answer.saved_ns, answer.length_ns) == (10, 10)
    assert (answer.windows[0].saved_ns, answer.windows[0].path) == (0, ())
    assert "disagree" in answer.windows[0].reason
    ranking = rank(windows)
    assert (ranking.window_count, ranking.windows_left_out, ranking.length_ns) == (1, 1, 10)
    assert rank([]).rows == ()


@pytest.mark.parametrize("factor", [0.0, 0.99, -1.0, math.nan])
def test_making_things_slower_is_refused(factor):
    with pytest.raises(ValueError):
        what_if([], worker(0), factor)
    with pytest.raises(ValueError):
        rank([], [2.0, factor])


@pytest.mark.parametrize("kind", [UNKNOWN, WAITING])
def test_nobody_can_speed_up_what_nobody_does(kind):
    with pytest.raises(ValueError, match="cannot be made faster"):
        what_if([], activity(kind), 2.0)


def test_control_messages_can_be_made_faster_as_a_type():
    rows = [
        work(0, 0, 4), message(0, 4, 1, 8, CONTROL), wait(0, 4, 9), work(0, 9, 10),
        work(1, 0, 2), work(1, 8, 10), message(1, 9, 0, 9),
    ]  # fmt: skip
    # Sent at 4, received at 6 instead of 8: everything after is 2 earlier. At no latency 4 is the bound.
    assert saved(rows, 2, activity(CONTROL), 2.0) == 2
    assert saved(rows, 2, activity(CONTROL), math.inf) == 4
    assert saved(rows, 2, activity(DATA), math.inf) == 0


def test_ranking_a_window_of_15_000_activities_takes_well_under_a_second():
    records = make_trace(30_000, 16, 15_000)
    windows = covering_windows(records, SECOND_NS)
    found, _ = every_window_edges(records, *default_lifetimes(records, 16), windows)
    full = [(summary, edges) for summary, edges in found if summary.record_count > 15_000][:1]
    rank(full)  # compiles
    began = time.perf_counter()
    ranking = rank(full)
    assert time.perf_counter() - began < 1.0
    assert len(ranking.rows) > 50
