"""The plain NDJSON format: what is understood, and how every kind of bad line is reported."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from analytics.decode.activities import decode_activities
from analytics.decode.limits import MAX_LINE_BYTES, Limits, TooLargeError
from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, HalfMessage, TraceBatch
from tests.support.formats import read
from tests.support.spark_log import codes, rows


def decode(*lines: str) -> TraceBatch:
    return decode_activities(line.encode() for line in lines)


GOOD = '{"type":"processing","worker":"w1","operator":"map","start_ns":0,"end_ns":5}'


def test_the_three_kinds_of_line() -> None:
    batch = decode(
        GOOD,
        '{"type":"data_message","worker":"w1","peer":"w2","start_ns":3,"end_ns":4}',
        "",
        '{"type":"control_message","event":"sent","worker":"w1","peer":"w2","at_ns":3,"correlation":"c1"}',
        '{"type":"control_message","event":"received","worker":"w2","at_ns":9,"correlation":"c1"}',
    )
    assert rows(batch) == [("processing", "w1", None, "map", 0, 5), ("data_message", "w1", "w2", None, 3, 4)]
    assert batch.halves == (HalfMessage(9, False, 0, 1, 3, "c1"), HalfMessage(9, True, 1, NONE, 9, "c1"))
    assert [worker.name for worker in batch.workers] == ["w1", "w2"]
    assert batch.diagnostics == ()


def test_every_type_of_the_format_is_known() -> None:
    page = "input, buffer, scheduling, processing, barrier, serialization, deserialization, fault_tolerance"
    known = [*page.split(", "), "waiting", "unknown"]
    assert {*known, "control_message", "data_message"} == {kind.label for kind in ActivityType}
    batch = decode(*(f'{{"type":"{kind}","worker":"w","start_ns":0,"end_ns":1}}' for kind in known))
    assert [row[0] for row in rows(batch)] == known


def test_a_message_received_before_it_was_sent_is_kept_an_activity_that_ends_before_its_start_is_not() -> (
    None
):
    batch = decode(
        '{"type":"data_message","worker":"a","peer":"b","start_ns":9,"end_ns":4}',
        '{"type":"processing","worker":"c","start_ns":9,"end_ns":4}',
    )
    assert rows(batch) == [("data_message", "a", "b", None, 9, 4)]
    assert codes(batch) == {"negative_duration": 1}
    assert [worker.name for worker in batch.workers] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{", "not_json"),
        ('{"type":"processing","worker":"w","start_ns":0,"end_ns":1} x', "not_json"),
        ("[1]", "not_an_object"),
        ("3", "not_an_object"),
        ('{"worker":"w","start_ns":0,"end_ns":1}', "missing_field"),
        ('{"type":"processing","worker":"w","start_ns":0}', "missing_field"),
        ('{"type":"data_message","worker":"w","start_ns":0,"end_ns":1}', "missing_field"),
        ('{"type":"data_message","event":"sent","worker":"w","correlation":"c"}', "missing_field"),
        ('{"type":"data_message","event":"sent","worker":"w","at_ns":1}', "missing_field"),
        ('{"type":"processing","worker":7,"start_ns":0,"end_ns":1}', "wrong_type"),
        ('{"type":"processing","worker":"w","start_ns":0.5,"end_ns":1}', "wrong_type"),
        ('{"type":"processing","worker":"w","start_ns":"0","end_ns":1}', "wrong_type"),
        ('{"type":"processing","worker":"w","start_ns":true,"end_ns":1}', "wrong_type"),
        ('{"type":["processing"],"worker":"w","start_ns":0,"end_ns":1}', "wrong_type"),
        ('{"type":"processing","worker":"w","operator":{},"start_ns":0,"end_ns":1}', "wrong_type"),
        ('{"type":"data_message","event":1,"worker":"w","at_ns":1,"correlation":"c"}', "wrong_type"),
        ('{"type":"dreaming","worker":"w","start_ns":0,"end_ns":1}', "unknown_type"),
        ('{"type":"data_message","event":"lost","worker":"w","at_ns":1,"correlation":"c"}', "unknown_event"),
        ('{"type":"processing","event":"sent","worker":"w","at_ns":1,"correlation":"c"}', "not_a_message"),
        ('{"type":"processing","worker":"","start_ns":0,"end_ns":1}', "bad_name"),
        ('{"type":"processing","worker":"a\\u0000b","start_ns":0,"end_ns":1}', "bad_name"),
        ('{"type":"processing","worker":"w","start_ns":0,"end_ns":9223372036854775807}', "time_out_of_range"),
        ('{"type":"processing","worker":"w","start_ns":5,"end_ns":1}', "negative_duration"),
    ],
)
def test_a_bad_line_is_skipped_and_reported_with_its_number(line: str, code: str) -> None:
    batch = decode(GOOD, "", line, GOOD)
    assert codes(batch) == {code: 1}
    assert batch.diagnostics[0].example.startswith("line 3: ")
    assert len(batch.records) == 2
    assert [worker.name for worker in batch.workers] == ["w1"]


def test_equal_mistakes_are_counted_and_the_first_is_shown() -> None:
    batch = decode_activities([b"{", GOOD.encode(), b"}"], "trace.ndjson")
    assert codes(batch) == {"not_json": 2}
    assert batch.diagnostics[0].example.startswith("trace.ndjson, line 1: ")


def test_the_same_mistake_on_several_lines_is_told_with_all_their_numbers() -> None:
    batch = decode("{", GOOD, "{", "{")
    assert [(item.count, item.example.split(" (also")[-1]) for item in batch.diagnostics] == [
        (3, " lines 3, 4)")
    ]
    many = decode(*["["] * 14)
    assert many.diagnostics[0].example.endswith("(also lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more)")


def test_a_byte_order_mark_before_the_first_line_is_passed_over() -> None:
    assert len(decode_activities([b"\xef\xbb\xbf" + GOOD.encode()]).records) == 1


def test_a_line_without_an_end_takes_no_memory_and_the_lines_after_it_are_read(tmp_path: Path) -> None:
    good = GOOD.encode() + b"\n"
    data = gzip.compress(good + b" " * MAX_LINE_BYTES * 40 + b"x\n" + good, 1)
    tracemalloc.start()
    try:
        batch = read(tmp_path, data, "activities")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8 * MAX_LINE_BYTES
    assert (len(batch.records), codes(batch)) == (2, {"line_too_long": 1})
    assert batch.diagnostics[0].example.startswith("line 2: ")
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, data, "activities", Limits(2 * MAX_LINE_BYTES, 100))


@pytest.mark.parametrize("more", [-1, 0, 1, MAX_LINE_BYTES])
def test_a_line_may_be_as_long_as_the_limit_and_the_next_begins_behind_it(tmp_path: Path, more: int) -> None:
    padded = GOOD.encode().ljust(MAX_LINE_BYTES - 1 + more) + b"\n"
    batch = read(tmp_path, padded + GOOD.encode(), "activities")
    assert len(batch.records) == (2 if more <= 0 else 1)
    assert codes(batch) == ({} if more <= 0 else {"line_too_long": 1})
