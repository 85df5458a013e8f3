"""The commands that answer questions about files: what a person and a program get."""

import json
from pathlib import Path
from typing import Any

import pytest

from analytics.cli import main

GOLDEN = (
    Path(__file__).parents[2] / "tests" / "golden" / "spark_event_log" / "eventlog_v2_local-1795259882760"
)
SPARK = ("--format", "spark-event-log", "--window", "2s")
NDJSON = ("--format", "activities", "--window", "1s")

# a/1 maps until 10 and sends to b/2, which worked until 2 and then waited for the message until 11; it sinks until
# 15. a/1 formats until 15, so nothing is unknown. Times are in thousands.
TRACE = """\
{"type":"processing","worker":"a/1","operator":"map","start_ns":0,"end_ns":10000}
{"type":"data_message","worker":"a/1","peer":"b/2","start_ns":10000,"end_ns":11000}
{"type":"serialization","worker":"a/1","operator":"format","start_ns":10000,"end_ns":15000}
{"type":"processing","worker":"b/2","start_ns":0,"end_ns":2000}
{"type":"processing","worker":"b/2","operator":"sink","start_ns":11000,"end_ns":15000}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.ndjson"
    path.write_text(TRACE)
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def found(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    return json.loads(told(capsys, *arguments, "--json"))  # type: ignore[no-any-return]


def test_why_a_worker_waited_at_a_time(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    answer = found(capsys, "why", trace, *NDJSON, "--worker", "b/2", "--at-ns", "5000")
    assert (answer["wait_count"], answer["wait_ns"], answer["diagnostics"]) == (1, 9000, [])
    first, second = answer["groups"]
    assert first | {"example": None} == {
        "hop": 1, "type": "data_message", "operator": None, "worker": "a/1", "count": 1, "duration_ns": 1000,
        "during_ns": 1000, "example": None,
    }  # fmt: skip
    assert first["example"] == {"src": "a/1", "src_ns": 10000, "dst": "b/2", "dst_ns": 11000}
    assert (second["hop"], second["operator"], second["during_ns"]) == (2, "map", 8000)


def test_why_for_a_person(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    table = told(capsys, "why", trace, *NDJSON)
    assert "1 waits of 9.00 µs" in table
    assert "data_message from a/1" in table
    assert "processing map on a/1" in table


def test_why_over_many_windows_adds_up(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    answer = found(capsys, "why", trace, "--format", "activities", "--window", "4us", "--hops", "1")
    assert (answer["wait_count"], answer["cut_count"]) == (1, 2)
    assert [group["count"] for group in answer["groups"]] == [1]


def test_what_if_an_operator_were_faster(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    # Sends at 5, received at 6, done at 10; a/1 formats from 5 until 10.
    answer = found(capsys, "what-if", trace, *NDJSON, "--operator", "map", "--at-ns", "0")
    assert (answer["target"], answer["factor"]) == ({"kind": "operator", "name": "map"}, 2.0)
    assert (answer["saved_ns"], answer["length_ns"]) == (5000, 15000)
    (window,) = answer["windows"]
    assert window["path"][0]["operator"] == "map"
    assert window["path"][0]["dst_ns"] == 5000
    table = told(capsys, "what-if", trace, *NDJSON, "--operator", "map", "--factor", "inf")
    # Done at max(2, 1) + 4 = 6; a/1 at 0 + 5.
    assert "operator map ∞× faster saves 9.00 µs of 15.00 µs (60.0%)" in table
    assert "then processing sink b/2 (4.00 µs)" in table


def test_what_if_a_worker_or_an_activity_were_faster(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    assert found(capsys, "what-if", trace, *NDJSON, "--worker", "b/2")["saved_ns"] == 0
    # Done at 11 + 4 all the same.
    assert found(capsys, "what-if", trace, *NDJSON, "--activity", "serialization")["saved_ns"] == 0


def test_what_is_worth_optimising(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    rows = found(capsys, "what-if", trace, *NDJSON, "--rank")["rows"]
    assert rows[0]["target"] == {"kind": "activity", "name": "processing"}
    assert {"kind": "operator", "name": "map"} in [row["target"] for row in rows[1:3]]
    lines = told(capsys, "what-if", trace, *NDJSON, "--rank").splitlines()
    assert lines[1].split() == ["critical", "1.5×", "2×", "∞×", "what"]
    assert lines[2].endswith("activity processing")


def test_a_spark_log_is_ranked(capsys: pytest.CaptureFixture[str]) -> None:
    answer = found(capsys, "what-if", GOLDEN, *SPARK, "--rank")
    assert (answer["factors"], answer["windows_left_out"]) == ([1.5, 2.0, "infinite"], 0)
    for row in answer["rows"]:
        assert 0 <= row["saved_ns"][0] <= row["saved_ns"][1] <= row["saved_ns"][2]
        assert row["saved_ns"][2] <= row["cp"] * answer["length_ns"] + answer["window_count"]


def test_compare_two_traces_by_name(capsys: pytest.CaptureFixture[str], trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "after.ndjson"
    # The same but for the order of lines, so of numbers, and for a format operator that is called encode.
    other.write_text("".join(reversed(TRACE.replace("format", "encode").splitlines(keepends=True))))
    answer = found(capsys, "compare", trace, other, *NDJSON)
    changes = {(item["dimension"], item["name"]): item["cp"]["change"] for item in answer["changes"]}
    assert changes["operator", "format"] == -changes["operator", "encode"] != 0
    assert changes["operator", "map"] == 0
    assert changes["worker", "a/1"] == 0
    assert changes["channel", "a/1 → b/2"] == 0
    assert {item["confidence"] for item in answer["changes"]} == {"too_few_windows"}
    assert "operator encode" in told(capsys, "compare", trace, other, *NDJSON)


def test_compare_two_ranges_of_one_log(capsys: pytest.CaptureFixture[str]) -> None:
    middle, end = "1795259898000000000", "1895259898000000000"
    ranges = ("--before-ns", "0", middle, "--after-ns", middle, end)
    answer = found(capsys, "compare", GOLDEN, GOLDEN, *SPARK, *ranges)
    assert (answer["before"]["window_count"], answer["after"]["window_count"]) == (4, 4)
    assert answer["changes"]
    assert [item["code"] for item in answer["diagnostics"]] == ["task_killed"]


def test_collocate_takes_the_host_from_the_name_if_told(
    capsys: pytest.CaptureFixture[str], trace: Path
) -> None:
    answer = found(capsys, "collocate", trace, *NDJSON, "--host-pattern", "^[^/]+")
    (proposal,) = answer["proposals"]
    assert (proposal["worker"], proposal["host"], proposal["best_host"]) == ("a/1", "a", "b")
    (beside,) = proposal["beside"]
    assert (beside["worker"], beside["cp"]) == ("b/2", pytest.approx(proposal["cp_removed"]))
    assert (answer["hosts"], answer["unknown_host_count"]) == (["a", "b"], 0)
    assert "Put a/1 beside b/2" in told(capsys, "collocate", trace, *NDJSON)
    assert "No message between hosts" in told(capsys, "collocate", trace, *NDJSON, "--host-pattern", "/")


def test_trust_for_a_program_and_for_a_person(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    trace.write_text(TRACE + "nonsense\n")
    limits = ("--longest-message", "500ns", "--progress")
    answer = found(capsys, "trust", trace, *NDJSON, *limits)
    checks = {item["code"]: item for item in answer["checks"]}
    assert checks["longest_message"]["examples"] == [
        {"worker": "a/1", "peer": "b/2", "operator": None, "from_ns": 10000, "to_ns": 11000}
    ]
    assert (checks["progress_to_all_peers"]["count"], checks["acyclic"]["state"]) == (2, "passed")
    assert [item["code"] for item in answer["diagnostics"]] == ["not_json"]
    table = told(capsys, "trust", trace, *NDJSON, *limits)
    assert "1 of 1 windows have a critical path" in table
    assert "  worker a/1 to b/2 10000 ns to 11000 ns" in table


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["why", "--worker", "nobody"], "no worker is named 'nobody'; there are"),
        (["why", "--at-ns", "99999999999"], "no window at"),
        (["why", "--hops", "0"], "--hops"),
        (["what-if"], "one of the arguments --operator"),
        (["what-if", "--rank", "--worker", "a/1"], "not allowed with"),
        (["what-if", "--operator", "nothing"], "no operator is named 'nothing'"),
        (["what-if", "--activity", "waiting"], "no activity that can be made faster"),
        (["what-if", "--activity", "dancing"], "no activity that can be made faster"),
        (["what-if", "--worker", "a/1", "--factor", "0.5"], "no factor"),
        (["what-if", "--worker", "a/1", "--factor", "nan"], "no factor"),
        (["collocate", "--host-pattern", "("], "no regular expression"),
        (["trust", "--longest-pause", "5"], "no duration"),
    ],
)
def test_wrong_questions_are_one_line_on_stderr_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], trace: Path, arguments: list[str], reason: str
) -> None:
    assert main([arguments[0], str(trace), *NDJSON, *arguments[1:]]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert reason in captured.err
    assert captured.err.count("\n") == 1


def test_a_range_without_windows_is_refused(capsys: pytest.CaptureFixture[str], trace: Path) -> None:
    assert main(["compare", str(trace), str(trace), *NDJSON, "--after-ns", "5", "9"]) == 2
    assert "no window lies between 5 ns and 9 ns" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["why"], ["what-if", "--rank"], ["collocate"], ["trust"]])
def test_an_empty_file_is_answered(
    capsys: pytest.CaptureFixture[str], trace: Path, command: list[str]
) -> None:
    trace.write_text("")
    if command == ["why"]:
        assert main(["why", str(trace), *NDJSON]) == 2
        assert "no activities" in capsys.readouterr().err
    else:
        assert found(capsys, command[0], trace, *NDJSON, *command[1:])["kind"]
