"""SnailTrail log records: pairs, nesting, one-sided messages, and what is said about bad ones."""

from pathlib import Path

import msgpack
import pytest

from analytics.decode.formats import read_files
from analytics.decode.halves import match_halves
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.decode.snailtrail import CHUNK_BYTES
from tests.support.formats import (
    CONTROL,
    DATA,
    END,
    PROCESSING,
    RECEIVED,
    SENT,
    START,
    WAITING,
    codes,
    packed,
    read,
    said,
)

T0 = 1_700_000_000_000_000_001
"""A time that no float can hold."""


def start(at: int, worker: int = 0, kind: int = PROCESSING, operator: int = 7, correlator: int = -1):
    return (at, worker, kind, START, correlator, -1, operator)


def end(at: int, worker: int = 0, kind: int = PROCESSING, operator: int = 7, correlator: int = -1):
    return (at, worker, kind, END, correlator, -1, operator)


def sent(at: int, worker: int, remote: int, correlator: int = 1, kind: int = DATA, operator: int = -1):
    return (at, worker, kind, SENT, correlator, remote, operator)


def received(at: int, worker: int, remote: int, correlator: int = 1, kind: int = DATA, operator: int = -1):
    return (at, worker, kind, RECEIVED, correlator, remote, operator)


def test_ids_become_names_and_times_stay_exact(tmp_path: Path) -> None:
    batch = read(tmp_path, packed([start(T0, worker=3), end(T0 + 1, worker=3)]), "snailtrail")
    assert said(batch) == [("processing", "worker 3", None, "operator 7", T0, T0 + 1)]
    assert batch.diagnostics == ()


def test_records_come_in_any_order(tmp_path: Path) -> None:
    log = [start(5), end(9), start(1), end(5), sent(6, 0, 1), received(8, 1, 0)]
    forth = said(read(tmp_path, packed(log), "snailtrail"))
    assert forth == said(read(tmp_path, packed(log[::-1]), "snailtrail"))
    assert forth == [
        ("data_message", "worker 0", "worker 1", None, 6, 8),
        ("processing", "worker 0", None, "operator 7", 1, 5),
        ("processing", "worker 0", None, "operator 7", 5, 9),
    ]


def test_recursion_nests_and_other_operators_do_not_interfere(tmp_path: Path) -> None:
    log = [
        start(0), start(2), end(4), end(10),  # operator 7 within itself
        start(3, operator=8), end(6, operator=8),  # crosses the end of the inner one
    ]  # fmt: skip
    assert said(read(tmp_path, packed(log), "snailtrail")) == [
        ("processing", "worker 0", None, "operator 7", 0, 10),
        ("processing", "worker 0", None, "operator 7", 2, 4),
        ("processing", "worker 0", None, "operator 8", 3, 6),
    ]


def test_an_instant_may_hold_an_end_a_start_and_an_activity_of_no_length(tmp_path: Path) -> None:
    log = [start(0), end(5), start(5), end(9), start(12), end(12)]
    assert [row[4:] for row in said(read(tmp_path, packed(log), "snailtrail"))] == [(0, 5), (12, 12), (5, 9)]


def test_an_end_that_knows_only_the_operator_or_only_the_correlator_finds_its_start(tmp_path: Path) -> None:
    log = [start(0, correlator=5), end(3), start(4, correlator=6), end(8, operator=-1, correlator=6)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert [row[3:] for row in said(batch)] == [("operator 7", 0, 3), ("operator 7", 4, 8)]
    assert batch.diagnostics == ()


def test_what_was_never_ended_or_begun_reaches_to_the_border_and_is_flagged(tmp_path: Path) -> None:
    log = [start(1), end(2), end(4, worker=1), start(6, worker=1, kind=3), start(9), end(10)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert ("processing", "worker 1", None, "operator 7", 1, 4) in said(batch)
    assert ("scheduling", "worker 1", None, "operator 7", 6, 10) in said(batch)
    assert codes(batch) == {"unmatched_end": 1, "unmatched_start": 1}


def test_waiting_of_both_kinds_and_unknown_are_taken_as_they_are(tmp_path: Path) -> None:
    log = [item for kind in (11, 12, 13) for item in (start(kind, kind=kind), end(kind + 1, kind=kind))]
    kinds = [row[0] for row in said(read(tmp_path, packed(log), "snailtrail"))]
    assert kinds == ["unknown", "waiting", "waiting"]


def test_a_broadcast_is_one_message_for_each_receiver(tmp_path: Path) -> None:
    log = [sent(1, 0, -1), received(3, 1, 0), received(4, 2, 0)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert said(batch) == [
        ("data_message", "worker 0", "worker 1", None, 1, 3),
        ("data_message", "worker 0", "worker 2", None, 1, 4),
    ]


def test_a_broadcast_whose_sent_names_every_receiver_too(tmp_path: Path) -> None:
    log = [sent(1, 0, 1), sent(1, 0, 2), received(3, 1, 0), received(4, 2, 0)]
    assert [row[2:] for row in said(read(tmp_path, packed(log), "snailtrail"))] == [
        ("worker 1", None, 1, 3),
        ("worker 2", None, 1, 4),
    ]


def test_an_end_that_does_not_know_its_peer_is_joined_with_one_that_does(tmp_path: Path) -> None:
    log = [sent(1, 0, 2), received(3, 2, -1), received(3, 2, 0)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert len(batch.halves) == 3
    assert said(batch) == [("data_message", "worker 0", "worker 2", None, 1, 3)] * 2


def test_a_message_keeps_its_type_operator_and_disagreeing_clocks(tmp_path: Path) -> None:
    log = [sent(9, 0, 1, kind=CONTROL, operator=4), received(7, 1, 0, kind=CONTROL)]
    assert said(read(tmp_path, packed(log), "snailtrail")) == [
        ("control_message", "worker 0", "worker 1", "operator 4", 9, 7)
    ]


def test_the_same_correlator_between_others_or_of_another_type_is_another_message(tmp_path: Path) -> None:
    log = [sent(1, 0, 1), received(2, 1, 0, kind=CONTROL), received(3, 1, 2)]
    batch = read(tmp_path, packed(log), "snailtrail")
    pairs, unmatched, odd = match_halves(batch.halves)
    assert (pairs, len(unmatched)) == ([], 3)
    assert {item.code for item in odd} == {"message_ends_disagree"}


def test_duplicates_are_counted_and_the_earliest_sent_counts(tmp_path: Path) -> None:
    log = [sent(2, 0, 1), sent(1, 0, 1), received(5, 1, 0), received(5, 1, 0)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert said(batch) == [("data_message", "worker 0", "worker 1", None, 1, 5)]
    assert codes(batch) == {"duplicate_sent": 1, "duplicate_received": 1}


GOOD = [start(1), end(3)]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        ((1, 0, 14, START, -1, -1, 7), "unknown_type"),
        ((1, 0, 0, START, -1, -1, 7), "unknown_type"),
        ((1, 0, PROCESSING, 5, -1, -1, 7), "unknown_event"),
        ((2**64 - 1, 0, PROCESSING, START, -1, -1, 7), "number_out_of_range"),
        ((2**63 - 1, 0, PROCESSING, START, -1, -1, 7), "time_out_of_range"),
        ((-1, 0, PROCESSING, START, -1, -1, 7), "time_out_of_range"),
        ((1, 2**31, PROCESSING, START, -1, -1, 7), "number_out_of_range"),
        ((1, -1, PROCESSING, START, -1, -1, 7), "number_out_of_range"),
        ((1, 0, DATA, SENT, 1, -2, 7), "number_out_of_range"),
        ((1, 0, PROCESSING, START, -1, -1, 2**40), "number_out_of_range"),
        ((1, 0, PROCESSING, SENT, 1, 1, 7), "not_a_message"),
        ((1, 0, DATA, START, -1, -1, 7), "not_an_activity"),
        ((1, 0, DATA, SENT, -1, 1, 7), "message_without_correlator"),
        ((1.5, 0, PROCESSING, START, -1, -1, 7), "not_an_integer"),
        ((1, True, PROCESSING, START, -1, -1, 7), "not_an_integer"),
        ((1, None, "", START, -1, -1, 7), "not_an_integer"),
    ],
)
def test_a_bad_record_is_counted_and_the_others_are_kept(
    tmp_path: Path, record: tuple[object, ...], code: str
) -> None:
    batch = read(tmp_path, packed([GOOD[0], record, GOOD[1]]), "snailtrail")
    assert codes(batch) == {code: 1}
    assert "record 2" in batch.diagnostics[0].example
    assert [row[4:] for row in said(batch)] == [(1, 3)]


def test_bytes_that_are_no_number_end_the_reading(tmp_path: Path) -> None:
    batch = read(tmp_path, packed(GOOD) + msgpack.packb("text") + packed(GOOD), "snailtrail")
    assert codes(batch) == {"damaged": 1}
    assert len(said(batch)) == 1


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    for data in (
        b"\x89PNG\r\n\x1a\n0000",
        b'{"type":"processing","worker":"w1"}\n',
        b"\xc1",
        packed(GOOD)[:5],
    ):
        with pytest.raises(UnreadableFileError, match="not a SnailTrail log"):
            read(tmp_path, data, "snailtrail")
    assert said(read(tmp_path, b"", "snailtrail")) == []


def test_an_activity_may_start_in_one_file_and_end_in_another(tmp_path: Path) -> None:
    for name, record in zip("ab", GOOD, strict=True):
        (tmp_path / name).write_bytes(packed([record]))
    batch = read_files([tmp_path / "b", tmp_path / "a"], "snailtrail")
    assert [row[4:] for row in said(batch)] == [(1, 3)]


def test_more_than_the_limits_is_refused(tmp_path: Path) -> None:
    data = packed(GOOD * 100)
    assert len(read(tmp_path, data, "snailtrail", Limits(len(data), 200)).records) == 100
    with pytest.raises(TooLargeError, match=r"199 records.*max-records"):
        read(tmp_path, data, "snailtrail", Limits(len(data), 199))
    with pytest.raises(TooLargeError, match=r"max-bytes"):
        read(tmp_path, data, "snailtrail", Limits(len(data) - 1, 200))


def test_a_number_that_says_a_huge_array_follows_takes_no_memory(tmp_path: Path) -> None:
    batch = read(tmp_path, packed(GOOD) + b"\xdd\xff\xff\xff\xff" * 3, "snailtrail")
    assert codes(batch) == {"damaged": 1}


def test_numbers_too_far_apart_to_be_packed_are_still_told_apart(tmp_path: Path) -> None:
    far = (-(2**62), 2**62, 0, 2**31)
    log = [start(at, worker=2**31 - 1 - at, correlator=c) for at, c in enumerate(far)]
    log += [end(10 + at, worker=2**31 - 1 - at, correlator=c) for at, c in enumerate(far)]
    batch = read(tmp_path, packed(log), "snailtrail")
    assert sorted(row[4:] for row in said(batch)) == [(0, 10), (1, 11), (2, 12), (3, 13)]
    assert batch.diagnostics == ()


def test_a_log_of_many_chunks_is_one_log(tmp_path: Path) -> None:
    activities = CHUNK_BYTES // 14 + 10
    log = packed(start(2 * at) for at in range(activities)) + packed(
        end(2 * at + 1) for at in range(activities)
    )
    batch = read(tmp_path, log, "snailtrail")
    assert len(batch.records) == activities
    assert (batch.records.end_ns - batch.records.start_ns == 1).all()
    assert codes(read(tmp_path, log[:-3], "snailtrail")) == {"truncated": 1, "unmatched_start": 1}


def test_waiting_is_what_the_kernel_calls_it(tmp_path: Path) -> None:
    batch = read(tmp_path, packed([start(0, kind=13), end(1, kind=13)]), "snailtrail")
    assert batch.records.type.tolist() == [WAITING]
