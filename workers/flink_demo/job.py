"""The demo's job, compiled on the spot and submitted: held at less than a quarter of what arrives."""

from __future__ import annotations

import subprocess
import zipfile
from pathlib import Path

import httpx

from webapp.ops.embedded import StartError

SOURCE = Path(__file__).with_name("PageViews.java")
MAIN_CLASS = "PageViews"
NAME = "page-views"
SOURCE_OPERATOR = "Source: views"
VIEWS_PER_S = 420.0
LOOKUP_US = 10_000
COUNT_US = 1_500
"""With these, lookup needs 4.2 instances and count 1.3: far from whole numbers, so that noise decides nothing."""

WITHIN_S = 60.0


def compiled(jars: Path, jdk: Path, into: Path) -> Path:
    """The job as a jar.

    Raises
    ------
    StartError
        If it does not compile.
    """
    classes = into / "classes"
    classes.mkdir(parents=True, exist_ok=True)
    command = [
        str(jdk / "bin" / "javac"),
        "--release",
        "17",
        "-cp",
        f"{jars}/*",
        "-d",
        str(classes),
        str(SOURCE),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StartError(f"{SOURCE.name} does not compile: {done.stderr}")
    jar = into / f"{NAME}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for item in sorted(classes.iterdir()):
            archive.write(item, item.name)
    return jar


def submit(address: str, jar: Path) -> str:
    """Run the job, one instance of each operator; returns its id.

    Raises
    ------
    StartError
        If the cluster refuses it.
    """
    arguments = [str(VIEWS_PER_S), str(LOOKUP_US), str(COUNT_US)]
    try:
        with jar.open("rb") as file:
            sent = {"jarfile": (jar.name, file, "application/java-archive")}
            kept = httpx.post(f"{address}/jars/upload", files=sent, timeout=WITHIN_S).raise_for_status()
        uploaded = Path(kept.json()["filename"]).name
        how = {"entryClass": MAIN_CLASS, "programArgsList": arguments, "parallelism": 1}
        run = httpx.post(f"{address}/jars/{uploaded}/run", json=how, timeout=WITHIN_S).raise_for_status()
        return str(run.json()["jobid"])
    except httpx.HTTPError as error:
        raise StartError(f"Flink does not run the job: {error}") from error
