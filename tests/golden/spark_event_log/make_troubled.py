"""Makes the raw material of ``troubled``: one file, a cluster of two executors, and everything that goes wrong.

``python make_troubled.py DIR`` writes one event log into DIR; ``tidy.py`` then makes the golden file from it.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession


def attempt() -> tuple[int, int]:
    """This task's partition and attempt number."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.attemptNumber()


def fails_at_first(rows: Iterator[int]) -> Iterator[int]:
    """Partition 1 raises at its first attempt."""
    if attempt() == (1, 0):
        raise ValueError("the first attempt fails")
    return rows


def is_slow(rows: Iterator[int]) -> Iterator[int]:
    """Partition 3 hangs. (It is not speculated on: Spark wants another host for that.)"""
    time.sleep(8 if attempt() == (3, 0) else 0.3)
    return rows


def kills_its_executor(rows: Iterator[int]) -> Iterator[int]:
    """Partition 0 kills the executor's JVM (the parent of PySpark's daemon) at its first attempt."""
    if attempt() == (0, 0):
        daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()
        os.kill(int(daemon[1]), signal.SIGKILL)
        time.sleep(5)
    return rows


def main(directory: str) -> None:
    """Run one job for each kind of trouble."""
    builder = SparkSession.builder.master("local-cluster[2,2,512]").appName("troubled")
    for key, value in {
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": Path(directory).resolve().as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.includeTaskMetricsAccumulators": "false",
        "spark.speculation": "true",
        "spark.speculation.multiplier": "2",
        "spark.speculation.quantile": "0.5",
        "spark.task.maxDirectResultSize": "10k",
    }.items():
        builder = builder.config(key, value)
    context = builder.getOrCreate().sparkContext
    numbers = context.parallelize(range(1000), 4)
    numbers.map(lambda n: (n % 7, n)).reduceByKey(lambda a, b: a + b, 3).collect()
    numbers.map(lambda n: str(n) * 100).collect()  # results above 10 kB are fetched
    numbers.mapPartitions(fails_at_first).count()
    numbers.mapPartitions(is_slow).count()
    numbers.mapPartitions(kills_its_executor).count()
    context.stop()


if __name__ == "__main__":
    main(sys.argv[1])
