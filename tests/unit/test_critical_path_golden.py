"""The worked examples of the SnailTrail paper (figures 2 and 3), and a wait that a window's border cuts."""

import numpy as np
import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes, window_edges
from analytics.model.trace import Records
from tests.support.traces_small import DATA, PROCESSING, message, work

EXACT = 1e-12


def solve(rows, workers, width):
    records = Records.of(rows)
    born, died = default_lifetimes(records, workers)
    windows = covering_windows(records, width)
    summaries, diagnostics = analyse(records, born, died, windows)
    assert diagnostics == []
    return records, born, died, windows, summaries


def cp_by_edge(edges):
    keys = zip(
        edges.src.tolist(), edges.src_ns.tolist(), edges.dst.tolist(), edges.dst_ns.tolist(), strict=True
    )
    return dict(zip(keys, zip(edges.cp.tolist(), edges.share.tolist(), strict=True), strict=True))


FIGURE_2 = [
    work(0, 3, 4), work(0, 4, 5), work(1, 0, 1), work(1, 1, 2), work(1, 2, 5),
    message(0, 0, 1, 1), message(1, 2, 0, 3), message(0, 4, 1, 5),
]  # fmt: skip


def test_figure_2_of_the_paper_has_six_paths_and_the_printed_shares():
    *given, (summary,) = solve(FIGURE_2, 2, 5)
    assert summary.log10_paths == pytest.approx(np.log10(6), abs=EXACT)
    assert summary.cp_total == pytest.approx(1, abs=EXACT)
    _, edges, _ = window_edges(*given)
    found = cp_by_edge(edges)
    expected = {
        (0, 0, 1, 1): (1 / 10, 3), (1, 0, 1, 1): (1 / 10, 3), (1, 1, 1, 2): (1 / 5, 6), (1, 2, 0, 3): (2 / 15, 4),
        (1, 2, 1, 5): (1 / 5, 2), (0, 3, 0, 4): (2 / 15, 4), (0, 4, 0, 5): (1 / 15, 2), (0, 4, 1, 5): (1 / 15, 2),
        (0, 0, 0, 3): (0, 0),
    }  # fmt: skip
    assert found.keys() == expected.keys()
    for key, (cp, count) in expected.items():
        assert found[key] == pytest.approx((cp, count / 6), abs=EXACT)


FIGURE_3 = [
    work(0, 0, 1), work(0, 1, 4), work(0, 5, 7),
    work(1, 0, 2), work(1, 2, 3), work(1, 3, 4), work(1, 4, 5), work(1, 5, 7),
    work(2, 0, 2), work(2, 2, 5), work(2, 6, 7),
    message(0, 1, 1, 2), message(2, 2, 1, 3), message(1, 4, 0, 5), message(1, 5, 2, 6),
]  # fmt: skip


def test_figure_3_of_the_paper_gives_nothing_to_its_two_longest_activities():
    *given, (summary,) = solve(FIGURE_3, 3, 7)
    assert summary.log10_paths == pytest.approx(np.log10(9), abs=EXACT)
    _, edges, _ = window_edges(*given)
    found = cp_by_edge(edges)
    expected = {
        (1, 3, 1, 4): 1 / 7,
        **dict.fromkeys([(1, 2, 1, 3), (1, 4, 1, 5)], 2 / 21),
        **dict.fromkeys([(0, 5, 0, 7), (1, 0, 1, 2), (1, 5, 1, 7), (2, 0, 2, 2)], 2 / 21),
        **dict.fromkeys([(0, 0, 0, 1), (0, 1, 1, 2), (2, 2, 1, 3)], 1 / 21),
        **dict.fromkeys([(1, 4, 0, 5), (1, 5, 2, 6), (2, 6, 2, 7)], 1 / 21),
        **dict.fromkeys([(0, 1, 0, 4), (2, 2, 2, 5), (0, 4, 0, 5), (2, 5, 2, 6)], 0),
    }  # fmt: skip
    assert {key: cp for key, (cp, _) in found.items()} == pytest.approx(expected, abs=EXACT)
    assert summary.activity_cp[PROCESSING] == pytest.approx(1 - 4 / 21, abs=EXACT)
    assert summary.activity_cp[DATA] == pytest.approx(4 / 21, abs=EXACT)
    assert summary.worker_cp == pytest.approx([3 / 21, 11 / 21, 3 / 21], abs=EXACT)


def test_a_wait_across_a_border_stays_a_wait_in_both_windows():
    # Worker 1 works for 0.2 s, then waits for what worker 0 sends at 2.4 s and it receives at 2.5 s.
    second = 1_000_000_000
    rows = [work(0, 0, 3 * second), work(1, 0, second // 5), work(1, second * 5 // 2, 3 * second)]
    rows.append(message(0, second * 12 // 5, 1, second * 5 // 2))
    *_, summaries = solve(rows, 2, second)
    for summary in summaries[:2]:
        assert summary.log10_paths == 0
        assert summary.worker_cp == pytest.approx([1, 0], abs=EXACT)
    third = summaries[2]
    assert third.log10_paths == pytest.approx(np.log10(2), abs=EXACT)
    assert third.worker_cp == pytest.approx([0.70, 0.25], abs=EXACT)
    assert third.channel_cp == pytest.approx([0.05], abs=EXACT)


def test_the_conventional_profile_adds_up_what_runs_in_parallel():
    *_, (summary,) = solve(FIGURE_3, 3, 7)
    assert summary.activity_conventional[PROCESSING] == pytest.approx(19 / 7, abs=EXACT)
    assert summary.activity_conventional[DATA] == pytest.approx(4 / 7, abs=EXACT)
    assert summary.worker_conventional == pytest.approx([6 / 7, 1, 6 / 7], abs=EXACT)
    assert summary.record_count == len(FIGURE_3)
