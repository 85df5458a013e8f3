"""What reading a Flink autoscaler's tables found, as annotations and metrics of the jobs it looks after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from django.db import transaction

from analytics.decode.autoscaler_store import Event, decode_autoscaler
from analytics.decode.flink_samples import operator_names
from webapp.jobs import reports
from webapp.jobs.models import Engine, Job
from webapp.jobs.services import ensure_job
from webapp.telemetry import metric_store
from webapp.telemetry.intake import in_time
from webapp.telemetry.models import Source, SourceKind
from webapp.telemetry.services import digest_of, store_batch, store_metrics
from webapp.telemetry.sources import add_source

MAX_NAME = 150


@transaction.atomic
def save_job(
    source: Source, job_key: str, states: Sequence[tuple[str, str]], events: Sequence[Event]
) -> None:
    """Store what the tables say about a job; what they said before already changes nothing."""
    job = _job(source, job_key)
    newest = reports.newest_report(job)
    names = operator_names(newest.topology) if newest else {}
    batch = decode_autoscaler(states, events, names)
    # Rows are updated in place, so the tables are told apart by what they say.
    digest = digest_of("autoscaler", source.location, job_key, repr((states, events, sorted(names.items()))))
    if batch.metrics:
        store_metrics(job, in_time(metric_store.from_values(batch.metrics)), digest_of("metrics", digest))
    store_batch(job, replace(batch, metrics=()), digest)


def _job(source: Source, job_key: str) -> Job:
    """The job that Weir follows under this id of Flink's; otherwise one named after the key."""
    location = f"{source.location}#{job_key}"[:1000]
    child = add_source(SourceKind.AUTOSCALER_JOB, location, source)
    known = Job.objects.filter(engine_job_id=job_key).order_by("-pk").first()
    job = known or child.job or ensure_job(job_key[:MAX_NAME], Engine.FLINK, job_key)
    if child.job_id != job.pk:
        child.job, child.identity = job, job_key[:300]
        child.save(update_fields=["job", "identity"])
    return job
