"""``python -m analytics critical-path``: what a person or a program gets on stdout, stderr and as exit code."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analytics.cli import main

CHECKOUT = Path(__file__).parents[2]
GOLDEN = CHECKOUT / "tests" / "golden" / "spark_event_log"

# Two workers, 10 ns: w1 maps until 5, sends at 3 (received at 4 by w2, which then sinks until 10), and is
# woken at 7 by a message of w2 from 6. Four paths lead from 0 to 10: two starts times two ends.
TRACE = """\
{"type":"processing","worker":"w1","operator":"map","start_ns":0,"end_ns":5}
{"type":"data_message","worker":"w1","peer":"w2","start_ns":3,"end_ns":4}
{"type":"processing","worker":"w2","operator":"sink","start_ns":4,"end_ns":10}
{"type":"data_message","event":"received","worker":"w1","at_ns":7,"correlation":"c1"}
{"type":"data_message","event":"sent","worker":"w2","peer":"w1","at_ns":6,"correlation":"c1"}
"""


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    assert main(["critical-path", *map(str, arguments), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return json.loads(captured.out)  # type: ignore[no-any-return]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.ndjson"
    path.write_text(TRACE)
    return path


def test_the_shares_of_a_small_trace(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    (window,) = run(capsys, trace, "--format", "activities", "--window", "1s")["windows"]
    assert (window["start_ns"], window["end_ns"], window["status"]) == (0, 10, "ok")
    assert 10 ** window["log10_paths"] == pytest.approx(4)
    assert window["cp_total"] == pytest.approx(1)
    cp, conventional = window["cp"], window["conventional"]
    # map until 3: half of the paths, 3 of 10 ns. sink: all paths for 2 ns, half of them for 4.
    assert cp["operator"] == pytest.approx({"map": 0.15, "sink": 0.4})
    assert cp["activity"]["processing"] == pytest.approx(0.55)
    assert cp["activity"]["data_message"] == pytest.approx(0.1)
    assert cp["activity"]["unknown"] == pytest.approx(0.35)
    assert cp["activity"]["waiting"] == 0
    assert cp["worker"] == pytest.approx({"w1": 0.3, "w2": 0.6})
    assert cp["channel"] == [
        {"src": "w1", "dst": "w2", "cp": pytest.approx(0.05)},
        {"src": "w2", "dst": "w1", "cp": pytest.approx(0.05)},
    ]
    assert conventional["operator"] == pytest.approx({"map": 0.5, "sink": 0.6})
    assert conventional["activity"]["waiting"] == pytest.approx(0.2)
    assert "edges" not in window


def test_edges_on_request(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    (window,) = run(capsys, trace, "--format", "activities", "--window", "1s", "--edges")["windows"]
    assert sum(edge["cp"] for edge in window["edges"]) == pytest.approx(1)
    sink = next(edge for edge in window["edges"] if edge["src"] == ["w2", 4])
    assert sink | {"cp": 0.2, "paths_share": 1.0} == {
        "src": ["w2", 4],
        "dst": ["w2", 6],
        "type": "processing",
        "operator": "sink",
        "cp": pytest.approx(0.2),
        "paths_share": pytest.approx(1),
        "on_path": True,
    }
    waiting = next(edge for edge in window["edges"] if edge["type"] == "waiting")
    assert (waiting["src"], waiting["dst"]) == (["w1", 5], ["w1", 7])
    assert (waiting["operator"], waiting["cp"], waiting["on_path"]) == (None, 0, False)


def test_windows_begin_at_the_origin(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    def bounds(*origin: str) -> list[tuple[int, int]]:
        found = run(capsys, trace, "--format", "activities", "--window", "4ns", *origin)["windows"]
        return [(window["start_ns"], window["end_ns"]) for window in found]

    assert bounds() == [(0, 4), (4, 8), (8, 10)]
    assert bounds("--origin-ns", "-1") == [(0, 3), (3, 7), (7, 10)]


def test_bad_lines_are_reported_and_skipped(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    good = run(capsys, trace, "--format", "activities", "--window", "1s")
    trace.write_text(TRACE.replace("\n", '\n{"type":"oops"}\nnonsense\n', 1))
    found = run(capsys, trace, "--format", "activities", "--window", "1s")
    assert found["windows"] == good["windows"]
    assert {
        item["code"]: (item["count"], item["example"].split(":")[0]) for item in found["diagnostics"]
    } == {
        "unknown_type": (1, "line 2"),
        "not_json": (1, "line 3"),
    }


def test_several_files_are_one_trace(capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    whole = run(capsys, trace, "--format", "activities", "--window", "1s", "--edges")
    lines = TRACE.splitlines(keepends=True)
    (tmp_path / "a").write_text("".join(lines[3:]))
    (tmp_path / "b").write_text("".join(lines[:3]))
    parts = run(capsys, tmp_path / "b", tmp_path / "a", "--format", "activities", "--window", "1s", "--edges")
    assert parts == whole


def test_unmatched_ends_are_counted(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    trace.write_text(TRACE.replace("c1", "c2", 1))
    diagnostics = run(capsys, trace, "--format", "activities", "--window", "1s")["diagnostics"]
    assert {item["code"]: item["count"] for item in diagnostics} == {
        "unmatched_received": 1,
        "unmatched_sent": 1,
    }


def test_an_empty_trace_has_no_windows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert run(capsys, tmp_path / "empty", "--format", "activities", "--window", "1s") == {
        "windows": [],
        "diagnostics": [],
    }


def test_clocks_that_disagree_are_named_by_worker(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    trace.write_text(TRACE + '{"type":"data_message","worker":"w1","peer":"w2","start_ns":9,"end_ns":8}\n')
    (window,) = run(capsys, trace, "--format", "activities", "--window", "1s")["windows"]
    assert (window["status"], window["log10_paths"], window["cp_total"]) == ("clock_skew", None, 0)
    assert "Worker w2" in window["reason"]


def test_a_spark_event_log(capsys: pytest.CaptureFixture[str]) -> None:
    log = GOLDEN / "eventlog_v2_local-1795259882760"
    found = run(capsys, log, "--format", "spark-event-log", "--window", "2s")
    assert len(found["windows"]) > 5
    for window in found["windows"]:
        assert (window["status"], window["cp_total"]) == ("ok", pytest.approx(1, abs=1e-9))
        assert set(window["cp"]["worker"]) == {"driver", "local/core-0", "local/core-1"}
    assert [item["code"] for item in found["diagnostics"]] == ["task_killed"]


def test_a_person_gets_a_table(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    assert main(["critical-path", str(trace), "--format", "activities", "--window", "1s"]) == 0
    table = capsys.readouterr().out
    assert "operator    40.0% critical   60.0% busy  sink" in table
    assert "w1 → w2" in table


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["critical-path", "/nowhere", "--format", "activities", "--window", "1s"], "No such file"),
        (["critical-path", "/", "--format", "activities", "--window", "1s"], "directory"),
        (["critical-path", "/nowhere", "--format", "spark-event-log", "--window", "1s"], "no such file"),
        (["critical-path", "/", "--format", "spark-event-log", "--window", "1s"], "not one of an event log"),
        (["critical-path", "x", "--format", "activities", "--window", "1"], "no duration"),
        (["critical-path", "x", "--format", "activities", "--window", "0s"], "whole number"),
        (["critical-path", "x", "--format", "activities", "--window", "0.3ns"], "whole number"),
        (["critical-path", "x", "--format", "activities", "--window", "1s", "--origin-ns", "1.5"], "no time"),
        (["critical-path", "x", "--format", "xml", "--window", "1s"], "invalid choice"),
        (["critical-path", "x", "--window", "1s"], "--format"),
        (["critical-path", "--format", "activities", "--window", "1s"], "FILE"),
        (["dance"], "invalid choice"),
        ([], "COMMAND"),
    ],
)
def test_wrong_use_is_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err
    assert captured.err.count("\n") == 1


def test_more_windows_than_anybody_reads_are_refused(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    trace.write_text(
        TRACE + '{"type":"processing","worker":"w1","start_ns":0,"end_ns":4000000000000000000}\n'
    )
    assert main(["critical-path", str(trace), "--format", "activities", "--window", "1ns", "--json"]) == 2
    assert "too many" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "wanted_ns"),
    [
        ("1ns", 1),
        ("5us", 5_000),
        ("5µs", 5_000),
        ("250ms", 250_000_000),
        ("1.5s", 1_500_000_000),
        ("2m", 120 * 10**9),
    ],
)
def test_durations_have_units(text: str, wanted_ns: int) -> None:
    from analytics.cli.arguments import duration_ns

    assert duration_ns(text) == wanted_ns


def test_the_command_runs_as_a_program(trace: Path) -> None:
    done = subprocess.run(program(trace), capture_output=True, cwd=CHECKOUT, timeout=120, check=True)
    assert json.loads(done.stdout)["windows"][0]["status"] == "ok"
    assert done.stderr == b""


def test_a_reader_that_leaves_gets_no_traceback(trace: Path) -> None:
    with subprocess.Popen(
        program(trace), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=CHECKOUT
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.wait(120) == 1
        assert running.stderr.read() == b""


def program(trace: Path) -> list[str]:
    arguments = ["critical-path", str(trace), "--format", "activities", "--window", "1s", "--json"]
    return [sys.executable, "-m", "analytics", *arguments]
