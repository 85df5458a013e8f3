"""Which format a file has, by its first bytes and its name."""

import gzip
from pathlib import Path

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.decode.formats import UPLOADED
from analytics.decode.guess import HEAD_BYTES, guess_format

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
TABLE = pa.table({"type": ["processing"], "worker": ["w"], "start_ns": [0], "end_ns": [1]})
ACTIVITY = b'{"type":"processing","worker":"w1","operator":"map","start_ns":0,"end_ns":5}\n'
CHROME = b'{"schemaVersion":1,"traceEvents":[{"ph":"X","name":"a"}]}'


def parquet() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    return bytes(sink.getvalue())


def arrow(stream: bool) -> bytes:
    sink = pa.BufferOutputStream()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    return bytes(sink.getvalue())


def records() -> bytes:
    return b"".join(msgpack.packb(value) for value in (10, 0, 4, 1, -1, -1, 7, 12, 0, 4, 2, -1, -1, 7) * 3)


CASES = [
    ("activities", ACTIVITY * 3),
    ("activities", gzip.compress(ACTIVITY * 3, mtime=0)),
    ("chrome", CHROME),
    ("chrome", b' [\n{"name":"a","ph":"B"},'),
    ("chrome", gzip.compress(CHROME, mtime=0)),
    ("spark-event-log", b'{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}\n'),
    ("spark-event-log", (GOLDEN / "spark_event_log" / "app-20261121111734-0000").read_bytes()),
    *(
        ("spark-event-log", path.read_bytes())
        for path in sorted((GOLDEN / "spark_event_log" / "eventlog_v2_local-1795259882760").glob("*.zstd"))
    ),
    ("otlp", (GOLDEN / "otlp" / "flink_traces_001.bin").read_bytes()),
    ("otlp", (GOLDEN / "otlp" / "flink_traces_001.json").read_bytes()),
    ("parquet", parquet()),
    ("arrow", arrow(stream=False)),
    ("arrow", arrow(stream=True)),
    ("snailtrail", records()),
    ("ds2", b"# src,name,n,dst,name,n\n\n1,lines,1,2,split,4\n"),
    ("ds2", b"2,0,4,1795251855053000000,1500.5,3000,750,1e3\n"),
    ("ds2", b"PK\x03\x04\x14\x00"),
]


@pytest.mark.parametrize(("format_name", "data"), CASES)
def test_the_first_bytes_tell_the_format_whatever_the_name(format_name: str, data: bytes) -> None:
    assert guess_format("trace", data) == format_name
    assert guess_format("misleading.parquet", data) == format_name
    assert guess_format("trace", data[:HEAD_BYTES]) == format_name


def test_every_format_can_be_guessed() -> None:
    assert {name for name, _ in CASES} == set(UPLOADED)


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("a.parquet", "parquet"), ("a.ARROW", "arrow"), ("a.ndjson.gz", "activities"), ("a.json.gz", "chrome"),
        ("app-20261121111734-0000.lz4", "spark-event-log"), ("events_3_app-1", "spark-event-log"),
        ("a.msgpack", "snailtrail"), ("a.pb", "otlp"), ("a.exe", None), ("", None),
    ],
)  # fmt: skip
def test_where_the_bytes_do_not_tell_the_name_does(name: str, format_name: str | None) -> None:
    assert guess_format(name, b"") == format_name
    assert guess_format(name, b"\x89\x00garbage") == format_name
    assert guess_format(name, b"\x1f\x8bno gzip") == format_name


@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff", b"{", b"[]", b"\xc1"]
)
def test_no_bytes_break_it(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert guess_format("x", data[:cut]) in (*UPLOADED, None)
