"""``python -m analytics bursts``: what a person and a program get, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analytics.cli import main
from tests.support.burst_models import random_document, worked_example


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.json"
    path.write_text(json.dumps(worked_example()))
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert main(["bursts", *(str(argument) for argument in arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def found(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    return json.loads(told(capsys, *arguments, "--json"))  # type: ignore[no-any-return]


def test_a_program_gets_every_answer_about_the_worked_example(
    capsys: pytest.CaptureFixture[str], model: Path
) -> None:
    answer = found(capsys, model, "--at", "app1=0.05,app2=0.05")
    assert answer["max_rate"] == pytest.approx({"app1": 0.25, "app2": 0.2})
    assert answer["headroom"]["all"] == pytest.approx(0.11)
    assert answer["headroom"]["each"] == pytest.approx({"app1": 0.11, "app2": 0.11})
    assert answer["headroom"]["single"] == pytest.approx(0.15)
    assert answer["headroom"]["proportional"] == pytest.approx(3.2)
    assert answer["target"] == pytest.approx({"app1": 0.16, "app2": 0.16})
    plan = answer["plan"]
    assert plan["c1"] + plan["c3"] == pytest.approx(0.16)
    assert 4 * plan["c1"] + 6 * plan["c2"] <= 1 + 1e-9
    assert answer["fractions"]["c1"] == pytest.approx(plan["c1"] / 0.16)
    assert [(row["node"], row["resource"]) for row in answer["binding"]] == [("A", "cpu"), ("B", "cpu")]
    assert [row["price"] for row in answer["binding"]] == pytest.approx([0.10, 0.06])
    assert len(answer["region"]["vertices"]) == 5
    assert len(answer["region"]["pareto"]) == 2
    assert {"a": pytest.approx([0.4, 0.6]), "b": pytest.approx(0.16)} in [
        {"a": side["a"], "b": side["b"]} for side in answer["region"]["facets"]
    ]
    assert answer["index"]["points"] >= 2
    assert answer["index"]["seconds"] > 0
    assert answer["diagnostics"] == []


def test_the_order_of_the_rates_does_not_matter(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    answer = found(capsys, model, "--at", "app2=0.02, app1=0.2")
    assert answer["rates"] == {"app1": 0.2, "app2": 0.02}
    assert answer["headroom"]["each"] == pytest.approx({"app1": 0.05, "app2": 0.08})


def test_losing_a_node_and_scaling_another(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    lost = found(capsys, model, "--at", "app1=0.05,app2=0.05", "--lose", "B")
    assert lost["headroom"]["all"] == pytest.approx(0.05)
    both = found(capsys, model, "--at", "app1=0.05,app2=0.05", "--lose", "B", "--scale", "A.cpu=1.1")
    assert both["headroom"]["all"] == pytest.approx(0.06)
    assert len({lost["version"], both["version"]}) == 2


def test_inputs_that_do_not_fit_say_what_to_shed(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    answer = found(capsys, model, "--at", "app1=0.2,app2=0.2")
    assert answer["headroom"]["all"] == pytest.approx(-0.04)
    assert answer["shed"] == pytest.approx({"app1": 0.04, "app2": 0.04})
    assert answer["headroom"]["alone"] == pytest.approx({"app1": -0.1, "app2": -0.2 / 3})
    assert "0.08 must be shed" in told(capsys, model, "--at", "app1=0.2,app2=0.2")


def test_a_person_reads_what_stops_growth(capsys: pytest.CaptureFixture[str], model: Path) -> None:
    text = told(capsys, model, "--at", "app1=0.2,app2=0.02")
    assert text.startswith("All inputs may grow by 0.05 each.")
    assert "cpu of dest1 stops growth; 10 % more of it buys 0.0179964" in text


def test_what_has_no_number_is_null(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    document = worked_example()
    for stage in document["applications"]["app2"]["stages"]:
        for component in stage["components"]:
            component["cost"] = {}
    path = tmp_path / "free.json"
    path.write_text(json.dumps(document))
    answer = found(capsys, path, "--at", "app1=0,app2=0")
    assert answer["max_rate"] == {"app1": pytest.approx(0.25), "app2": None}
    assert answer["headroom"]["each"]["app2"] is None
    assert answer["headroom"]["proportional"] is None
    assert (answer["region"], answer["index"]) == (None, None)


def test_many_applications_have_no_region_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps(random_document(1, applications=6, resources=2) | {"note": 1}))
    rates = ",".join(f"a{q}=0.01" for q in range(6))
    answer = found(capsys, path, "--at", rates)
    assert answer["region"] is None
    assert answer["index"]["points"] >= 6
    assert [item["code"] for item in answer["diagnostics"]] == ["unknown_field"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "app1=0.05"], "--at gives no rate for application 'app2'"),
        (["--at", "app1=0.05,app2=0.05,app3=1"], "no application 'app3'"),
        (["--at", "app1=0.05,app2=x"], "no number of at least 0"),
        (["--at", "app1=0.05,app2=-1"], "no number of at least 0"),
        (["--at", "app1=0.05,app2=nan"], "no number of at least 0"),
        (["--at", "app1=0.05,app1=0.05"], "twice"),
        (["--at", "app1=0.05,app2=0.05", "--lose", "Z"], "no node 'Z'"),
        (["--at", "app1=0.05,app2=0.05", "--scale", "A.gpu=2"], "no resource 'gpu'"),
        (["--at", "app1=0.05,app2=0.05", "--scale", "A=2"], "NODE.RESOURCE=FACTOR"),
        ([], "--at"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    capsys: pytest.CaptureFixture[str], model: Path, arguments: list[str], words: str
) -> None:
    assert main(["bursts", str(model), *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"nodes": {"A": {"cpu": NaN}}}', "\x00"])
def test_a_file_that_is_no_model_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    assert main(["bursts", str(path), "--at", "a=1"]) == 2
    assert main(["bursts", str(tmp_path / "none.json"), "--at", "a=1"]) == 2
    assert capsys.readouterr().err.count("\n") == 2
