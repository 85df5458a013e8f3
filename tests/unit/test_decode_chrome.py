"""Chrome traces: which events are activities and messages, exact times, a window's way to Perfetto and back."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analytics.critical_path import default_lifetimes, every_window_edges
from analytics.decode.chrome_out import chrome_trace
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.model.results import Windows
from analytics.model.trace import Records
from tests.support.formats import codes, read, said
from tests.support.spark_log import Row


def event(ph: str, tid: int = 1, pid: int = 1, **fields: Any) -> dict[str, Any]:
    return {"ph": ph, "pid": pid, "tid": tid, **fields}


def thread(name: str, tid: int, pid: int = 1) -> dict[str, Any]:
    return event("M", tid, pid, name="thread_name", args={"name": name})


def trace(*events: object, **rest: Any) -> bytes:
    return json.dumps({"traceEvents": events, **rest}).encode()


def decoded(tmp_path: Path, *events: object, **rest: Any) -> list[Row]:
    batch = read(tmp_path, trace(*events, **rest), "chrome")
    assert batch.diagnostics == ()
    return said(batch)


NAMES = (thread("w1", 1), thread("w2", 2))


def test_complete_events_are_activities(tmp_path: Path) -> None:
    found = decoded(
        tmp_path,
        event("X", name="map", ts=1, dur=2.5, cat="app"),
        event("X", 2, name="write", ts=2, dur=0, cat="io,buffer", args={"operator": "sink"}),
        event("X", 2, name="idle", ts=3, dur=1, cat="waiting", args={"operator": None}),
        *NAMES,  # names may come last
    )
    assert found == [
        ("buffer", "w2", None, "sink", 2000, 2000),
        ("processing", "w1", None, "map", 1000, 3500),
        ("waiting", "w2", None, None, 3000, 4000),
    ]


def test_times_are_exact_to_the_nanosecond(tmp_path: Path) -> None:
    data = b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1700000000000000.001,"dur":0.002}]'
    assert said(read(tmp_path, data, "chrome"))[0][4:] == (
        1_700_000_000_000_000_001,
        1_700_000_000_000_000_003,
    )


def test_the_base_time_is_added_wherever_it_stands(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000_007
    x = event("X", name="a", ts=1, dur=2.5)
    assert decoded(tmp_path, x, baseTimeNanoseconds=base)[0][4:] == (base + 1000, base + 3500)
    first = json.dumps({"baseTimeNanoseconds": str(base), "traceEvents": [x]}).encode()
    assert said(read(tmp_path, first, "chrome"))[0][4:] == (base + 1000, base + 3500)
    for bad, code in ((2**62, "time_out_of_range"), (0.5, "wrong_type"), ("soon", "wrong_type")):
        batch = read(tmp_path, trace(x, baseTimeNanoseconds=bad), "chrome")
        assert codes(batch) == {code: 1}
        assert said(batch)[0][4:] == (1000, 3500)


def test_begins_find_their_ends(tmp_path: Path) -> None:
    found = decoded(
        tmp_path,
        event("B", name="outer", ts=1), event("B", name="inner", ts=2), event("E", ts=3),
        event("E", name="outer", ts=9), event("B", 2, name="other", ts=2), event("E", 2, ts=4), *NAMES,
    )  # fmt: skip
    assert found == [
        ("processing", "w1", None, "inner", 2000, 3000),
        ("processing", "w1", None, "outer", 1000, 9000),
        ("processing", "w2", None, "other", 2000, 4000),
    ]


def test_a_begin_or_end_alone_reaches_to_the_border_and_is_flagged(tmp_path: Path) -> None:
    events = (event("X", 2, name="a", ts=1, dur=9), event("E", name="x", ts=3), event("B", name="y", ts=6))
    batch = read(tmp_path, trace(*events, *NAMES), "chrome")
    assert said(batch)[:2] == [
        ("processing", "w1", None, "x", 1000, 3000),
        ("processing", "w1", None, "y", 6000, 10000),
    ]
    assert codes(batch) == {"unmatched_begin": 1, "unmatched_end": 1}


def flow(ph: str, tid: int, ts: float, **fields: Any) -> dict[str, Any]:
    return event(ph, tid, ts=ts, **{"id": 1, "name": "send", "cat": "net", **fields})


def test_flows_are_messages(tmp_path: Path) -> None:
    found = decoded(
        tmp_path,
        flow("s", 1, 1), flow("f", 2, 3),
        flow("s", 1, 5, id="0x2", cat="control_message", args={"operator": "map"}),
        flow("f", 2, 4, id="0x2", cat="control_message"),  # received before it was sent: kept
        *NAMES,
    )  # fmt: skip
    assert found == [
        ("control_message", "w1", "w2", "map", 5000, 4000),
        ("data_message", "w1", "w2", None, 1000, 3000),
    ]


def test_an_id_used_again_steps_and_broadcasts(tmp_path: Path) -> None:
    flows = [
        flow("s", 1, 1),
        flow("f", 2, 2),
        flow("f", 3, 3),
        flow("s", 2, 4),
        flow("t", 3, 5),
        flow("f", 1, 6),
    ]
    found = decoded(tmp_path, *flows[::-1], *NAMES, thread("w3", 3))
    assert [(row[1], row[2], row[4], row[5]) for row in found] == [
        ("w1", "w2", 1000, 2000),
        ("w1", "w3", 1000, 3000),
        ("w2", "w3", 4000, 5000),
        ("w3", "w1", 5000, 6000),
    ]


def test_asynchronous_spans_are_messages_if_they_change_the_thread(tmp_path: Path) -> None:
    events = (
        flow("b", 1, 1),
        flow("e", 2, 3),
        flow("S", 1, 5, id=7),
        flow("F", 1, 6, id=7),
        flow("s", 1, 9, id=8),
    )
    batch = read(tmp_path, trace(*events, *NAMES), "chrome")
    assert said(batch) == [("data_message", "w1", "w2", None, 1000, 3000)]
    assert codes(batch) == {"async_on_one_thread": 1, "unmatched_flow": 1}


def test_names_are_as_short_as_they_can_be(tmp_path: Path) -> None:
    events = [
        event("X", tid, pid, name="a", ts=0, dur=1) for pid, tid in ((1, 1), (1, 2), (2, 1), (3, 1), (4, 1))
    ]
    names = [
        thread("main", 1, 1), thread("own", 2, 1), thread("main", 1, 2), thread("x", 1, 4), thread("same", 1, 3),
        event("M", 0, 1, name="process_name", args={"name": "p"}),
    ]  # fmt: skip
    found = {row[1] for row in decoded(tmp_path, *events, *names)}
    assert found == {"p/main", "own", "process 2/main", "same", "x"}
    assert {row[1] for row in decoded(tmp_path, event("X", 7, 3, name="a", ts=0, dur=1))} == {
        "process 3/thread 7"
    }


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (7, "not_an_event"),
        ({"name": "a"}, "not_an_event"),
        (event("X", name="a", dur=1), "missing_field"),
        (event("X", name="a", ts=1), "missing_field"),
        (event("X", name="a", ts="1", dur=1), "wrong_type"),
        (event("X", name="a", ts=True, dur=1), "wrong_type"),
        (event("X", name="a", ts=float("nan"), dur=1), "wrong_type"),
        (event("X", name="a", ts=1e300, dur=1), "time_out_of_range"),
        (event("X", name="a", ts=1, dur=-1), "negative_duration"),
        (event("s", name="a", ts=1), "missing_field"),
        (event("C", name="memory", ts=1), "ignored_event"),
    ],
)
def test_an_event_that_cannot_be_used_is_counted(tmp_path: Path, bad: object, code: str) -> None:
    batch = read(tmp_path, trace(event("X", name="good", ts=1, dur=1), bad), "chrome")
    assert codes(batch) == {code: 1}
    assert len(batch.records) == 1


def test_numbers_without_bounds_are_refused(tmp_path: Path) -> None:
    good = b'[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1}'
    for number in (b"1e999999999", b"1e99999999999999999999999", b"-1e99999"):
        data = good + b',{"ph":"X","name":"b","ts":' + number + b',"dur":1}]'
        assert codes(read(tmp_path, data, "chrome")) == {"time_out_of_range": 1}
    batch = read(tmp_path, good + b',{"ts":' + b"9" * 5000 + b"}]", "chrome")
    assert codes(batch) == {"damaged": 1}


def test_a_list_whose_end_is_missing_is_whole_and_a_document_is_not(tmp_path: Path) -> None:
    x = json.dumps(event("X", name="a", ts=1, dur=1)).encode()
    for data in (b"[" + x, b"[" + x + b",", b"[" + x + b",\n", b"[" + x + b"]", b"\xef\xbb\xbf[" + x):
        batch = read(tmp_path, data, "chrome")
        assert (len(batch.records), batch.diagnostics) == (1, ())
    assert codes(read(tmp_path, b'{"traceEvents":[' + x, "chrome")) == {"truncated": 1}
    assert codes(read(tmp_path, b"[" + x + b"," + x[:20], "chrome")) == {"truncated": 1}
    assert codes(read(tmp_path, b"[" + x + b" oops " + x, "chrome")) == {"damaged": 1}


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"{}", b'{"a":1}', b"7", b'{"traceEvents":7}', b"[" * 5000, b"[1,2"]
)
def test_something_else_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnreadableFileError, match="not a Chrome trace"):
        read(tmp_path, data, "chrome")


def test_large_documents_are_read_piece_by_piece(tmp_path: Path) -> None:
    note = {"text": "ä" * 700_000}
    events = [
        event("X", name="a" * 50, ts=at, dur=0.5, args=note if at % 5000 == 0 else {}) for at in range(20_000)
    ]
    batch = read(tmp_path, trace(*events, NAMES[0], note=note), "chrome")
    assert (len(batch.records), batch.diagnostics) == (20_000, ())
    assert (batch.records.end_ns - batch.records.start_ns == 500).all()


def test_gzip_is_read_and_counts_unpacked(tmp_path: Path) -> None:
    data = trace(event("X", name="a", ts=1, dur=1), note=" " * 1_000_000)
    assert len(read(tmp_path, gzip.compress(data), "chrome").records) == 1
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, gzip.compress(data), "chrome", Limits(100_000, 10))
    with pytest.raises(UnreadableFileError, match="gzip"):
        read(tmp_path, gzip.compress(data)[:-20], "chrome")
    with pytest.raises(TooLargeError, match="max-records"):
        read(tmp_path, trace(1, 2, 3), "chrome", Limits(100_000, 2))


def test_a_window_opens_in_perfetto_and_comes_back(tmp_path: Path) -> None:
    base = 1_700_000_000_000_000_001
    rows = [(4, 0, -1, 0, 0, 5), (10, 0, 1, -1, 3, 4), (4, 1, -1, 1, 4, 10), (9, 1, 0, -1, 6, 7)]
    records = Records.of([(*row[:4], base + row[4], base + row[5]) for row in rows])
    lives = default_lifetimes(records, 2)
    windows = Windows(4, base // 4, 4, 0)
    found, _ = every_window_edges(records, *lives, windows)
    edges = [window for _, window in found]
    data = b"".join(chrome_trace(edges, ["w1", "w2"], ["map", "sink"]))
    batch = read(tmp_path, data, "chrome")
    assert batch.diagnostics == ()
    expected = []
    for window in edges:
        for at in range(len(window.src)):
            expected.append((int(window.type[at]), int(window.src_ns[at]), int(window.dst_ns[at])))
    assert sorted(expected) == sorted(
        zip(
            *(
                column.tolist()
                for column in (batch.records.type, batch.records.start_ns, batch.records.end_ns)
            ),
            strict=True,
        )
    )
    events = json.loads(data)["traceEvents"]
    shown = [item for item in events if item["pid"] == 1 and item["ph"] == "X"]
    assert np.isclose(
        sum(item["dur"] for item in shown), 10 / 1000
    )  # the path from the first to the last moment
    assert {item["args"]["name"] for item in events if item["ph"] == "M"} >= {"w1", "w2", "critical path"}
    assert all("cp" in item["args"] for item in events if item["ph"] in "Xsf")
    assert min(item["ts"] for item in events if "ts" in item) == 0


def test_no_windows_are_a_trace_too(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"".join(chrome_trace([], ["w"], [])), "chrome").records) == 0
