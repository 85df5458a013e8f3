"""Activities in Arrow and Parquet files: every way to write names and times, and what bad rows and files give."""

import io
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.formats import read_files
from analytics.decode.limits import Limits, TooLargeError, UnreadableFileError
from analytics.model import segments
from analytics.model.trace import Records
from tests.support.formats import activity_table, codes, read, said

T0 = 1_700_000_000_000_000_001
ROWS = [
    ("data_message", "w1", "w2", None, T0 + 3, T0 + 2),
    ("processing", "w1", None, "map", T0, T0 + 5),
    ("waiting", "w2", None, None, T0 + 1, T0 + 9),
]


def as_file(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_stream(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2)
    return sink.getvalue()


WRITERS: dict[str, tuple[str, Callable[[pa.Table], bytes]]] = {
    "file": ("arrow", as_file),
    "stream": ("arrow", as_stream),
    "zstd": ("arrow", lambda table: as_file(table, compression="zstd")),
    "parquet": ("parquet", as_parquet),
}
each_writer = pytest.mark.parametrize("writer", WRITERS)


def through(tmp_path: Path, writer: str, table: pa.Table, limits: Limits | None = None):
    format_name, write = WRITERS[writer]
    return read(tmp_path, write(table), format_name, limits)


@each_writer
@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("by_code", [False, True])
def test_names_as_strings_or_dictionaries_and_types_as_labels_or_codes(
    tmp_path: Path, writer: str, dictionary: bool, by_code: bool
) -> None:
    batch = through(tmp_path, writer, activity_table(ROWS, dictionary=dictionary, codes=by_code))
    assert said(batch) == ROWS
    assert batch.diagnostics == ()


@each_writer
def test_peer_and_operator_may_be_missing_and_other_columns_are_not_read(tmp_path: Path, writer: str) -> None:
    table = activity_table(ROWS[1:]).drop_columns(["peer", "operator"])
    table = table.append_column("note", pa.array([["a"], None]))
    assert [row[:4] for row in said(through(tmp_path, writer, table))] == [
        ("processing", "w1", None, None),
        ("waiting", "w2", None, None),
    ]


@each_writer
@pytest.mark.parametrize(("unit", "ns"), [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)])
def test_times_may_be_timestamps(tmp_path: Path, writer: str, unit: str, ns: int) -> None:
    table = pa.table(
        {
            "type": ["processing"],
            "worker": ["w"],
            "start_ns": pa.array([1_700_000_000], pa.timestamp(unit, "UTC")),
            "end_ns": pa.array([1_700_000_001], pa.timestamp(unit)),
        }
    )
    if (writer, unit) == ("parquet", "s"):
        ns = 10**9  # Parquet has no seconds: they become milliseconds, and mean the same
    (row,) = said(through(tmp_path, writer, table))
    assert row[4:] == (1_700_000_000 * ns, 1_700_000_001 * ns)


def test_a_stored_segment_is_read(tmp_path: Path) -> None:
    records = Records.of([(4, 3, -1, 7, 0, 5), (10, 3, 0, -1, 2, 4)])
    assert said(read(tmp_path, segments.encode(records), "arrow")) == [
        ("data_message", "worker 3", "worker 0", None, 2, 4),
        ("processing", "worker 3", None, "operator 7", 0, 5),
    ]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"type": None}, "missing_field"),
        ({"worker": None}, "missing_field"),
        ({"start_ns": None}, "missing_field"),
        ({"type": "dancing"}, "unknown_type"),
        ({"worker": ""}, "bad_name"),
        ({"operator": "x" * 501}, "bad_name"),
        ({"operator": "a\0b"}, "bad_name"),
        ({"type": "control_message", "peer": None}, "message_without_peer"),
        ({"end_ns": 2**62 + 1}, "time_out_of_range"),
        ({"start_ns": -(2**63) + 1}, "time_out_of_range"),
        ({"start_ns": 8, "end_ns": 7}, "negative_duration"),
    ],
)
def test_a_bad_row_is_counted_and_leaves_no_name_behind(
    tmp_path: Path, changes: dict[str, object], code: str
) -> None:
    bad = {"type": "processing", "worker": "bad", "peer": None, "operator": "bad", "start_ns": 0, "end_ns": 1}
    table = activity_table(ROWS)
    row = pa.table(
        {name: pa.array([value], table.schema.field(name).type) for name, value in (bad | changes).items()}
    )
    batch = read(tmp_path, as_file(pa.concat_tables([table, row])), "arrow")
    assert said(batch) == ROWS
    assert codes(batch) == {code: 1}
    assert batch.diagnostics[0].example.startswith("row 4: ")
    assert [worker.name for worker in batch.workers] == ["w1", "w2"]


def test_numbers_beyond_what_fits_are_bad_rows(tmp_path: Path) -> None:
    table = pa.table(
        {
            "type": pa.array([4, 13, 4, 4], pa.int8()),
            "worker": pa.array([0, 1, -2, 3], pa.int64()),
            "start_ns": pa.array([0, 0, 0, 0], pa.uint64()),
            "end_ns": pa.array([2**64 - 1, 0, 0, 7], pa.uint64()),
        }
    )
    batch = read(tmp_path, as_file(table), "arrow")
    assert codes(batch) == {"time_out_of_range": 1, "unknown_type": 1, "bad_name": 1}
    assert said(batch) == [("processing", "worker 3", None, None, 0, 7)]


@each_writer
def test_a_table_that_is_something_else_is_refused(tmp_path: Path, writer: str) -> None:
    good = activity_table(ROWS)
    floats = good.set_column(4, "start_ns", pa.array([0.5, 1.5, 2.5]))
    lists = good.set_column(1, "worker", pa.array([["a"], ["b"], ["c"]]))
    for table, reason in (
        (good.drop_columns(["worker"]), "column worker is missing"),
        (floats, "column start_ns is double"),
        (lists, "column worker is list"),
    ):
        with pytest.raises(UnreadableFileError, match=reason):
            through(tmp_path, writer, table)


@each_writer
def test_other_bytes_are_refused_in_one_line(tmp_path: Path, writer: str) -> None:
    for data in (b"", b"hello, world", b"ARROW1\0\0", b"PAR1" * 4, b"\xff\xff\xff\xff\xff\xff\xff\x7f"):
        with pytest.raises(UnreadableFileError) as refused:
            read(tmp_path, data, WRITERS[writer][0])
        assert "\n" not in str(refused.value)


def test_a_file_without_rows_is_a_trace_without_activities(tmp_path: Path) -> None:
    for writer in WRITERS:
        batch = through(tmp_path, writer, activity_table([]))
        assert (len(batch.records), batch.diagnostics) == (0, ())


def test_several_files_are_one_trace(tmp_path: Path) -> None:
    for name, row in zip("abc", ROWS, strict=True):
        (tmp_path / name).write_bytes(as_parquet(activity_table([row])))
    batch = read_files([tmp_path / name for name in "abc"], "parquet")
    assert said(batch) == ROWS
    assert len(batch.workers) == 2


@each_writer
def test_more_rows_than_the_limit_are_refused(tmp_path: Path, writer: str) -> None:
    table = activity_table(ROWS * 100)
    assert len(through(tmp_path, writer, table, Limits(1 << 20, 300)).records) == 300
    with pytest.raises(TooLargeError, match="max-records"):
        through(tmp_path, writer, table, Limits(1 << 20, 299))


def long_names(rows: int) -> pa.Table:
    """Names of 4,000 characters, three of them in turn: nothing once compressed, much in memory."""
    table = activity_table([ROWS[1]] * rows).drop_columns(["operator"])
    names = pa.array(["x" * 4000 + str(at) for at in range(3)]).take(pa.array([at % 3 for at in range(rows)]))
    return table.append_column("operator", names)


def test_a_small_arrow_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    small = as_file(long_names(10_000), compression="zstd")
    limits = Limits(20 << 20, 10_000)
    assert len(small) < limits.max_bytes // 100
    before = pa.total_allocated_bytes()
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, small, "arrow", limits)
    assert pa.total_allocated_bytes() - before < limits.max_bytes // 10


def test_a_long_name_in_a_parquet_file_is_held_once(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(long_names(10_000), sink)
    with pytest.raises(UnreadableFileError, match=r"nothing can be used: bad_name \(10,000\)"):
        read(tmp_path, sink.getvalue(), "parquet", Limits(1 << 20, 10_000))
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, sink.getvalue(), "parquet", Limits(10_000, 10_000))


def test_a_declared_size_that_no_memory_has_is_refused(tmp_path: Path) -> None:
    """The first eight bytes of a compressed buffer say how long it will be."""
    data = as_stream(activity_table(ROWS * 1000), compression="zstd")
    at = data.index((8 * 3000).to_bytes(8, "little"))  # start_ns: 3000 times 8 bytes
    forged = data[:at] + (1 << 50).to_bytes(8, "little") + data[at + 8 :]
    with pytest.raises(TooLargeError, match="max-bytes"):
        read(tmp_path, forged, "arrow")


def test_batches_before_the_cut_count(tmp_path: Path) -> None:
    table = activity_table(ROWS)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for batch in table.to_batches() * 3:
            writer.write_batch(batch)
    data = sink.getvalue()
    whole = read(tmp_path, data, "arrow")
    cut = read(tmp_path, data[: len(data) - 100], "arrow")
    assert (len(whole.records), len(cut.records)) == (9, 6)
    assert codes(cut) == {"truncated": 1}
    assert whole.diagnostics == ()
