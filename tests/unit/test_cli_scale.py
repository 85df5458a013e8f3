"""``python -m analytics scale``: DS2's files in, one documented JSON object out."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analytics.cli import main

TOPOLOGY = """\
# one edge a line
s, source, 1, o1, op one, 1

o1, op one, 1, o2, op two, 1
"""
# Three epochs of the authors' tests; each instance stamps its rows at times of its own, in no order.
RATES = """\
s,0,1,300,0,200,0,1
s,0,1,100,0,100,0,1
s,0,1,200,0,200,0,1
o1,0,1,1101,50,400,1,1
o1,0,1,1202,40,700,1,1
# a comment
o1,0,1,1303,10,700,1,1
o2,0,1,7,100,0,1,0
o2,0,1,8,99,0,1,0
o2,0,1,1795259890197000001,201,0,1,0
"""
FIELDS = [
    "name", "current", "need", "parallelism", "status", "reason",
    "target_rate_per_s", "true_processing_rate_per_s", "true_output_rate_per_s",
]  # fmt: skip


class Files:
    """DS2's files in a directory, and what the command says about them."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys
        self.write("topology.csv", TOPOLOGY)
        self.write("rates.csv", RATES)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *more: str, policy: str = "ds2", rates: str = "rates.csv") -> tuple[int, str, str]:
        files = ("--topology", str(self.folder / "topology.csv"), "--rates", str(self.folder / rates))
        code = main(["scale", "--policy", policy, *files, *more])
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def found(self, *more: str, policy: str = "ds2", rates: str = "rates.csv") -> dict[str, Any]:
        code, out, err = self.run(*more, "--json", policy=policy, rates=rates)
        assert (code, err) == (0, "")
        return json.loads(out)  # type: ignore[no-any-return]

    def asked(self, *more: str, rates: str = "rates.csv") -> dict[int, dict[str, int | None]]:
        return {
            epoch["epoch"]: {name: item["parallelism"] for name, item in epoch["operators"].items()}
            for epoch in self.found(*more, rates=rates)["epochs"]
        }

    def reasons(self, *more: str, rates: str = "rates.csv") -> dict[int, dict[str, str | None]]:
        return {
            epoch["epoch"]: {name: item["reason"] for name, item in epoch["operators"].items()}
            for epoch in self.found(*more, rates=rates)["epochs"]
        }


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(tmp_path, capsys)


def test_every_epoch_is_decided_by_itself(files: Files) -> None:
    assert files.asked() == {
        0: {"s": 1, "o1": 2, "o2": 8}, 1: {"s": 1, "o1": 5, "o2": 36}, 2: {"s": 1, "o1": 20, "o2": 70},
    }  # fmt: skip


def test_the_document_is_the_published_one(files: Files) -> None:
    found = files.found()
    assert list(found) == ["epochs"]
    assert [list(epoch) for epoch in found["epochs"]] == [["epoch", "operators"]] * 3
    operators = found["epochs"][0]["operators"]
    assert all(list(item) == FIELDS for item in operators.values())
    assert operators["s"] == {
        "name": "source", "current": 1, "need": None, "parallelism": 1, "status": "ok", "reason": None,
        "target_rate_per_s": 100.0, "true_processing_rate_per_s": 0.0, "true_output_rate_per_s": 100.0,
    }  # fmt: skip
    assert operators["o2"] == {
        "name": "op two", "current": 1, "need": 8.0, "parallelism": 8, "status": "ok", "reason": None,
        "target_rate_per_s": 800.0, "true_processing_rate_per_s": 100.0, "true_output_rate_per_s": 0.0,
    }  # fmt: skip


def test_source_rates_are_per_instance_and_replace_the_true_output(files: Files) -> None:
    files.write("topology.csv", "s,s,3,o1,o1,1\n")
    files.write("rates.csv", "".join(f"s,{i},3,1,0,100,0,10\n" for i in range(3)) + "o1,0,1,1,50,0,50,0\n")
    given = str(files.write("sources.csv", "s, 40\n"))
    assert files.asked() == {0: {"s": 3, "o1": 6}}
    assert files.asked("--source-rates", given) == {0: {"s": 3, "o1": 3}}
    observed = str(files.write("observed.csv", "s,-1\n"))
    assert files.asked("--source-rates", observed) == {0: {"s": 3, "o1": 1}}


def test_a_known_source_rate_needs_no_rows_of_the_source(files: Files) -> None:
    files.write("rates.csv", "o1,0,1,1,50,400,1,1\no2,0,1,1,100,0,1,1\n")
    assert files.reasons()[0] == {
        "s": "NO_SOURCE_TARGET",
        "o1": "UPSTREAM_UNDECIDED",
        "o2": "UPSTREAM_UNDECIDED",
    }
    given = str(files.write("sources.csv", "s,100\n"))
    assert files.asked("--source-rates", given) == {0: {"s": 1, "o1": 2, "o2": 8}}


def test_a_factor_adds_a_reserve(files: Files) -> None:
    assert files.asked("--factor", "0.2")[0] == {"s": 1, "o1": 3, "o2": 10}
    assert files.found("--factor", "0.2")["epochs"][0]["operators"]["o1"]["need"] == 2.0


def test_a_directory_of_files_by_instance_and_epoch(files: Files) -> None:
    for epoch, row in ((9, "50,400"), (10, "40,700")):
        files.write(f"online/op-one-0-{epoch}.rates", f"o1,0,1,5,{row},1,1\n")
        files.write(f"online/op-two-0-{epoch}.rates", "o2,0,1,5,100,0,1,1\n")
        files.write(f"online/source-0-{epoch}.rates", "s,0,1,5,0,200,1,1\n")
    assert files.asked(rates="online") == {9: {"s": 1, "o1": 4, "o2": 16}, 10: {"s": 1, "o1": 5, "o2": 35}}


def test_several_files_are_one_set_of_rates(files: Files) -> None:
    rows = RATES.splitlines(keepends=True)
    files.write("split/a.csv", "".join(rows[:4]))
    files.write("split/b.csv", "".join(rows[4:]))
    assert files.asked(rates="split") == files.asked()
    others = ("--rates", str(files.folder / "split" / "b.csv"))
    assert files.asked(*others, rates="split/a.csv") == files.asked()


def test_an_instance_that_is_missing_is_no_half_capacity(files: Files) -> None:
    files.write("topology.csv", "s,s,1,o1,o1,2\n")
    files.write("rates.csv", "s,0,1,1,0,100,0,100\ns,0,1,2,0,100,0,100\n"
                "o1,0,2,1,50,0,50,0\no1,1,2,1,50,0,50,0\no1,0,2,2,50,0,50,0\n")  # fmt: skip
    found = files.found()
    assert [epoch["operators"]["o1"]["parallelism"] for epoch in found["epochs"]] == [2, None]
    late = found["epochs"][1]["operators"]["o1"]
    assert (late["status"], late["reason"], late["need"]) == ("cannot_decide", "MISSING_INSTANCE", None)
    assert late["true_processing_rate_per_s"] is None
    assert found["diagnostics"][0]["code"] == "fewer_epochs"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("o1,0,1,1,0,0,0,0", "ZERO_CAPACITY"),
        ("o1,0,1,1,nan,1,1,1", "NON_FINITE"),
        ("o1,0,1,1,inf,1,1,1", "NON_FINITE"),
        ("o1,0,1,1,-5,1,1,1", "NON_FINITE"),
        ("o1,0,1,1,five,1,1,1", "NON_FINITE"),
        ("o1,0,2,1,50,400,1,1", "TOPOLOGY_MISMATCH"),
        ("# o1,0,1,1,50,400,1,1", "MISSING_RATES"),
    ],
)
def test_what_cannot_be_told_has_a_reason(files: Files, row: str, reason: str) -> None:
    files.write("rates.csv", f"s,0,1,1,0,100,0,1\n{row}\no2,0,1,1,100,0,1,0\n")
    assert files.reasons() == {0: {"s": None, "o1": reason, "o2": "UPSTREAM_UNDECIDED"}}
    assert files.asked() == {0: {"s": 1, "o1": None, "o2": None}}


def test_a_cycle_and_a_selectivity_of_zero_do_not_end_the_command(files: Files) -> None:
    files.write("rates.csv", "s,0,1,1,0,100,0,1\no1,0,1,1,50,0,1,0\no2,0,1,1,100,0,1,0\n")
    assert files.asked() == {0: {"s": 1, "o1": 2, "o2": 1}}
    assert files.reasons()[0]["o2"] == "NO_INPUT"
    files.write("topology.csv", TOPOLOGY + "o2,op two,1,o1,op one,1\n")
    assert set(files.reasons()[0].values()) == {"CYCLE"}


def test_lines_that_cannot_be_used_are_counted(files: Files) -> None:
    files.write("rates.csv", RATES + "o1,0,1\nnonsense\no2,0,1,8,1,1,1,1\n")
    found = files.found()
    assert len(found["epochs"]) == 3
    assert [(item["code"], item["count"]) for item in found["diagnostics"]] == [
        ("bad_rate_row", 2), ("repeated_rate_row", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("topology.csv", "s,source, with a comma,1,o1,o1,1\n", "6 fields make an edge, not 7"),
        ("topology.csv", "s,s,0,o1,o1,1\n", "no operator"),
        ("topology.csv", "s,s,1,o1,o1,1\ns,s,2,o2,o2,1\n", "stated otherwise"),
        ("topology.csv", "# nothing\n", "no edge"),
        ("rates.csv", "# nothing\n", "no rates"),
        ("sources.csv", "s,many\n", "no rate"),
        ("sources.csv", "o1,3\n", "no source of the topology"),
        ("sources.csv", "s,3\ns,4\n", "stated before"),
    ],
)
def test_a_file_that_makes_no_sense_is_told_in_one_line(
    files: Files, name: str, text: str, problem: str
) -> None:
    given = files.write("sources.csv", "s,1\n")
    files.write(name, text)
    code, out, err = files.run("--source-rates", str(given))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert problem in err


def test_a_missing_file_an_unknown_policy_and_a_bad_factor_are_refused(files: Files) -> None:
    assert files.run(rates="nowhere.csv")[0] == 2
    assert files.run(policy="guess")[0] == 2
    assert files.run("--factor", "-1")[0] == 2


def test_people_get_a_table(files: Files) -> None:
    code, out, _ = files.run()
    assert code == 0
    assert "epoch 0" in out
    assert out.splitlines()[3].split() == ["1", "2", "2", "100", "50", "400", "op", "one"]


SATURATED = """\
s,0,1,1,0,200,0,100
a,0,2,1,50,50,50,50
a,1,2,1,50,50,50,50
b,0,1,1,400,0,100,0
"""


def test_every_policy_answers_in_the_same_form(files: Files) -> None:
    files.write("topology.csv", "s,s,1,a,a,2\na,a,2,b,b,1\n")
    files.write("rates.csv", SATURATED)
    asked = {}
    for policy in ("ds2", "flink-autoscaler", "dhalion"):
        operators = files.found(policy=policy)["epochs"][0]["operators"]
        assert all(list(item) == FIELDS for item in operators.values())
        asked[policy] = {name: item["parallelism"] for name, item in operators.items()}
    # The source could send 200/s and is held back at 100/s. The autoscaler wants 200/s at 70 % utilisation and,
    # within half an hour, what a restart of five minutes leaves behind: 200/0.7 + 200/6 = 319/s.
    assert asked == {
        "ds2": {"s": 1, "a": 4, "b": 1},
        "flink-autoscaler": {"s": 1, "a": 7, "b": 1},
        "dhalion": {"s": 1, "a": 4, "b": 1},
    }


@pytest.mark.parametrize("policy", ["flink-autoscaler", "dhalion"])
def test_no_policy_makes_up_a_missing_instance(files: Files, policy: str) -> None:
    files.write("topology.csv", "s,s,1,a,a,2\na,a,2,b,b,1\n")
    files.write("rates.csv", SATURATED.replace("a,1,", "# a,1,"))
    operator = files.found(policy=policy)["epochs"][0]["operators"]["a"]
    assert (operator["parallelism"], operator["status"], operator["reason"]) == (
        None, "cannot_decide", "MISSING_INSTANCE",
    )  # fmt: skip


def test_only_ds2_takes_a_factor(files: Files) -> None:
    assert files.run("--factor", "0.5", policy="dhalion")[0] == 2


def outside(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """The command as a stranger calls it: another process, in the files' own directory."""
    command = [sys.executable, "-m", "analytics", "scale", "--policy", "ds2", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_stranger_calls_it_with_relative_paths_and_windows_line_ends(files: Files) -> None:
    folder = files.folder / "files of mine"
    (folder / "online").mkdir(parents=True)
    (folder / "topology.csv").write_bytes(b"\xef\xbb\xbf" + TOPOLOGY.replace("\n", "\r\n").encode())
    (folder / "rates.csv").write_bytes(RATES.replace("\n", "\r\n").encode())
    (folder / "sources.csv").write_bytes(b"s,100\r\n\r\n# nothing more\r\n")
    given = ("--topology", "topology.csv", "--source-rates", "./sources.csv", "--json")
    code, out, err = outside(folder, *given, "--rates", "rates.csv")
    assert (code, err) == (0, "")
    asked = [
        [item["parallelism"] for item in epoch["operators"].values()] for epoch in json.loads(out)["epochs"]
    ]
    assert asked == [[1, 2, 8], [1, 3, 18], [1, 10, 35]]
    for row in RATES.splitlines()[:6:2]:
        name = row.split(",")[0]
        (folder / "online" / f"{name}-0-4.csv").write_bytes(f"{row}\r\n".encode())
    (folder / "online" / "o2-0-4.csv").write_bytes(b"o2,0,1,7,100,0,1,0\r\n")
    code, out, _ = outside(folder, *given, "--rates", "online")
    assert (code, [epoch["epoch"] for epoch in json.loads(out)["epochs"]]) == (0, [4])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rates.csv", b""),
        ("rates.csv", bytes(range(256)) * 40),
        ("rates.csv", b"s,0,1,1,0," + b"1" * 200_000 + b",0,1\n"),
        ("rates.csv", b"\r\n \r\n# only a comment\r\n"),
        ("rates.csv", None),
        ("topology.csv", b""),
        ("topology.csv", b"\x00\x00\x00,\x00"),
        ("topology.csv", b"PK\x03\x04" + b"\xff" * 99),
        ("topology.csv", None),
        ("sources.csv", b"s\n"),
        ("sources.csv", None),
        ("online/", None),
    ],
)
def test_garbage_empty_and_missing_files_end_with_2_and_one_line(
    files: Files, name: str, content: bytes | None
) -> None:
    given = files.write("sources.csv", "s,1\n")
    path = files.folder / name
    rates = "rates.csv"
    if name.endswith("/"):
        path.mkdir()
        rates = name
    elif content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    code, out, err = files.run("--source-rates", str(given), rates=rates)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert name.rstrip("/") in err


def test_rows_that_are_half_garbage_leave_the_rest(files: Files) -> None:
    (files.folder / "rates.csv").write_bytes(
        RATES.encode() + "o1,0,1,\u2028,1,1,1,1\n".encode() + b'o2,0,1,9,"100,0,1,0\n' + b"\x00,\x00\n"
    )
    found = files.found()
    assert len(found["epochs"]) == 3
    assert [(item["code"], item["count"]) for item in found["diagnostics"]] == [("bad_rate_row", 3)]
