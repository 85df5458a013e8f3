"""What polling a Flink cluster found, as sources, reports, rates, metrics and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from analytics.decode.flink_rest import JobSummary
from analytics.decode.flink_samples import (
    checkpoint_records,
    operator_names,
    rescale_annotations,
    topology_samples,
    window_samples,
)
from analytics.decode.flink_windows import instance_windows
from analytics.model.diagnostics import Diagnostic
from analytics.model.metrics import MetricSample
from analytics.model.topology import Checkpoints, InstanceWindow, JobPoll, Rescale, Topology
from analytics.model.trace import Records, TraceBatch
from analytics.scaling.rates import memory_use, rate_window
from webapp.jobs import reports
from webapp.jobs.models import Engine, Job
from webapp.jobs.services import ensure_job
from webapp.telemetry.backoff import answered
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.services import digest_of, store_batch
from webapp.telemetry.sources import add_source

SECOND_NS = 1_000_000_000
WINDOW_NS = 60 * SECOND_NS
"""How far back rates look: Flink refreshes its counters every 10 s."""

RATES_EVERY_NS = 30 * SECOND_NS
ENDED = ("FINISHED", "CANCELED", "FAILED")
MAX_NAME = 150


@transaction.atomic
def save_jobs(cluster: Source, jobs: Sequence[JobSummary]) -> None:
    """Follow every job of the cluster that has not ended; one that is followed already is left as it is."""
    followed = set(Source.objects.filter(parent=cluster).values_list("location", flat=True))
    for job in jobs:
        location = f"{cluster.location}/jobs/{job.id}"
        if job.state not in ENDED and location not in followed:
            source = add_source(SourceKind.FLINK_JOB, location, cluster)
            source.identity, source.job = job.id, ensure_job(_name(cluster, job), Engine.FLINK)
            source.save(update_fields=["identity", "job"])
            Job.objects.filter(pk=source.job.pk).update(engine_job_id=job.id, finished=False)
    answered(cluster)


def _name(cluster: Source, job: JobSummary) -> str:
    """The job's name: a redeployed job keeps its history; of two that run at once the second also has its id."""
    name = job.name[:MAX_NAME]
    running = Source.objects.filter(job__name=name, finished=False).exclude(parent=cluster, identity=job.id)
    return f"{name} ({job.id[:8]})" if running.exists() else name


@transaction.atomic
def save_poll(
    source: Source, poll: JobPoll, diagnostics: Sequence[Diagnostic],
    checkpoints: Checkpoints | None = None, rescales: Sequence[Rescale] = (),
) -> None:  # fmt: skip
    """Store an answer of a job, and what it did in the minute before."""
    job = source.job
    if job is None:
        raise ValueError(f"source {source.pk} belongs to no job")
    if poll.topology.state in ENDED:
        Job.objects.filter(pk=job.pk).update(finished=True)
        source.finished = True
    reports.keep_report(job, poll)
    before = reports.reports(job, poll.at_ns - WINDOW_NS, poll.at_ns)
    windows, odd = instance_windows(before)
    _keep_rates(job, before, windows)
    history, happened = checkpoint_records(checkpoints) if checkpoints else ([], [])
    batch = TraceBatch(
        Records.of([]),
        metrics=(*_samples(poll.topology, poll.at_ns, windows), *history),
        annotations=(*happened, *rescale_annotations(poll.topology, rescales)),
        diagnostics=(*diagnostics, *odd),
    )
    store_batch(job, batch, digest_of("flink", source.location, str(poll.at_ns)))
    answered(source)


def _keep_rates(job: Job, before: Sequence[JobPoll], windows: Sequence[InstanceWindow]) -> None:
    """Rates twice a minute, of all that is known, with what waited in the sources at both ends."""
    newest = reports.newest_rates(job)
    window = rate_window(before[-1].topology, windows)
    if window.end_ns == 0 or (newest and window.end_ns - newest.window.end_ns < RATES_EVERY_NS):
        return
    within = [poll for poll in before if window.start_ns <= poll.at_ns <= window.end_ns]
    lags = [dict(poll.lags) for poll in within] or [{}]
    operators = tuple(
        replace(item, lag_first=lags[0].get(item.operator_id), lag_last=lags[-1].get(item.operator_id))
        for item in window.operators
    )
    found = replace(window, operators=operators, memory=memory_use(within))
    reports.keep_rates(job, reports.Measured(before[-1].topology, found))


def _samples(topology: Topology, at_ns: int, windows: Sequence[InstanceWindow]) -> list[MetricSample]:
    samples = [*topology_samples(topology, at_ns), *window_samples(topology, windows)]
    names = operator_names(topology)
    for operator in topology.sources():
        sent = [window.per_s(window.records_out) for window in windows if window.operator_id == operator.id]
        known = [rate for rate in sent if rate is not None]
        if known and len(known) == operator.parallelism:
            labels = (("source", names[operator.id]),)
            samples.append(MetricSample("input_rows_per_s", labels, at_ns, sum(known)))
    return samples


def gone(source: Source) -> None:
    """The cluster does not know the job any more: it has ended, or the cluster was started anew."""
    source.finished = True
    answered(source)
    if source.job is not None:
        Job.objects.filter(pk=source.job.pk).update(finished=True)
