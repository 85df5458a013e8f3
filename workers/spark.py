"""The one warm Spark session of a Spark worker process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from functools import cache

from django.conf import settings
from django.db import connection

from analytics.spark.rates import PostgresRates
from analytics.spark.session import SparkSession, create_session, warm_up
from analytics.spark.sources import PostgresSegments
from webapp.analysis.services import release_runs_of
from webapp.ops.health import beat
from webapp.telemetry import segment_store

logger = logging.getLogger(__name__)

WORKER = f"spark@{socket.gethostname()} {settings.WEIR_HOME}"
PULSE_S = 5


@cache
def session() -> SparkSession:
    """The session, created on first use."""
    return create_session(settings.WEIR_HOME)


def start() -> None:
    """Free what a killed predecessor left, warm up, and say from then on that Spark is ready."""
    released = release_runs_of(WORKER)
    connection.close()
    began = time.monotonic()
    warm_up(session())
    logger.info("spark.ready seconds=%.1f released_runs=%d", time.monotonic() - began, released)
    threading.Thread(target=_pulse, name="spark-pulse", daemon=True).start()


def _pulse() -> None:
    """Runs beside the tasks, so that a long run does not look like a dead worker.

    A session cannot come back to life: when it is gone the process ends, and whoever runs it starts a new one.
    """
    while True:
        try:
            alive = bool(session().version)
        except Exception:  # whatever way it broke, the answer is the same
            logger.exception("spark.lost")
            alive = False
        if not alive:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        beat("spark")
        time.sleep(PULSE_S)


def segments() -> PostgresSegments:
    """Where Spark's Python workers read segments."""
    return PostgresSegments(segment_store.address())


def rates() -> PostgresRates:
    """Where Spark's Python workers read jobs' rates."""
    return PostgresRates(segment_store.address())
