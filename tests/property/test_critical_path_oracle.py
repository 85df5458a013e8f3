"""The kernel equals brute-force path enumeration and exact counting on thousands of small random traces."""

import math

import numpy as np
import pytest

from analytics.critical_path import analyse, window_edges
from analytics.critical_path.windows import covering_windows, trace_bounds
from analytics.model.results import Windows
from analytics.model.trace import Records
from tests.support import oracle
from tests.support.random_traces import random_lives, random_rows

GROUPS = {
    "activity": lambda e: e.type,
    "worker": lambda e: e.src[0] if e.local else None,
    "operator": lambda e: (e.operator, e.type) if e.local and e.operator >= 0 else None,
    "channel": lambda e: (e.src[0], e.dst[0], e.type) if not e.local else None,
}


def recorded_work(e):
    return e.src[0] if e.local and e.type not in (oracle.UNKNOWN, oracle.WAITING) else None


def groups_of(summary, what):
    """A summary's groups as dictionaries."""
    s = summary
    value = {"cp": "_cp", "conventional": "_conventional"}[what]
    operator_keys = zip(s.operator_ids.tolist(), s.operator_types.tolist(), strict=True)
    channel_keys = zip(s.channel_src.tolist(), s.channel_dst.tolist(), s.channel_types.tolist(), strict=True)
    return {
        "activity": dict(enumerate(getattr(s, "activity" + value).tolist())),
        "worker": dict(zip(s.worker_ids.tolist(), getattr(s, "worker" + value).tolist(), strict=True)),
        "operator": dict(zip(operator_keys, getattr(s, "operator" + value).tolist(), strict=True)),
        "channel": dict(zip(channel_keys, getattr(s, "channel" + value).tolist(), strict=True)),
    }


def assert_same(found: dict, expected: dict, where: str) -> None:
    for key in found.keys() | expected.keys():
        assert found.get(key, 0.0) == pytest.approx(float(expected.get(key, 0)), abs=1e-12), (where, key)


def assert_equal(summary, answer, rows) -> None:
    expected = answer.status
    touching = [r for r in rows if overlaps(r, summary.start_ns, summary.end_ns)]
    assert summary.record_count == len(touching)
    if not answer.edges and not touching:
        expected = "empty"
    assert summary.status == expected, summary.reason
    assert (summary.reason == "") == (expected == "ok")
    if expected == "ok":
        assert summary.log10_paths == pytest.approx(math.log10(answer.paths), abs=1e-12)
        assert summary.cp_total == pytest.approx(1.0, abs=1e-9)
    else:
        assert summary.log10_paths == summary.cp_total == 0.0
    cp, conventional = groups_of(summary, "cp"), groups_of(summary, "conventional")
    for name, key in GROUPS.items():
        assert_same(cp[name], answer.cp(key), f"cp of {name}")
        if name != "worker":
            assert_same(conventional[name], answer.conventional(key), f"conventional {name}")
            if name != "activity":
                assert conventional[name].keys() == {key(e) for e in answer.edges} - {None}
    assert_same(conventional["worker"], answer.conventional(recorded_work), "conventional worker")
    ran = {}
    for e in answer.edges:
        if e.local and e.operator >= 0:
            ran.setdefault((e.operator, e.type), set()).add(e.src[0])
    assert summary.operator_workers.tolist() == [len(ran[key]) for key in sorted(ran)]


def overlaps(row, ts, te) -> bool:
    low, high = min(row[4:]), max(row[4:])
    return low < te and high > ts if low < high else ts <= low <= te


def assert_edges_equal(edges, answer) -> None:
    """Every edge of the oracle lies within one of the kernel's with the same share; messages are the same."""
    found = list(zip(edges.src.tolist(), edges.src_ns.tolist(), edges.dst.tolist(), edges.dst_ns.tolist(),
                     edges.type.tolist(), edges.operator.tolist(), edges.share.tolist(), strict=True))  # fmt: skip
    messages = sorted(e[:6] for e in found if e[0] != e[2])
    expected = sorted((*e.src, *e.dst, e.type, e.operator) for e in answer.edges if e.src[0] != e.dst[0])
    assert messages == expected
    for e, share in zip(answer.edges, answer.shares, strict=True):
        holders = [
            f for f in found
            if f[0] == e.src[0] and f[2] == e.dst[0] and f[4:6] == (e.type, e.operator)
            and f[1] <= e.src[1] and e.dst[1] <= f[3] and (e.local or (f[1], f[3]) == (e.src[1], e.dst[1]))
        ]  # fmt: skip
        assert any(f[6] == pytest.approx(float(share), abs=1e-12) for f in holders), e
    np.testing.assert_allclose(edges.cp, edges.share * (edges.dst_ns - edges.src_ns) / answer.length)


def assert_path_is_critical(edges, ts, te, status) -> None:
    """The representative path leads from the window's start to its end without a hole or a wait."""
    chosen = np.flatnonzero(edges.on_path)
    if status != "ok":
        assert not len(chosen)
        return
    steps = [((edges.src[i], edges.src_ns[i]), (edges.dst[i], edges.dst_ns[i])) for i in chosen]
    assert all(edges.type[i] != oracle.WAITING and edges.share[i] > 0 for i in chosen)
    assert int((edges.dst_ns - edges.src_ns)[chosen].sum()) == te - ts
    sources, targets = {a for a, _ in steps}, {b for _, b in steps}
    assert len(sources) == len(targets) == len(steps)
    (start,), (end,) = sources - targets, targets - sources
    assert start[1] == ts
    assert end[1] == te


def check_trace(rng, *, dirty: bool, horizon: int | None = None) -> list[str]:
    workers, span = int(rng.integers(1, 5)), int(rng.integers(4, 16))
    rows = random_rows(rng, workers, span, dirty=dirty)
    records = Records.of(rows)
    bounds = trace_bounds(records)
    if bounds is None or bounds[0] == bounds[1]:
        return []
    whole = horizon is not None  # the oracle knows a horizon for gaps only, not for lives
    lives = [bounds] * workers if whole else random_lives(rng, workers, *bounds)
    born, died = (np.array(x, np.int64) for x in zip(*lives, strict=True))
    windows = covering_windows(bounds, int(rng.integers(2, span + 3)), int(rng.integers(-5, 6)))
    summaries, _ = analyse(records, born, died, windows, horizon_ns=horizon)
    for k, summary in enumerate(summaries):
        ts, te = summary.start_ns, summary.end_ns
        limit = float("inf") if horizon is None else horizon
        answer = oracle.solve(rows, lives, ts, te, horizon=limit)
        assert_equal(summary, answer, rows)
        if 0 < answer.paths <= 300:
            walked = oracle.solve(rows, lives, ts, te, horizon=limit, walk=True)
            assert (walked.paths, walked.shares) == (answer.paths, answer.shares)
        one = Windows(windows.width_ns, windows.first + k, 1, windows.origin_ns)
        _, edges, _ = window_edges(records, born, died, one, bounds_ns=bounds, horizon_ns=horizon)
        assert_edges_equal(edges, answer)
        assert_path_is_critical(edges, ts, te, summary.status)
    return [s.status.value for s in summaries]


@pytest.mark.parametrize("block", range(8))
def test_the_kernel_equals_path_enumeration_on_random_traces(block):
    rng = np.random.default_rng([20180409, block])
    seen = [status for _ in range(250) for status in check_trace(rng, dirty=False)]
    assert seen.count("ok") > 200
    assert {"no_critical_path", "cycle"} <= set(seen)


@pytest.mark.parametrize("block", range(4))
def test_the_kernel_equals_path_enumeration_on_dirty_traces(block):
    rng = np.random.default_rng([95, block])
    seen = [status for _ in range(250) for status in check_trace(rng, dirty=True)]
    assert {"ok", "no_critical_path", "cycle", "clock_skew"} <= set(seen)


def test_a_horizon_turns_long_waits_into_unknown_just_as_the_oracle_says():
    rng = np.random.default_rng(7)
    for _ in range(250):
        check_trace(rng, dirty=False, horizon=int(rng.integers(0, 6)))
