"""What the Flink demo says where it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from webapp.ops.embedded import StartError
from workers.flink_demo import release


def compiler(home: Path, says: str) -> Path:
    """A JDK of which only the compiler is there, and only tells its version."""
    program = home / "bin" / "javac"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho {says}\n")
    program.chmod(0o755)
    return home


def test_a_machine_without_a_compiler_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(StartError, match=r"no Java compiler \(javac\) of version 17 or newer: install a JDK"):
        release.jdk()


def test_the_named_jdk_goes_first_unless_it_is_too_old_or_cannot_compile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    new, old = compiler(tmp_path / "new", "javac 21.0.1"), compiler(tmp_path / "old", "javac 11.0.2")
    monkeypatch.setenv("PATH", f"{compiler(tmp_path / 'system', 'javac 17.0.15')}/bin:/bin")
    monkeypatch.setenv("JAVA_HOME", str(new))
    assert release.jdk() == new
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert release.jdk() == tmp_path / "system"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert release.jdk() == tmp_path / "system"


def test_a_wheel_that_is_another_than_was_pinned_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wheel = tmp_path / "apache_flink_libraries-2.3.0-py3-none-any.whl"
    wheel.write_bytes(b"something else")
    other = tmp_path / "wheels.txt"
    other.write_text(f"apache-flink-libraries @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(release, "WHEELS", other)
    monkeypatch.setattr(release.sys, "prefix", str(tmp_path))
    with pytest.raises(StartError, match=r"cannot be downloaded: .*HASHES"):
        release.jars()
    assert [*tmp_path.glob("flink-*")] == [], "nothing half done is left"
