"""Chrome traces: what was written is read; cut or damaged at any byte, they never fail."""

import json
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.decode.chrome_out import chrome_trace
from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from analytics.model.trace import Records
from tests.support.formats import every_cut_is_understood, every_flip_is_survived, read, said
from tests.support.random_traces import random_rows

T0 = 1_700_000_000_000_000_001
per_case = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EVENTS = [
    {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "wörker"}},
    {"ph": "X", "pid": 1, "tid": 1, "name": "map", "ts": 1.5, "dur": 2.25, "cat": "buffer"},
    {"ph": "B", "pid": 1, "tid": 2, "name": "x", "ts": 12},
    {"ph": "E", "pid": 1, "tid": 2, "ts": 13e0},
    {"ph": "s", "pid": 1, "tid": 1, "name": "m", "cat": "c", "id": 1, "ts": 2},
    {"ph": "f", "pid": 1, "tid": 2, "name": "m", "cat": "c", "id": 1, "ts": 3},
]
SMALL = json.dumps(
    {"traceEvents": EVENTS, "baseTimeNanoseconds": 123, "x": [{}]}, ensure_ascii=False
).encode()


def as_edges(rows: list[tuple[int, ...]]) -> WindowEdges:
    found = Records.of([(*row[:4], T0 + row[4], T0 + row[5]) for row in rows])
    receiver = np.where(found.peer < 0, found.worker, found.peer)
    share = np.linspace(0, 1, len(rows))
    return WindowEdges(
        found.worker,
        found.start_ns,
        receiver,
        found.end_ns,
        found.type,
        found.operator,
        share,
        share,
        share > 0.5,
    )


@per_case
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_a_random_trace_is_read_back(tmp_path: Path, seed: int, workers: int, dirty: bool) -> None:
    rows = random_rows(np.random.default_rng(seed), workers, 12, dirty=dirty)
    names, operators = [f"w{number}" for number in range(workers)], ["a", "b", "c"]
    batch = read(tmp_path, b"".join(chrome_trace([as_edges(rows)], names, operators)), "chrome")
    assert batch.diagnostics == ()
    expected = [
        (
            ActivityType(kind).label,
            names[worker],
            names[peer] if peer >= 0 else None,
            operators[operator] if operator >= 0 else None,
            T0 + start_ns,
            T0 + end_ns,
        )
        for kind, worker, peer, operator, start_ns, end_ns in rows
    ]
    assert said(batch) == sorted(expected, key=repr)


def test_cut_at_every_byte(tmp_path: Path) -> None:
    outcomes = [
        len(found.split(":")) if isinstance(found, str) else found
        for found in cuts_keep_what_is_whole(tmp_path)
    ]
    assert outcomes[-1] == 3


def cuts_keep_what_is_whole(tmp_path: Path) -> list[int | str]:
    return every_cut_is_understood(tmp_path, SMALL, "chrome")


@per_case
@given(st.integers(0, len(SMALL) - 1), st.integers(1, 255))
def test_damaged_at_any_byte(tmp_path: Path, at: int, value: int) -> None:
    every_flip_is_survived(tmp_path, SMALL, "chrome", at, value)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.sampled_from("XBEstfbeSFMC"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)
FIELDS = st.sampled_from(["ph", "pid", "tid", "name", "ts", "dur", "cat", "id", "id2", "args", "scope"])


@per_case
@given(st.sampled_from(EVENTS), st.dictionaries(FIELDS, VALUES, max_size=4), VALUES)
def test_any_value_in_any_field_gives_a_record_or_a_diagnostic(
    tmp_path: Path, event: dict[str, object], changes: dict[str, object], base: object
) -> None:
    data = json.dumps({"traceEvents": [event | changes], "baseTimeNanoseconds": base}).encode()
    every_flip_is_survived(tmp_path, data, "chrome", 0, 0)
