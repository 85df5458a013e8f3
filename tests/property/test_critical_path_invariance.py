"""What must not matter: names, clocks' zero, the order of records, how windows are grouped, where edges are cut."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.critical_path import analyse, covering_windows, trace_bounds, window_edges
from analytics.model.results import Windows, WindowSummary
from analytics.model.trace import Records
from tests.support.random_traces import random_lives, random_rows

seeds = st.integers(0, 2**32 - 1)


def make(seed: int, *, span: int = 40, dirty: bool = False):
    """A random trace with lives, and windows that cover it; times may have large gaps."""
    rng = np.random.default_rng(seed)
    workers = int(rng.integers(1, 6))
    rows = random_rows(rng, workers, span, dirty=dirty)
    records = Records.of(rows)
    bounds = trace_bounds(records) or (0, span)
    lives = random_lives(rng, workers, *bounds)
    born, died = (np.array(x, np.int64) for x in zip(*lives, strict=True))
    windows = covering_windows(bounds, int(rng.integers(2, span // 2)), int(rng.integers(-9, 10)))
    return rng, records, born, died, windows, bounds


def assert_identical(a: WindowSummary, b: WindowSummary, skip: tuple[str, ...] = ()) -> None:
    """Equal to the last bit, in every field."""
    for item in fields(WindowSummary):
        if item.name in skip:
            continue
        x, y = getattr(a, item.name), getattr(b, item.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            assert x.tobytes() == y.tobytes(), (item.name, x, y)
        else:
            assert x == y, item.name


def near(records: Records, low: int, high: int) -> Records:
    """The records that overlap an interval, as a store would hand them out."""
    first = np.minimum(records.start_ns, records.end_ns)
    last = np.maximum(records.start_ns, records.end_ns)
    return records.take((first <= high) & (last >= low))


@settings(max_examples=400, deadline=None)
@given(seeds, st.booleans())
def test_the_order_of_records_does_not_change_a_bit(seed, dirty):
    rng, records, born, died, windows, bounds = make(seed, dirty=dirty)
    before, found = analyse(records, born, died, windows, bounds_ns=bounds)
    shuffled = records.take(rng.permutation(len(records)))
    after, found_too = analyse(shuffled, born, died, windows, bounds_ns=bounds)
    for a, b in zip(before, after, strict=True):
        assert_identical(a, b)
    assert [(d.code, d.count) for d in found] == [(d.code, d.count) for d in found_too]


@settings(max_examples=600, deadline=None)
@given(seeds, st.booleans(), st.integers(0, 30))
def test_windows_may_be_grouped_in_any_way_with_only_the_records_near_them(seed, dirty, horizon):
    rng, records, born, died, windows, bounds = make(seed, dirty=dirty)
    whole, _ = analyse(records, born, died, windows, bounds_ns=bounds, horizon_ns=horizon)
    at = windows.first
    while at < windows.first + windows.count:
        count = int(rng.integers(1, windows.first + windows.count - at + 1))
        group = Windows(windows.width_ns, at, count, windows.origin_ns)
        part = near(records, group.start_ns(at) - horizon, group.start_ns(at + count) + horizon)
        part = part.take(rng.permutation(len(part)))
        summaries, _ = analyse(part, born, died, group, bounds_ns=bounds, horizon_ns=horizon)
        for summary in summaries:
            assert_identical(summary, whole[summary.index - windows.first])
        at += count


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_without_a_horizon_windows_may_still_be_asked_for_one_by_one(seed):
    _, records, born, died, windows, bounds = make(seed)
    whole, _ = analyse(records, born, died, windows, bounds_ns=bounds)
    for summary in whole:
        one = Windows(windows.width_ns, summary.index, 1, windows.origin_ns)
        alone, edges, _ = window_edges(records, born, died, one, bounds_ns=bounds)
        assert_identical(alone, summary)
        assert edges.cp.sum() == pytest.approx(summary.cp_total, abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(seeds, st.integers(-(10**18), 10**18))
def test_a_shift_in_time_changes_nothing_but_the_times(seed, shift):
    _, r, born, died, windows, bounds = make(seed)
    moved = Records(r.type, r.worker, r.peer, r.operator, r.start_ns + shift, r.end_ns + shift)
    moved_windows = Windows(windows.width_ns, windows.first, windows.count, windows.origin_ns + shift)
    before, _ = analyse(r, born, died, windows, bounds_ns=bounds)
    after, _ = analyse(
        moved, born + shift, died + shift, moved_windows, bounds_ns=(bounds[0] + shift, bounds[1] + shift)
    )
    for a, b in zip(before, after, strict=True):
        assert_identical(a, b, skip=("start_ns", "end_ns", "reason"))


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_renaming_workers_renames_the_results(seed):
    rng, r, born, died, windows, bounds = make(seed)
    n = len(born)
    names = rng.permutation(n).astype(np.int32)
    peer = np.where(r.peer < 0, r.peer, names[r.peer]).astype(np.int32)
    renamed = Records(r.type, names[r.worker], peer, r.operator, r.start_ns, r.end_ns)
    back = np.argsort(names)
    before, _ = analyse(r, born, died, windows, bounds_ns=bounds)
    after, _ = analyse(renamed, born[back], died[back], windows, bounds_ns=bounds)
    for a, b in zip(before, after, strict=True):
        assert (a.status, a.record_count) == (b.status, b.record_count)
        assert a.log10_paths == pytest.approx(b.log10_paths, abs=1e-12)
        assert a.activity_cp == pytest.approx(b.activity_cp, abs=1e-12)
        assert a.operator_cp == pytest.approx(b.operator_cp, abs=1e-12)
        mine = dict(zip(names[a.worker_ids].tolist(), a.worker_cp.tolist(), strict=True))
        assert mine == pytest.approx(
            dict(zip(b.worker_ids.tolist(), b.worker_cp.tolist(), strict=True)), abs=1e-12
        )


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_cutting_an_activity_in_two_leaves_all_sums(seed):
    rng, r, born, died, windows, bounds = make(seed)
    long = np.flatnonzero((r.peer < 0) & (r.end_ns - r.start_ns >= 2))
    if not len(long):
        return
    i = int(rng.choice(long))
    middle = int(rng.integers(r.start_ns[i] + 1, r.end_ns[i]))
    # Where others are nested or meet, a cut makes another trace: only an activity alone in its time is cut.
    same = (r.worker == r.worker[i]) & (r.peer < 0)
    alone = same & (r.start_ns <= r.end_ns[i]) & (r.end_ns >= r.start_ns[i])
    touching = same & ((r.start_ns == r.end_ns[i]) | (r.end_ns == r.start_ns[i]))
    if (alone & ~touching).sum() != 1:
        return
    twice = Records.concat([r, r.take(np.array([i]))])
    twice.end_ns[i] = middle
    twice.start_ns[-1] = middle
    before, _ = analyse(r, born, died, windows, bounds_ns=bounds)
    after, _ = analyse(twice, born, died, windows, bounds_ns=bounds)
    for a, b in zip(before, after, strict=True):
        assert (a.status, a.log10_paths) == (b.status, b.log10_paths)
        for name in ("activity_cp", "activity_conventional", "worker_cp", "operator_cp", "channel_cp"):
            assert getattr(a, name) == pytest.approx(getattr(b, name), abs=1e-12)


@settings(max_examples=300, deadline=None)
@given(seeds, st.booleans())
def test_critical_participation_adds_up_to_one_whenever_it_is_given(seed, dirty):
    _, records, born, died, windows, bounds = make(seed, dirty=dirty)
    summaries, _ = analyse(records, born, died, windows, bounds_ns=bounds)
    for s in summaries:
        local_and_messages = float(s.worker_cp.sum() + s.channel_cp.sum())
        expected = 1.0 if s.status == "ok" else 0.0
        assert s.cp_total == pytest.approx(expected, abs=1e-9)
        assert local_and_messages == pytest.approx(expected, abs=1e-9)
        assert s.activity_cp[12] == 0.0
        assert np.all(s.activity_cp >= 0)
