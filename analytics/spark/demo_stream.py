"""A real Structured Streaming job to look at: ``python -m analytics.spark.demo_stream --event-log-dir DIR``.

It counts ad events a campaign: parse, enrich, shuffle by campaign, score, count in windows. One campaign gets
most of the events, so the task that scores it is the straggler there is to find. It is kept small (two cores,
half a gigabyte) because it shares a machine with everything else.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everyone calls it
from pyspark.sql.streaming.query import StreamingQuery

from analytics.spark.java import NoJavaError, java_home

APPLICATION = "ad-events"
ROWS_PER_S = 300
HOT_CAMPAIGN_RATIO = 0.6
CAMPAIGNS = 24
SCORING_STEPS = 4_000
SHUFFLE_PARTITIONS = 3

KEPT_LOG_FILES = 8
KEPT_LOGS = 3
TIDY_EVERY_S = 10.0
POLL_S = 1.0

_SQL_UI_EVENTS = "org.apache.spark.sql.execution.ui"


def main() -> int:
    """Run until the time is over or a signal comes. Exit code 2: the job could not be started."""
    parser = argparse.ArgumentParser(prog="python -m analytics.spark.demo_stream", description=__doc__)
    parser.add_argument("--event-log-dir", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time; 0 (default): never")
    parser.add_argument("--compress", action="store_true", help="write the event log with zstd")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    try:
        run(options.event_log_dir.resolve(), options.seconds, options.compress)
    except (NoJavaError, OSError) as error:
        sys.stderr.write(f"demo stream: {error}\n")
        return 2
    return 0


def run(event_log_dir: Path, seconds: float = 0, compress: bool = False) -> None:
    """Run the job for so many seconds (0: until a signal), then leave only its event logs."""
    event_log_dir.mkdir(parents=True, exist_ok=True)
    _remove_old_logs(event_log_dir)
    os.environ["JAVA_HOME"] = str(java_home(event_log_dir.parent))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    deadline = time.monotonic() + seconds if seconds else None
    with tempfile.TemporaryDirectory(
        prefix="demo-stream-", dir=event_log_dir.parent, ignore_cleanup_errors=True
    ) as work_dir:
        session = create_session(event_log_dir, Path(work_dir), compress)
        query: StreamingQuery | None = None
        try:
            query = start(session, Path(work_dir) / "checkpoint")
            log = event_log_dir / f"eventlog_v2_{session.sparkContext.applicationId}"
            _wait(query, log, deadline)
        finally:
            # After Ctrl-C the JVM may have stopped before us; there is nothing left to stop then.
            with suppress(Py4JError, OSError):
                if query is not None:
                    query.stop()
                session.stop()


def create_session(event_log_dir: Path, work_dir: Path, compress: bool) -> SparkSession:
    """A small local session whose event log can be followed live.

    Spark flushes the log, compressed or not, at the start and end of stages, jobs and batches: half of the
    tasks can be read 75 ms after they finished, 95 % after 150 ms. Not compressed, so that who follows it can
    go on from an offset. The plans that Spark's own pages draw are left out; they were most of the log.
    """
    builder = SparkSession.builder.master("local[2]").appName(APPLICATION)
    for key, value in {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(work_dir / "local"),
        "spark.sql.warehouse.dir": str(work_dir / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS),
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log_dir.as_uri(),
        "spark.eventLog.compress": str(compress).lower(),
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.rolling.maxFileSize": "10m",  # the least Spark accepts
        "spark.eventLog.includeTaskMetricsAccumulators": "false",
        "spark.eventLog.excludedPatterns": rf"{_SQL_UI_EVENTS}.*",
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def start(session: SparkSession, checkpoint: Path) -> StreamingQuery:
    """Start counting ad events by campaign."""
    return (
        counts(events(session))
        .writeStream.format("noop")
        .queryName("campaigns")
        .outputMode("update")
        .trigger(processingTime="1 second")
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def events(session: SparkSession) -> DataFrame:
    """Ad events as JSON text, as they would come from a message queue."""
    rate = session.readStream.format("rate").option("rowsPerSecond", ROWS_PER_S).option("numPartitions", 2)
    draw = F.pmod(F.hash("value"), F.lit(1000))
    other = 1 + F.pmod(F.hash(F.col("value") + 1), F.lit(CAMPAIGNS - 1))
    campaign = F.when(draw < int(HOT_CAMPAIGN_RATIO * 1000), F.lit(0)).otherwise(other)
    return rate.load().select(
        F.to_json(
            F.struct(
                F.col("timestamp").alias("at"), F.col("value").alias("event"), campaign.alias("campaign")
            )
        ).alias("body")
    )


def counts(bodies: DataFrame) -> DataFrame:
    """Parse, enrich, bring each campaign to one task, score it there, count in windows."""
    event = F.from_json("body", "at TIMESTAMP, event BIGINT, campaign INT").alias("event")
    parsed = bodies.select(event).select("event.*").withWatermark("at", "5 seconds")
    enriched = parsed.withColumn("bid", F.pmod(F.xxhash64("event"), F.lit(500)) / 100)
    scoring = f"aggregate(sequence(1, {SCORING_STEPS}), 0L, (score, step) -> score + hash(event, step) % 97)"
    scored = enriched.repartition(SHUFFLE_PARTITIONS, "campaign").withColumn("score", F.expr(scoring))
    return scored.groupBy(F.window("at", "10 seconds"), "campaign").agg(
        F.count("*").alias("events"), F.sum("bid").alias("spent"), F.max("score").alias("best_score")
    )


def _wait(query: StreamingQuery, log: Path, deadline: float | None) -> None:
    """Return at the deadline; raises what the query raised if it fails.

    Sleeps here and not in the JVM, which would not hear a signal.
    """
    tidied = time.monotonic()
    while query.isActive:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            return
        if now - tidied >= TIDY_EVERY_S:
            _remove_old_files(log)
            tidied = now
        time.sleep(POLL_S if deadline is None else min(POLL_S, max(deadline - now, 0.01)))
    query.awaitTermination()


def _remove_old_files(log: Path) -> None:
    """Keep the newest files of our own log: a demo that runs for days must not fill the disk."""
    numbered = {
        int(match[1]): item
        for item in log.glob("events_*")
        if (match := re.match(r"events_(\d+)_", item.name))
    }
    for number in sorted(numbered)[:-KEPT_LOG_FILES]:
        numbered[number].unlink(missing_ok=True)


def _remove_old_logs(directory: Path) -> None:
    """Keep the logs of the last few runs."""
    logs = sorted(directory.glob("eventlog_v2_*"), key=lambda log: log.stat().st_mtime)
    for log in logs[: 1 - KEPT_LOGS]:
        shutil.rmtree(log, ignore_errors=True)


def _stop(number: int, _frame: object) -> None:
    raise SystemExit(0 if number == signal.SIGTERM else 130)


if __name__ == "__main__":
    sys.exit(main())
