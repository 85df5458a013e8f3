"""Polling Flink clusters: which jobs they run, and what each of them does."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import lru_cache

from celery import shared_task
from django.db import transaction

from webapp.telemetry import backoff, flink, sources
from webapp.telemetry.models import Source, SourceKind
from workers.collectors.flink import FlinkCluster, FlinkError

CLUSTER_EVERY = timedelta(seconds=10)
JOB_EVERY = timedelta(seconds=5)
TURNS = 4
"""With a look a second, and a second to spare: jobs that are found together are asked one after the other."""

HISTORY_EVERY = 6
"""Checkpoints and rescales are asked for with every sixth poll of a job."""


@shared_task
def poll_flink() -> None:
    """Poll every cluster and job that is due; each in a task of its own, so that a slow one holds up nobody."""
    for pk in sources.due(SourceKind.FLINK, not_since=CLUSTER_EVERY):
        poll_cluster.apply_async([pk], expires=5)
    for pk in sources.due_in_turns(SourceKind.FLINK_JOB, not_since=JOB_EVERY, turns=TURNS):
        poll_job.apply_async([pk], expires=5)


@shared_task
def poll_cluster(source_id: int) -> None:
    """Follow the jobs that a cluster runs."""
    with transaction.atomic():
        source = sources.claim(source_id)
        if source is None or not backoff.may_poll(source):
            return
        try:
            jobs, _ = _cluster(source.location).jobs()
        except FlinkError as error:
            backoff.failed(source, str(error))
            return
        flink.save_jobs(source, jobs)


@shared_task
def poll_job(source_id: int) -> None:
    """Store what a job says now."""
    with transaction.atomic():
        source = sources.claim(source_id)
        if source is None or source.finished or source.parent is None or not backoff.may_poll(source):
            return
        cluster, at_ns = _cluster(source.parent.location), time.time_ns()
        try:
            asked = cluster.poll(source.identity, at_ns)
            full = at_ns // int(JOB_EVERY.total_seconds() * 1e9) % HISTORY_EVERY == source.pk % HISTORY_EVERY
            checkpoints = cluster.checkpoints(source.identity) if full else None
            rescales = cluster.rescales(source.identity) if full else ()
        except FlinkError as error:
            _failed(source, error)
            return
        flink.save_poll(source, asked.poll, asked.diagnostics, checkpoints, rescales)


def _failed(source: Source, error: FlinkError) -> None:
    """A job that the cluster has forgotten has ended; otherwise try again later."""
    if error.status == 404:
        flink.gone(source)
    else:
        backoff.failed(source, str(error))


@lru_cache(maxsize=256)
def _cluster(address: str) -> FlinkCluster:
    """One per address and process: its connections are kept open."""
    return FlinkCluster(address)
