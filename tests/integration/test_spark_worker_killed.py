"""A Spark worker killed in the middle of a run leaves nothing half written; the next one gives the rows once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from tests.support import traces
from tests.support.celery_worker import wait_for
from webapp.analysis.models import Run, RunState, Window
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.queue import enqueue
from webapp.telemetry.services import digest_of, store_batch

pytestmark = [pytest.mark.chaos, pytest.mark.spark, pytest.mark.django_db(transaction=True)]

WORKERS, SECONDS = 16, 400
RECORDS_PER_S = 8_000


@contextmanager
def spark_worker(home: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Celery worker of the Spark queue on this test's database and broker, in a process group of its own."""
    known = connection.settings_dict
    address = (
        f"postgresql://{known['USER']}:{known['PASSWORD']}@{known['HOST']}:{known['PORT']}/{known['NAME']}"
    )
    environment = os.environ | {
        "DATABASE_URL": address,
        "REDIS_URL": settings.REDIS_URL,
        "WEIR_HOME": str(home),
    }
    command = [sys.executable, "-m", "celery", "-A", "workers.celery", "worker", "-Q", "spark", "-P", "solo"]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def tick() -> None:
    enqueue("workers.tasks.analyse.closed_windows", queue="spark")


def test_kill_9_in_the_middle_of_a_run_then_the_rerun_gives_the_rows_once(tmp_path: Path) -> None:
    job = ensure_job("killed")
    records = traces.trace(
        seed=3, workers=WORKERS, seconds=SECONDS, per_second=RECORDS_PER_S, start_ns=10**18
    )
    for number, batch in enumerate(traces.batches(records, WORKERS, size=50_000)):
        store_batch(job, batch, digest_of(str(number)))
    Job.objects.update(last_received_at=timezone.now() - timedelta(minutes=1))
    job.refresh_from_db()
    log = tmp_path / "worker.log"
    log.touch()

    with spark_worker(tmp_path, log) as first:
        tick()
        wait_for("the middle of a run", lambda: Run.objects.filter(windows_done__gt=0).exists(), log)
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    run = Run.objects.get()
    assert run.state == RunState.RUNNING, "killed too late to prove anything: the run was over"
    assert run.windows_done < run.windows_total
    assert Window.objects.count() == 0

    with spark_worker(tmp_path, log):
        tick()
        wait_for("the second run", lambda: Run.objects.filter(state=RunState.DONE).exists(), log)
    assert job.first_ns is not None
    assert job.last_ns is not None
    bounds = job.first_ns, job.last_ns
    expected, _ = analyse(
        records,
        *default_lifetimes(records, WORKERS),
        covering_windows(bounds, job.window_ns),
        bounds_ns=bounds,
        horizon_ns=job.gap_horizon_ns,
    )
    rows = list(Window.objects.order_by("start_ns").values_list("start_ns", "cp_total", "worker_cp"))
    wanted = [(s.index * job.window_ns, s.cp_total, s.worker_cp.tolist()) for s in expected]
    assert rows == wanted
    assert Run.objects.filter(state=RunState.FAILED, error="the worker was restarted").count() == 1
