"""Jobs with stored rates, for pages about scaling: a recorded Flink run, and an hour that doubled its load."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace

from analytics.model.topology import JobPoll
from tests.support import dataflows
from tests.support.flink import polls
from webapp.jobs import reports
from webapp.jobs.models import Engine, Job
from webapp.jobs.reports import Measured
from webapp.jobs.services import ensure_job
from webapp.telemetry import flink
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.sources import add_source

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS
RUN = "two_stage_ds2_series_before"
SOURCE_NAME = "Source: events"


def recorded(name: str = "bottleneck", run: str = RUN, age_s: int = 5) -> Job:
    """A job of which a recorded Flink run was polled, as if the last poll had been ``age_s`` seconds ago."""
    found = polls(run)
    cluster = Source.objects.filter(kind=SourceKind.FLINK).first() or add_source(
        SourceKind.FLINK, "http://127.0.0.1:9"
    )
    source = add_source(SourceKind.FLINK_JOB, f"{cluster.location}/jobs/{name}", cluster)
    source.job, source.identity = ensure_job(name, Engine.FLINK), name
    source.save(update_fields=["job", "identity"])
    by_ns = time.time_ns() - age_s * SECOND_NS - found[-1].at_ns
    for poll in found:
        flink.save_poll(source, _moved(poll, by_ns), ())
    source.job.refresh_from_db()
    return source.job


def _moved(poll: JobPoll, by_ns: int) -> JobPoll:
    counters = tuple(replace(item, at_ns=item.at_ns + by_ns) for item in poll.counters)
    return replace(poll, at_ns=poll.at_ns + by_ns, counters=counters)


def doubled(name: str = "doubled", minutes: int = 60, until_ns: int | None = None) -> Job:
    """A job that met its target for half the minutes, then got more than twice as much to do.

    An instance of ``split`` and of ``count`` does 25 records a second, and there are two of each.
    """
    job = ensure_job(name, Engine.FLINK)
    end_ns = time.time_ns() - 5 * SECOND_NS if until_ns is None else until_ns
    start_ns = end_ns - minutes * MINUTE_NS
    keep(job, (minute(start_ns + k * MINUTE_NS, 40.0 if k < minutes / 2 else 90.0) for k in range(minutes)))
    return job


def keep(job: Job, measured: Iterable[Measured]) -> None:
    for item in measured:
        reports.keep_rates(job, item)


def minute(start_ns: int, rate: float, *, split: int = 2, count: int = 2) -> Measured:
    """A minute of a source that should deliver ``rate``, of which the rest goes to its backlog."""
    done = min(rate, 25.0 * split, 25.0 * count)
    held = 1 - done / rate
    seen = dataflows.observation(
        dataflows.chain(events=1, split=split, count=count),
        dataflows.rates("events", 0.0, rate, observed=(0.0, done), backpressured=held, busy=1 - held),
        dataflows.rates("split", 25.0, 25.0, instances=split, observed=(done / split, done / split)),
        dataflows.rates("count", 25.0, 0.0, instances=count, observed=(done / count, 0.0)),
    )
    source = replace(seen.window.operators[0], lag_first=0.0, lag_last=(rate - done) * 60)
    window = replace(
        seen.window,
        start_ns=start_ns,
        end_ns=start_ns + MINUTE_NS,
        operators=(source, *seen.window.operators[1:]),
    )
    return Measured(seen.topology, window)


def held(start_ns: int) -> Measured:
    """A minute of a source that was held back and tells no backlog: nobody knows what it should deliver."""
    known = minute(start_ns, 90.0)
    source = replace(known.window.operators[0], lag_first=None, lag_last=None)
    window = replace(known.window, operators=(source, *known.window.operators[1:]))
    return Measured(known.topology, window)
