"""Counting paths beyond what doubles hold, against whole numbers of any size."""

import math
from fractions import Fraction

import numpy as np
import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from analytics.critical_path.counts import add, log10_of, relative_difference
from analytics.model.trace import Records
from tests.bench.bench_kernel import make_trace
from tests.support import oracle
from tests.support.traces_small import CONTROL, PROCESSING, message, work

STEP = 2**256


def as_fraction(mantissa: float, exponent: int) -> Fraction:
    return Fraction(mantissa) * Fraction(STEP) ** exponent


def scaled(number: int) -> tuple[float, int]:
    """A whole number as mantissa and exponent."""
    exponent = 0
    while number >= STEP ** (exponent + 1):
        exponent += 1
    return float(Fraction(number, STEP**exponent)), exponent


def test_sums_of_numbers_of_all_sizes_keep_53_bits():
    rng = np.random.default_rng(1)
    for _ in range(2000):
        a, b = (int(rng.integers(0, 10)) << int(rng.integers(0, 1500)) for _ in range(2))
        total = add(*scaled(a), *scaled(b))
        assert abs(as_fraction(*total) - (a + b)) <= Fraction(a + b, 2**53)
        assert total == add(*scaled(b), *scaled(a))
        assert total[0] == 0 or 1 <= total[0] < 2.0**256


def test_logarithms_and_differences_of_scaled_numbers():
    assert log10_of(*scaled(10**1700)) == pytest.approx(1700, abs=1e-9)
    assert relative_difference(*scaled(10**400), *scaled(10**400)) == 0
    assert relative_difference(*scaled(STEP), *scaled(STEP - 2**210)) < 1e-12
    assert relative_difference(0.0, 0, 0.0, 0) == 0
    assert relative_difference(1.0, 0, 0.0, 0) == math.inf
    assert relative_difference(1.0, 5, 1.0, 2) == math.inf


def barriers(workers: int, rounds: int):
    """A coordinator (worker 0) gathers from and releases all others, again and again.

    Round r takes 100 ns: work of 60 + (w mod 7) ns, a message to the coordinator that arrives at 80, one back
    that arrives at 100. After the last round everyone works 100 ns more.
    """
    rows = []
    for w in range(1, workers + 1):
        for r in range(rounds):
            t = 100 * r
            done = t + 60 + w % 7
            rows += [work(w, t, done), message(w, done, 0, t + 80), message(0, t + 85, w, t + 100, CONTROL)]
        rows.append(work(w, 100 * rounds, 100 * rounds + 100))
    rows += [work(0, 100 * r + 80, 100 * r + 85, kind=5) for r in range(rounds)]
    return rows


def test_fifty_workers_and_a_thousand_barriers_make_10_to_the_1700_paths_with_exact_shares():
    workers, rounds = 50, 1000
    records = Records.of(barriers(workers, rounds))
    length = 100 * rounds + 100
    (summary,), _ = analyse(
        records, *default_lifetimes(records, workers + 1), covering_windows(records, length)
    )
    # Paths up to the coordinator's release of round r: it is alone at first (its Unknown start), then all gather.
    total = (1 + workers) * workers ** (rounds - 1) * (workers + 1)  # its Unknown end is one more way out
    assert summary.log10_paths == pytest.approx(math.log10(total // 10**1600) + 1600, abs=1e-9)
    assert summary.log10_paths > 1690
    assert summary.cp_total == pytest.approx(1, abs=1e-11)
    # Every path is in round 0 on a worker (or the coordinator, one of 51), in the other rounds on one of 50.
    each = []
    for w in range(1, workers + 1):
        busy = 60 + w % 7
        ns = Fraction(busy, workers + 1) + (rounds - 1) * Fraction(busy, workers) + Fraction(100, workers + 1)
        each.append(float(ns / length))
    assert summary.worker_cp[1:] == pytest.approx(each, rel=1e-11, abs=1e-14)
    coordinator = Fraction(80, workers + 1) + 5 * rounds + Fraction(115, workers + 1)
    assert summary.worker_cp[0] == pytest.approx(float(coordinator / length), rel=1e-11)
    back = (rounds - 1) * 15 + Fraction(15 * workers, workers + 1)
    assert summary.activity_cp[CONTROL] == pytest.approx(float(back / length), rel=1e-11)


def test_a_realistic_trace_equals_exact_counting_with_whole_numbers():
    records = make_trace(2400, 8, 2400, seed=5)
    names = ("type", "worker", "peer", "operator", "start_ns", "end_ns")
    rows = list(zip(*(getattr(records, name).tolist() for name in names), strict=True))
    born, died = default_lifetimes(records, 8)
    lives = list(zip(born.tolist(), died.tolist(), strict=True))
    windows = covering_windows(records, 400_000_000)
    summaries, _ = analyse(records, born, died, windows)
    assert len(summaries) >= 3
    for s in summaries:
        exact = oracle.solve(rows, lives, s.start_ns, s.end_ns)
        assert s.status == exact.status == "ok"
        assert s.log10_paths == pytest.approx(math.log10(exact.paths), abs=1e-11)
        for kind, cp in exact.cp(lambda e: e.type).items():
            assert s.activity_cp[kind] == pytest.approx(float(cp), abs=1e-11)
        by_worker = exact.cp(lambda e: e.src[0] if e.local else None)
        assert s.worker_cp == pytest.approx([float(by_worker[w]) for w in s.worker_ids.tolist()], abs=1e-11)
    assert max(s.log10_paths for s in summaries) > 5
    assert summaries[0].activity_cp[PROCESSING] > 0
