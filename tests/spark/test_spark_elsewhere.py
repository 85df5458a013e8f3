"""``SPARK_REMOTE`` and ``SPARK_MASTER`` replace the built-in Spark with no other change, and the same results."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from analytics.spark.java import java_home
from tests.support import traces
from tests.support.waiting import eventually
from webapp.jobs.models import Job
from webapp.jobs.services import ensure_job
from webapp.ops.embedded.watchdog import CHECKOUT
from webapp.telemetry import segment_store
from webapp.telemetry.services import digest_of, store_batch

pytestmark = [
    pytest.mark.spark, pytest.mark.cluster, pytest.mark.django_db(transaction=True), pytest.mark.timeout(600),
]  # fmt: skip

WORKERS = 6
RECORDS = traces.trace(seed=11, workers=WORKERS, seconds=8, per_second=200, start_ns=10**18)


@pytest.fixture
def job() -> Job:
    job = ensure_job("elsewhere")
    for number, batch in enumerate(traces.batches(RECORDS, WORKERS, size=300)):
        store_batch(job, batch, digest_of(str(number)))
    job.refresh_from_db()
    return job


def computed(job: Job, home: Path, **environment: str) -> dict[str, object]:
    arguments = [
        segment_store.address(),
        str(home),
        *map(str, (job.pk, job.window_ns, job.first_ns, job.last_ns)),
    ]
    answer = subprocess.run(
        [sys.executable, "-m", "tests.support.spark_elsewhere", *arguments],
        cwd=CHECKOUT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    found: dict[str, object] = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def expected(job: Job) -> list[list[object]]:
    assert job.first_ns is not None
    assert job.last_ns is not None
    bounds = job.first_ns, job.last_ns
    lives = default_lifetimes(RECORDS, WORKERS)
    windows = covering_windows(bounds, job.window_ns)
    found, _ = analyse(RECORDS, *lives, windows, bounds_ns=bounds, horizon_ns=job.gap_horizon_ns)
    return [[summary.index, summary.cp_total, summary.worker_cp.tolist()] for summary in found]


@contextmanager
def connect_server(home: Path) -> Iterator[str]:
    """A real Spark Connect server on loopback; gives its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
    }
    options = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    command = ["--master", "local[2]", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    environment = os.environ | {
        "JAVA_HOME": str(java_home(home)),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(CHECKOUT),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    with (home / "connect.log").open("wb") as log:
        server = subprocess.Popen(
            [str(submit), *command, *options, "spark-internal"],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=home,
        )
    try:
        eventually(lambda: _answers(server, port, home / "connect.log"), "a Spark Connect server", 120)
        yield f"sc://localhost:{port}"
    finally:
        server.terminate()
        server.wait(30)


def _answers(server: subprocess.Popen[bytes], port: int, log: Path) -> bool:
    assert server.poll() is None, log.read_text()[-3000:]
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_spark_connect_server_gives_the_same_results(job: Job, tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        found = computed(job, tmp_path, SPARK_REMOTE=address)
    assert found["session"] == "pyspark.sql.connect.session"
    assert found["windows"] == expected(job)


def test_a_cluster_with_executors_of_its_own_gives_the_same_results(job: Job, tmp_path: Path) -> None:
    found = computed(job, tmp_path, SPARK_MASTER="local-cluster[2,1,1024]", SPARK_LOCAL_IP="127.0.0.1")
    assert found["session"] == "pyspark.sql.session"
    assert found["windows"] == expected(job)
