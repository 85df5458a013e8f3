"""Critical participation of all closed windows of all jobs."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from django.db import connection

from analytics.spark.jobs import critical_participation
from analytics.spark.jobs.critical_participation import ALGORITHM_VERSION, Task
from webapp.analysis import services
from webapp.analysis.models import Run
from webapp.analysis.services import JobWork
from workers import spark

logger = logging.getLogger(__name__)

HEARTBEAT_S = 10


@shared_task
def closed_windows() -> None:
    """Analyse what waits, until nothing is left that can be analysed now."""
    while claimed := services.claim_work(ALGORITHM_VERSION, spark.WORKER):
        analyse(*claimed)


def analyse(run: Run, work: list[JobWork]) -> None:
    """One run: Spark computes, one transaction writes. A failure gives the ranges back."""
    try:
        with _heartbeat(run):
            tasks = list(tasks_of(work))
            results = critical_participation.run(spark.session(), spark.segments(), tasks, run.pk)
        services.finish_run(run, work, results)
    except services.RunLostError:
        logger.warning("analyse.lost run=%d", run.pk)
    except Exception as error:
        services.fail_run(run, f"{type(error).__name__}: {error}")
        raise


def tasks_of(work: list[JobWork]) -> Iterator[Task]:
    """The claimed windows in the terms of the Spark job."""
    for part in work:
        for start, stop in part.index_ranges:
            yield Task(
                part.job_id,
                part.window_ns,
                part.gap_horizon_ns,
                (part.first_ns, part.last_ns),
                start,
                stop - start,
            )


@contextmanager
def _heartbeat(run: Run) -> Iterator[None]:
    """Keep the run's lease while Spark works, however long its cluster takes to begin."""
    over = threading.Event()

    def keep() -> None:
        while not over.wait(HEARTBEAT_S):
            services.keep_alive(run)
        connection.close()  # this thread's own

    thread = threading.Thread(target=keep, name=f"run-{run.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
