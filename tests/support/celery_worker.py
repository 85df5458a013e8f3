"""A real Celery worker in a process of its own, which a test may kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection
from kombu import Connection


@contextmanager
def celery_worker(queue: str, home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker of this queue on this test's database and broker, in a process group of its own.

    It does nothing of what earlier tests left in the queue: that would be minutes of work.
    """
    with Connection(settings.REDIS_URL) as broker:
        broker.default_channel.queue_purge(queue)
    known = connection.settings_dict
    address = (
        f"postgresql://{known['USER']}:{known['PASSWORD']}@{known['HOST']}:{known['PORT']}/{known['NAME']}"
    )
    environment = os.environ | {
        "DATABASE_URL": address,
        "REDIS_URL": settings.REDIS_URL,
        "WEIR_HOME": str(home),
    }
    command = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "-Q", queue, "-P", "solo"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """kill -9, with its children."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for(what: str, condition: Callable[[], bool], log: Path, seconds: float = 120) -> None:
    """Wait until it is so; the worker's log tells why it is not."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s:\n{log.read_text()[-3000:]}"
        time.sleep(0.02)
