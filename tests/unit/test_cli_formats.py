"""``--format``: a trace gives one answer in every format; limits and a file for Perfetto are options."""

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analytics.cli import main
from analytics.decode.formats import FORMATS
from tests.support.formats import DATA, END, PROCESSING, RECEIVED, SENT, START, activity_table, packed

ROWS = [
    ("processing", "worker 1", None, "operator 1", 0, 5),
    ("data_message", "worker 1", "worker 2", None, 3, 4),
    ("processing", "worker 2", None, "operator 2", 4, 10),
    ("data_message", "worker 2", "worker 1", None, 6, 7),
]
T0 = 1_000


def as_activities() -> bytes:
    names = ("type", "worker", "peer", "operator", "start_ns", "end_ns")
    rows = [(*row[:4], T0 + row[4], T0 + row[5]) for row in ROWS]
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()


def as_snailtrail() -> bytes:
    return packed(
        [
            (T0 + 0, 1, PROCESSING, START, -1, -1, 1), (T0 + 5, 1, PROCESSING, END, -1, -1, 1),
            (T0 + 3, 1, DATA, SENT, 1, 2, -1), (T0 + 4, 2, DATA, RECEIVED, 1, 1, -1),
            (T0 + 4, 2, PROCESSING, START, -1, -1, 2), (T0 + 10, 2, PROCESSING, END, -1, -1, 2),
            (T0 + 6, 2, DATA, SENT, 2, 1, -1), (T0 + 7, 1, DATA, RECEIVED, 2, -1, -1),
        ]
    )  # fmt: skip


def as_table() -> pa.Table:
    return activity_table([(*row[:4], T0 + row[4], T0 + row[5]) for row in ROWS])


def as_arrow() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, as_table().schema) as writer:
        writer.write_table(as_table())
    return sink.getvalue()


def as_parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(as_table(), sink)
    return sink.getvalue()


def as_otlp() -> bytes:
    spans = []
    for number, (kind, worker, peer, operator, start, end) in enumerate(ROWS, start=1):
        told = {"weir.worker": worker, "weir.activity": kind, "weir.peer": peer, "weir.operator": operator}
        spans.append(
            {
                "traceId": "1" * 32,
                "spanId": f"{number:016x}",
                "startTimeUnixNano": str(T0 + start),
                "endTimeUnixNano": str(T0 + end),
                "attributes": [
                    {"key": key, "value": {"stringValue": value}} for key, value in told.items() if value
                ],
            }
        )
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()


def as_chrome() -> bytes:
    events: list[dict[str, Any]] = []
    for number, (kind, worker, peer, operator, start, end) in enumerate(ROWS):
        place = {"pid": 1, "tid": worker, "cat": kind, "name": operator or kind}
        if peer:
            events.append({**place, "ph": "s", "id": number, "ts": (T0 + start) / 1000})
            events.append({**place, "ph": "f", "id": number, "ts": (T0 + end) / 1000, "tid": peer})
        else:
            events.append({**place, "ph": "X", "ts": (T0 + start) / 1000, "dur": (end - start) / 1000})
        events.append({"ph": "M", "pid": 1, "tid": worker, "name": "thread_name", "args": {"name": worker}})
    return json.dumps(events).encode()


WRITERS = {
    "activities": as_activities,
    "snailtrail": as_snailtrail,
    "otlp": as_otlp,
    "arrow": as_arrow,
    "parquet": as_parquet,
    "chrome": as_chrome,
}


def run(capsys: pytest.CaptureFixture[str], path: Path, format_name: str, *options: str) -> str:
    assert main(["critical-path", str(path), "--format", format_name, "--window", "1s", *options]) == 0
    return capsys.readouterr().out


def written(tmp_path: Path, format_name: str) -> Path:
    path = tmp_path / format_name
    path.write_bytes(WRITERS[format_name]())
    return path


@pytest.mark.parametrize("format_name", sorted(FORMATS.keys() - {"spark-event-log", "activities"}))
def test_one_trace_gives_one_answer_in_every_format(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, format_name: str
) -> None:
    expected, found = (
        json.loads(run(capsys, written(tmp_path, name), name, "--json"))
        for name in ("activities", format_name)
    )
    assert found == expected
    assert found["windows"][0]["cp"]["operator"] == pytest.approx({"operator 1": 0.15, "operator 2": 0.4})


@pytest.mark.parametrize("format_name", sorted(WRITERS))
@pytest.mark.parametrize(("option", "value"), [("--max-records", "1"), ("--max-bytes", "20")])
def test_a_file_beyond_the_limits_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, format_name: str, option: str, value: str
) -> None:
    path = written(tmp_path, format_name)
    arguments = ["critical-path", str(path), "--format", format_name, "--window", "1s", option, value]
    assert main(arguments) == 2
    refused = capsys.readouterr()
    assert refused.out == ""
    assert refused.err.startswith(f"python -m analytics: {path}: more than {value} ")
    assert option.strip("-") in refused.err


def test_a_spark_event_log_has_limits_too(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "app-1"
    log.write_text('{"Event":"SparkListenerLogStart"}\n' * 3)
    arguments = ["critical-path", str(log), "--format", "spark-event-log", "--window", "1s"]
    assert main(arguments) == 0
    assert main([*arguments, "--max-records", "2"]) == 2
    assert main([*arguments, "--max-bytes", "1K"]) == 0
    assert main([*arguments, "--max-bytes", "0"]) == 2
    assert "no size such as" in capsys.readouterr().err


def test_windows_are_written_for_perfetto(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path, out = written(tmp_path, "activities"), tmp_path / "out.json"
    expected = json.loads(run(capsys, path, "activities", "--json", "--chrome-out", str(out)))
    again = json.loads(run(capsys, out, "chrome", "--json"))
    for group in ("activity", "worker", "operator"):
        assert again["windows"][0]["cp"][group] == pytest.approx(expected["windows"][0]["cp"][group])
    assert again["windows"][0]["log10_paths"] == expected["windows"][0]["log10_paths"]
    assert (
        main(["critical-path", str(path), "--format", "activities", "--window", "1s", "--chrome-out", "/"])
        == 2
    )


def test_workers_called_worker_are_not_called_so_twice(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    waits = [(0, 7, 12, START, -1, -1, -1), (5, 7, 12, END, -1, -1, -1), (8, 7, 4, START, -1, -1, 0)]
    log.write_bytes(packed(waits))
    told = {
        item["code"]: item["example"]
        for item in json.loads(run(capsys, log, "snailtrail", "--json"))["diagnostics"]
    }
    assert told["wait_without_receive"].startswith("worker 7: ")
    assert "worker 7" in told["unmatched_start"]


def test_a_file_of_something_else_is_no_spark_event_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "picture.png").write_bytes(bytes(range(256)) * 4)
    arguments = [
        "critical-path",
        str(tmp_path / "picture.png"),
        "--format",
        "spark-event-log",
        "--window",
        "1s",
    ]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "not a Spark event log" in said.err


@pytest.mark.parametrize("format_name", sorted(FORMATS))
def test_a_file_of_which_nothing_can_be_used_ends_the_command_with_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, format_name: str
) -> None:
    (tmp_path / "a").write_bytes(b"hello\nworld\n")
    assert main(["critical-path", str(tmp_path / "a"), "--format", format_name, "--window", "1s"]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n"), str(tmp_path / "a") in told.err) == ("", 1, True)


def test_a_file_without_a_usable_line_ends_the_command_also_among_good_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    good = written(tmp_path, "activities")
    (tmp_path / "bad").write_text('{}\n{"type":"dreaming"}\n')
    command = ["critical-path", str(good), str(tmp_path / "bad"), "--format", "activities", "--window", "1s"]
    assert main(command) == 2
    assert "bad, line 1: " in capsys.readouterr().err
    (tmp_path / "bad").write_bytes(b"{}\n" + as_activities())
    assert main(command) == 0


@pytest.mark.parametrize("format_name", sorted(FORMATS))
def test_an_empty_file_is_a_log_without_entries_unless_its_format_begins_with_a_mark(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, format_name: str
) -> None:
    (tmp_path / "empty").touch()
    status = main(["critical-path", str(tmp_path / "empty"), "--format", format_name, "--window", "1s"])
    assert status == (2 if format_name in ("arrow", "parquet", "chrome") else 0)
    assert capsys.readouterr().err.count("\n") == status // 2


def test_edges_are_for_json_only(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = written(tmp_path, "activities")
    assert main(["critical-path", str(path), "--format", "activities", "--window", "1s", "--edges"]) == 2
    assert "--json" in capsys.readouterr().err
