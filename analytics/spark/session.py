"""The Spark session analyses run in."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from analytics.critical_path.kernels import load_kernels
from analytics.spark.java import java_home

__all__ = ["SparkSession", "create_session", "warm_up"]


def create_session(state_dir: Path, name: str = "weir") -> SparkSession:
    """A session as the environment asks for it.

    ``SPARK_REMOTE`` (Spark Connect) wins over ``SPARK_MASTER`` (a cluster); with neither, Spark runs inside
    this process on all cores.

    Raises
    ------
    analytics.spark.java.NoJavaError
        If a local driver is needed and there is no usable Java.
    """
    remote = os.environ.get("SPARK_REMOTE")
    if remote:
        return SparkSession.builder.remote(remote).appName(name).getOrCreate()
    os.environ["JAVA_HOME"] = str(java_home(state_dir))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers on this machine find the analytics package where this process found it.
    root = str(Path(__file__).resolve().parents[2])
    os.environ["PYTHONPATH"] = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    if "SPARK_MASTER" not in os.environ:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(os.environ.get("SPARK_MASTER", "local[*]"))
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .config("spark.sql.adaptive.enabled", "false")  # nothing here shuffles
        .config("spark.local.dir", str(state_dir / "spark-local"))
        .config("spark.sql.warehouse.dir", str(state_dir / "spark-warehouse"))
    )
    if "SPARK_MASTER" not in os.environ:
        builder = builder.config("spark.driver.host", "127.0.0.1").config(
            "spark.driver.bindAddress", "127.0.0.1"
        )
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    return session


def warm_up(session: SparkSession) -> None:
    """Start the Python workers and load the compiled kernel in each, so that the first real job is a warm one."""
    load_kernels()  # here first, so that the workers find the kernels compiled
    cores = int(session.conf.get("spark.default.parallelism", "") or os.cpu_count() or 2)
    session.range(0, cores, 1, cores).mapInArrow(_load_kernels, "value long").toArrow()


def _load_kernels(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    load_kernels()
    gc.freeze()  # what is loaded by now stays: a collector that looks at it again and again costs a tenth of a job
    for batch in batches:
        yield pa.record_batch([batch.column(0)], names=["value"])
