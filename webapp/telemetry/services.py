"""Storing what jobs report: one transaction a batch, and a batch sent twice is stored once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from django.db import connection, transaction
from django.utils import timezone
from psycopg import sql

from analytics.decode.halves import match_halves, message_rows, to_carry, unmatched_diagnostics
from analytics.model.diagnostics import Diagnostic
from analytics.model.metrics import Annotation as AnnotationValue
from analytics.model.samples import MetricBatch
from analytics.model.trace import NONE, HalfMessage, Records, TraceBatch
from webapp.analysis.services import mark_for_settling, mark_pending
from webapp.jobs import reports
from webapp.jobs.models import Job
from webapp.jobs.services import number_names
from webapp.telemetry import metric_store, plausible, reach, segment_store
from webapp.telemetry.models import Annotation, Batch, OpenHalves

LONGEST_SILENCE_NS = 86_400_000_000_000
"""After so long a silence of the whole job, its windows get no result: there is nothing to tell about them."""

_BEGIN, _BEGIN_ALONE = (
    sql.SQL(
        "WITH held AS (SELECT id FROM jobs_job WHERE id = %s FOR {}), noted AS (INSERT INTO telemetry_batch "
        "(job_id, digest, received_at, record_count, metric_count, diagnostics) "
        "SELECT id, %s, %s, 0, %s, %s::jsonb FROM held ON CONFLICT (job_id, digest) DO NOTHING RETURNING id) "
        "SELECT noted.id FROM held LEFT JOIN noted ON true"
    )
    .format(sql.SQL(lock))
    .as_string(None)
    for lock in ("KEY SHARE", "NO KEY UPDATE")
)


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of a delivery. A duplicate stored nothing, since all of it is there already."""

    job_id: int
    duplicate: bool
    record_count: int
    metric_count: int
    diagnostics: tuple[Diagnostic, ...]


def digest_of(*parts: bytes | str) -> bytes:
    """The identity of a delivery: two deliveries with the same parts are one."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.digest()


@transaction.atomic
def store_batch(job: Job, batch: TraceBatch, digest: bytes) -> Stored:
    """Store one decoded delivery of a job and mark the windows it touches for analysis."""
    job = Job.objects.select_for_update(no_key=True).get(pk=job.pk)
    row, created = Batch.objects.get_or_create(
        job=job, digest=digest, defaults={"record_count": 0, "metric_count": len(batch.metrics)}
    )
    if not created:
        return _repeated(row)
    records, refused = plausible.split(batch.records, int(timezone.now().timestamp() * 1e9))
    batch = replace(batch, records=records, diagnostics=(*batch.diagnostics, *refused))
    records, halves = _numbered(job, batch)
    messages, diagnostics = _match(job, halves, _latest(records, halves))
    records = Records.concat([records, messages])
    if len(records):
        segment_store.put(job, row, records)
        _mark(job, records)
    job.last_received_at = timezone.now()
    job.save(update_fields=["first_ns", "last_ns", "last_received_at"])
    _, over = metric_store.put(job, metric_store.from_values(batch.metrics))
    _store_annotations(job, batch.annotations)
    reports.keep_all_rates(job, [reports.Measured(*told) for told in batch.rates])
    row.record_count = len(records)
    told = (*batch.diagnostics, *diagnostics, *over)
    row.diagnostics = [asdict(item) for item in told]
    row.save(update_fields=["record_count", "diagnostics"])
    return Stored(job.pk, False, row.record_count, row.metric_count, told)


@transaction.atomic(savepoint=False)
def store_metrics(job: Job, batch: MetricBatch, digest: bytes) -> Stored:
    """Store one decoded delivery that has nothing but metric samples.

    If it makes no series, others may store samples of the job at the same time.
    """
    pk = _begin(job, batch, digest, alone=not metric_store.all_known(job, batch))
    if pk is None:
        return _repeated(Batch.objects.get(job=job, digest=digest))
    count, over = metric_store.put(job, batch)
    told = (*batch.diagnostics, *over)
    if over:
        Batch.objects.filter(pk=pk).update(metric_count=count, diagnostics=[asdict(item) for item in told])
    with connection.cursor() as cursor:
        # Who holds the row is storing something too, and will say when. To wait for them could be in a circle.
        cursor.execute(
            "UPDATE jobs_job SET last_received_at = %s WHERE id = "
            "(SELECT id FROM jobs_job WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)",
            [timezone.now(), job.pk],
        )
    return Stored(job.pk, False, 0, count, told)


def _begin(job: Job, batch: MetricBatch, digest: bytes, *, alone: bool) -> int | None:
    """Lock the job, if need be against all other deliveries, and note this one; None if it came before.

    Raises
    ------
    Job.DoesNotExist
        If the job is gone.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _BEGIN_ALONE if alone else _BEGIN,
            [
                job.pk,
                digest,
                timezone.now(),
                len(batch),
                json.dumps([asdict(item) for item in batch.diagnostics]),
            ],
        )
        found: tuple[int | None] | None = cursor.fetchone()
    if found is None:
        raise Job.DoesNotExist(f"job {job.pk} is gone")
    return found[0]


def _repeated(row: Batch) -> Stored:
    """The answer of the first time."""
    told = tuple(Diagnostic(**item) for item in row.diagnostics)
    return Stored(row.job_id, True, row.record_count, row.metric_count, told)


def _numbered(job: Job, batch: TraceBatch) -> tuple[Records, list[HalfMessage]]:
    """The batch's records and halves with job-wide numbers."""
    records = batch.records
    times = [half.at_ns for half in batch.halves]
    if len(records):
        times.append(int(min(records.start_ns.min(), records.end_ns.min())))
    numbering = number_names(job, batch.workers, batch.operators, min(times, default=None))
    # Position NONE (-1) picks the extra last element, which is NONE again.
    workers = np.append(numbering.workers, np.int32(NONE))
    operators = np.append(numbering.operators, np.int32(NONE))
    records = replace(
        records,
        worker=workers[records.worker],
        peer=workers[records.peer],
        operator=operators[records.operator],
    )
    halves = [
        replace(half, worker=int(workers[half.worker]), peer=int(workers[half.peer])) for half in batch.halves
    ]
    return records, halves


def _latest(records: Records, halves: Sequence[HalfMessage]) -> int | None:
    times = [half.at_ns for half in halves]
    if len(records):
        times.append(int(records.end_ns.max()))
    return max(times, default=None)


def _match(
    job: Job, fresh: Sequence[HalfMessage], latest_ns: int | None
) -> tuple[Records, tuple[Diagnostic, ...]]:
    """Messages that fresh halves complete, together with those still open from earlier batches."""
    if not fresh:
        return Records.of([]), ()
    store, _ = OpenHalves.objects.get_or_create(job=job)
    carried = [HalfMessage(**half) for half in store.halves]
    met = {HalfMessage(**half) for half in store.met}
    pairs, unmatched, diagnostics = match_halves([*carried, *fresh])
    horizon = max(latest_ns or 0, job.last_ns or 0) - job.gap_horizon_ns
    met |= {sent for sent, _ in pairs}
    keep = [
        half
        for half in to_carry(pairs, unmatched)
        # A send that names its receiver has all the ends it will ever have.
        if half.at_ns >= horizon and not (half in met and half.peer != NONE)
    ]
    store.halves = [asdict(half) for half in keep]
    store.met = [asdict(half) for half in keep if half in met]
    store.save(update_fields=["halves", "met"])
    lost = unmatched_diagnostics(half for half in unmatched if half.at_ns < horizon and half not in met)
    return Records.of(message_rows(pairs)), (*diagnostics, *lost)


def _mark(job: Job, records: Records) -> None:
    """Move the job's and its workers' last times on, and mark the windows these records can change."""
    rows = job.workers.values_list("number", "last_ns")
    last = {number: last_ns for number, last_ns in rows if last_ns is not None}
    touched = reach.of(records, last, job.gap_horizon_ns)
    with connection.cursor() as cursor:
        # bulk_update writes one CASE a row, which took longer than storing the records
        cursor.execute(
            "UPDATE jobs_worker SET last_ns = seen.at_ns FROM unnest(%s::int[], %s::bigint[]) "
            "AS seen(number, at_ns) WHERE job_id = %s AND jobs_worker.number = seen.number",
            [list(touched.last_ns), list(touched.last_ns.values()), job.pk],
        )
    first, final = touched.first_ns, touched.to_ns
    if job.last_ns is not None and job.last_ns < touched.from_ns:
        # What was the job's last window ended with its records; now it goes on, and so does the silence after it.
        mark_pending(job, job.last_ns, min(job.last_ns + LONGEST_SILENCE_NS, touched.from_ns))
    mark_pending(job, touched.from_ns, touched.to_ns)
    if touched.settle is not None:
        from_ns, to_ns = touched.settle
        mark_for_settling(job, from_ns, min(to_ns, max(final, job.last_ns or final)))
    job.first_ns = first if job.first_ns is None else min(job.first_ns, first)
    job.last_ns = final if job.last_ns is None else max(job.last_ns, final)


def _store_annotations(job: Job, annotations: Sequence[AnnotationValue]) -> None:
    latest = {(item.kind, item.key): item for item in annotations}
    Annotation.objects.bulk_create(
        [Annotation(job=job, **asdict(item)) for item in latest.values()],
        update_conflicts=True,
        unique_fields=["job", "kind", "key"],
        update_fields=["label", "start_ns", "end_ns"],
    )
