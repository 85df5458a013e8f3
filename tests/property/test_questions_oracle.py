"""Re-timing and chains of waits equal slow ones written from the definitions; and what always holds."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from analytics.critical_path.retiming import last_moments, prepare
from analytics.critical_path.what_if import FACTORS, paths, rank, what_if
from analytics.critical_path.why import why
from analytics.model.answers import Target, TargetKind
from analytics.model.trace import Records
from tests.support.random_traces import random_rows
from tests.support.traces_small import UNKNOWN, WAITING
from tests.support.window_graphs import MESSAGES, chain, is_work, listed, many_windows, retimed

SCHEDULING = 3


def random_windows(seed, traces):
    """Windows of any status of random traces."""
    rng = np.random.default_rng(seed)
    for _ in range(traces):
        workers, span = int(rng.integers(1, 5)), int(rng.integers(4, 30))
        rows = random_rows(rng, workers, span, dirty=bool(rng.random() < 0.2))
        records = Records.of(rows)
        if len(records):
            yield from many_windows(rows, workers, int(rng.integers(2, span + 3)))


def fine_windows(seed, traces):
    return ((s, e) for s, e in random_windows(seed, traces) if s.status == "ok")


def is_target(target):
    """Which edges a target is about, from the definition."""
    if target.kind is TargetKind.ACTIVITY:
        return lambda e: e[4] == target.id and e[4] not in (UNKNOWN, WAITING)
    if target.kind is TargetKind.WORKER:
        return lambda e: is_work(e) and e[0] == target.id
    return lambda e: is_work(e) and e[5] == target.id and e[4] != SCHEDULING


@pytest.mark.parametrize("block", range(4))
def test_re_timing_equals_a_slow_one_in_fractions(block):
    seen = gained = 0
    for summary, edges in fine_windows([11, block], 150):
        length = summary.end_ns - summary.start_ns
        for row in rank([(summary, edges)]).rows:
            for factor, saved in zip(FACTORS, row.saved_ns, strict=True):
                last, _ = retimed(
                    listed(edges), summary.start_ns, summary.end_ns, is_target(row.target), factor
                )
                assert abs(length - last - saved) <= Fraction(1, 2)  # whole nanoseconds
                gained += saved > 0
                seen += 1
    assert seen > 1000
    assert gained > 100


@pytest.mark.parametrize("block", range(2))
def test_every_vertex_of_the_new_path_is_where_the_slow_one_puts_it(block):
    rng = np.random.default_rng([12, block])
    for summary, edges in fine_windows([13, block], 150):
        target = Target(TargetKind.WORKER, int(rng.choice(edges.src)))
        factor = float(rng.choice([1.0, 2.0, 4.0, math.inf]))
        (window,) = what_if([(summary, edges)], target, factor).windows
        last, at = retimed(listed(edges), summary.start_ns, summary.end_ns, is_target(target), factor)
        assert window.path[-1].dst_ns - summary.start_ns == pytest.approx(float(last), abs=0.5)
        for step in window.path:
            assert step.src_ns - summary.start_ns == pytest.approx(
                float(at[step.src, step.was_src_ns]), abs=0.5
            )
            assert step.dst_ns - summary.start_ns == pytest.approx(
                float(at[step.dst, step.was_dst_ns]), abs=0.5
            )
        for a, b in zip(window.path, window.path[1:], strict=False):
            assert (a.dst, a.dst_ns, a.was_dst_ns) == (b.src, b.src_ns, b.was_src_ns)


def test_the_path_as_it_is_goes_through_the_whole_window_over_marked_edges():
    for summary, edges in fine_windows(19, 200):
        steps = paths(summary, edges, Target(TargetKind.WORKER, 0), 2.0).now
        assert (steps[0].src_ns, steps[-1].dst_ns) == (summary.start_ns, summary.end_ns)
        for a, b in pairwise(steps):
            assert (a.dst, a.dst_ns) == (b.src, b.src_ns)
        marked = [edge for edge, is_on in zip(listed(edges), edges.on_path, strict=True) if is_on]
        assert sum(e[3] - e[1] for e in marked) == summary.end_ns - summary.start_ns
        for e in marked:  # each lies in the one step of its worker, type and operator
            alike = [s for s in steps if (s.src, s.dst, s.type, s.operator) == (e[0], e[2], e[4], e[5])]
            assert any(s.src_ns <= e[1] and e[3] <= s.dst_ns for s in alike)


def test_the_recorded_speed_saves_nothing_and_more_speed_never_less():
    factors = (1.0, 1.1, 1.5, 2.0, 3.0, 10.0, 1e6, math.inf)
    for window in fine_windows(14, 300):
        for row in rank([window], factors).rows:
            assert row.saved_ns[0] == 0
            assert list(row.saved_ns) == sorted(row.saved_ns)


def test_participation_is_the_upper_bound_of_what_can_be_saved():
    for summary, edges in fine_windows(15, 300):
        length = summary.end_ns - summary.start_ns
        for row in rank([(summary, edges)]).rows:
            for factor, saved in zip(FACTORS, row.saved_ns, strict=True):
                assert saved <= (1 - 1 / factor) * row.cp * length + 0.5 + 1e-9


def test_with_all_work_infinitely_fast_messages_unknown_and_unexplained_waits_remain():
    for summary, edges in fine_windows(16, 200):
        rows = listed(edges)
        window = prepare(edges, summary.start_ns, summary.end_ns)
        work = np.array([is_work(edge) for edge in rows])
        (last,) = last_moments(window, np.where(work, 0, -1), 1, np.array([math.inf]))[0]
        expected, _ = retimed(rows, summary.start_ns, summary.end_ns, is_work, math.inf)
        assert last == float(expected)
        everything = np.zeros(len(rows), np.int64)
        (rest,) = last_moments(window, everything, 1, np.array([math.inf]))[0]
        assert rest == window.earliest_ns.max()  # the window's start, or a worker that is added later


@pytest.mark.parametrize("block", range(3))
def test_chains_of_waits_equal_slow_ones(block):
    seen = 0
    for summary, edges in random_windows([17, block], 150):
        rows = listed(edges)
        hops = 4
        wanted = {}
        waits = [e for e in rows if e[4] == WAITING and e[3] < summary.end_ns]
        explained = [e for e in waits if chain(rows, e, 1)[0]]
        for wait in explained:
            for hop, found in enumerate(chain(rows, wait, hops), 1):
                for edge in (rows[i] for i in found):
                    sums = wanted.setdefault((hop, edge[4], edge[5], edge[0]), [0, 0, 0])
                    sums[0] += 1
                    sums[1] += edge[3] - edge[1]
                    sums[2] += max(0, min(edge[3], wait[3]) - max(edge[1], wait[1]))
        answer = why(summary, edges, hops=hops)
        assert (answer.wait_count, answer.uncaused_count) == (len(explained), len(waits) - len(explained))
        assert answer.wait_ns == sum(e[3] - e[1] for e in explained)
        found = {
            (g.hop, g.type, g.operator, g.worker): [g.count, g.duration_ns, g.during_ns]
            for g in answer.groups
        }
        assert found == wanted
        for group in answer.groups:
            e = group.example
            assert (e.src, e.src_ns, e.dst, e.dst_ns, group.type, group.operator) in rows
        seen += len(explained)
    assert seen > 20


def test_messages_are_the_only_edges_between_workers():
    for _, edges in random_windows(18, 50):
        assert all(e[0] == e[2] or e[4] in MESSAGES for e in listed(edges))
