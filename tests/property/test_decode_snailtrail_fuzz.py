"""SnailTrail logs: what was written is read; cut or damaged at any byte, they never fail."""

from collections import defaultdict
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.decode.snailtrail_pairs import match_brackets
from analytics.model.activity import ActivityType
from tests.support.formats import (
    DATA,
    END,
    RECEIVED,
    SENT,
    START,
    every_cut_is_understood,
    every_flip_is_survived,
    packed,
    read,
    said,
)
from tests.support.random_traces import random_rows

T0 = 1_700_000_000_000_000_001
LOG = [
    (T0, 300, 4, START, -1, -1, 7),
    (T0 + 9, 300, 4, END, -1, -1, 7),
    (T0 + 3, 300, DATA, SENT, 70_000, 2, -1),
    (T0 + 5, 2, DATA, RECEIVED, 70_000, 300, -1),
]
SMALL = packed(LOG)
RECORD_ENDS = [len(packed(LOG[:count])) for count in range(len(LOG))]
per_case = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def as_log(rows: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    log = []
    for at, (kind, worker, peer, operator, start_ns, end_ns) in enumerate(rows):
        ends = ((start_ns, START), (end_ns, END))
        if peer >= 0:
            log.append((T0 + start_ns, worker, kind, SENT, at, peer, operator))
            log.append((T0 + end_ns, peer, kind, RECEIVED, at, worker, operator))
        else:
            log += [(T0 + time, worker, kind, event, at, -1, operator) for time, event in ends]
    return log


@per_case
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_a_random_trace_is_read_back(tmp_path: Path, seed: int, workers: int, dirty: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, workers, 12, dirty=dirty)
    log = as_log(rows)
    shuffled = [log[at] for at in rng.permutation(len(log))]
    batch = read(tmp_path, packed(shuffled), "snailtrail")
    assert batch.diagnostics == ()
    assert said(batch) == sorted(
        (
            (
                ActivityType(kind).label,
                f"worker {worker}",
                f"worker {peer}" if peer >= 0 else None,
                f"operator {operator}" if operator >= 0 else None,
                T0 + start_ns,
                T0 + end_ns,
            )
            for kind, worker, peer, operator, start_ns, end_ns in rows
        ),
        key=repr,
    )


def stack_oracle(events: list[tuple[int, int, bool]]) -> tuple[list[tuple[int, ...]], list[int], list[int]]:
    """Pairs (key, start, end), unmatched starts and ends, by the rule in words, one event at a time."""
    instants: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for key, at, is_end in events:
        instants[key, at][is_end] += 1
    open_: dict[int, list[int]] = defaultdict(list)
    pairs, lonely_ends = [], []
    for (key, at), (starts, ends) in sorted(instants.items()):
        before = min(ends, len(open_[key]))
        pairs += [(key, open_[key].pop(), at) for _ in range(before)]
        within = min(ends - before, starts)
        pairs += [(key, at, at)] * within
        open_[key] += [at] * (starts - within)
        lonely_ends += [at] * (ends - before - within)
    return sorted(pairs), sorted(at for left in open_.values() for at in left), sorted(lonely_ends)


@per_case
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans()), max_size=14))
def test_brackets_match_as_with_a_stack(events: list[tuple[int, int, bool]]) -> None:
    key, at, is_end = (np.array(column) for column in (zip(*events, strict=True) if events else [()] * 3))
    key, at, is_end = key.astype(np.int64), at.astype(np.int64), is_end.astype(np.bool_)
    starts, ends = match_brackets(key, at, is_end)
    assert (key[starts] == key[ends]).all()
    left = np.setdiff1d(np.arange(len(key)), np.concatenate([starts, ends]))
    found = (
        sorted(zip(key[starts].tolist(), at[starts].tolist(), at[ends].tolist(), strict=True)),
        sorted(at[left][~is_end[left]].tolist()),
        sorted(at[left][is_end[left]].tolist()),
    )
    assert found == stack_oracle(events)


def test_cut_at_every_byte(tmp_path: Path) -> None:
    outcomes = every_cut_is_understood(tmp_path, SMALL, "snailtrail", RECORD_ENDS)
    assert outcomes[-1] == 1  # the activity: the message lost its end
    assert any("within record 1" in str(outcome) for outcome in outcomes)


@per_case
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255))
def test_damaged_at_any_byte(tmp_path: Path, at: int, value: int) -> None:
    every_flip_is_survived(tmp_path, SMALL, "snailtrail", at, value)


@per_case
@given(st.binary(max_size=60))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    every_flip_is_survived(tmp_path, data + b"\0", "snailtrail", 0, 0)
