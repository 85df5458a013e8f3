"""What benchmarks of the whole product stand on: real servers, a migrated database, real workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import django
from django.core.management import call_command

from tests.support.services import export, running_services


@contextmanager
def weir() -> Iterator[Path]:
    """PostgreSQL, Valkey and Django set up on them; gives the state directory."""
    with ExitStack() as stack:
        services = stack.enter_context(running_services())
        export(services)
        os.environ["DJANGO_SETTINGS_MODULE"] = "webapp.settings"
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-bench-")))
        os.environ["WEIR_HOME"] = str(home)
        django.setup()
        call_command("migrate", verbosity=0)
        yield home


@contextmanager
def celery(home: Path, name: str, *arguments: str) -> Iterator[None]:
    """A Celery process beside this one; its output is in ``<home>/<name>.log``."""
    command = [sys.executable, "-m", "celery", "-A", "workers.celery", *arguments, "--loglevel", "INFO"]
    with (home / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until_spark_is_warm(home: Path, seconds: float = 180) -> None:
    """Return when the Spark worker says that it is ready."""
    from webapp.ops.health import sign_of_life

    end = time.monotonic() + seconds
    while sign_of_life("spark") is None:
        if time.monotonic() > end:
            raise TimeoutError((home / "spark.log").read_text()[-3000:])
        time.sleep(0.2)
