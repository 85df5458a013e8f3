"""What workers do with uploads: take one, say how far it is, clean up. A crash at any point is made good later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import TraceBatch
from webapp.jobs.models import SECOND_NS, Engine, Job
from webapp.telemetry.models import Source
from webapp.telemetry.services import digest_of, store_batch
from webapp.telemetry.uploads import files
from webapp.telemetry.uploads.models import UNDER_WAY, Upload, UploadState
from webapp.telemetry.uploads.services import MAX_JOB_NAME, PREVIEW, STORE, name_of_file

FILE_KEPT_FOR = timedelta(days=1)
ROW_KEPT_FOR = timedelta(days=90)
LEFT_AFTER = timedelta(seconds=60)
"""An upload under way that did not move for so long has no worker any more, or a slow one, which keeps it."""

MOST_ATTEMPTS = 3
"""A file on which a worker dies so often is not read again."""


@contextmanager
def taken(upload_id: int, *states: UploadState) -> Iterator[Upload | None]:
    """The upload, for this worker alone, if it is in one of the states; None otherwise.

    The lock is the database session's: it ends with the worker, however that ends.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtext('upload'), %s::int)", [upload_id])
        (locked,) = cursor.fetchone()
    if not locked:
        yield None
        return
    try:
        row = Upload.objects.filter(pk=upload_id, state__in=states).first()
        yield row if row is not None and _may_try(row) else None
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(hashtext('upload'), %s::int)", [upload_id])


def _may_try(row: Upload) -> bool:
    if row.attempts >= MOST_ATTEMPTS:
        failed(row, f"a worker stopped {row.attempts} times while it worked on this file")
        return False
    row.attempts += 1
    if row.state == UploadState.RECEIVED:
        row.state = UploadState.READING
    row.save(force_update=True)
    return True


def understood(row: Upload, found: dict[str, Any], diagnostics: Sequence[Diagnostic], job_name: str) -> None:
    """The file makes sense: this is what is in it."""
    row.preview, row.diagnostics = found, [asdict(item) for item in diagnostics]
    row.job_name = row.job_name or job_name[:MAX_JOB_NAME] or name_of_file(row.name)
    _move(row, UploadState.UNDERSTOOD)


def refused(row: Upload, why: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
    """The file cannot be used, and whose fault that is is not ours."""
    row.diagnostics = [asdict(item) for item in diagnostics]
    _move(row, UploadState.REFUSED, why)


def failed(row: Upload, why: str) -> None:
    """Something went wrong here."""
    _move(row, UploadState.FAILED, why)


def _move(row: Upload, state: UploadState, error: str = "") -> None:
    row.state, row.error, row.attempts = state, error.replace("\0", "?")[:1000], 0
    row.save(force_update=True)


@transaction.atomic
def job_for(row: Upload) -> Job:
    """The job that the upload is stored as, made now if there is none of that name."""
    engine = Engine.SPARK if row.format == "spark-event-log" else Engine.OTHER
    width_ns = (row.preview or {}).get("window_ns") or SECOND_NS
    job, created = Job.objects.get_or_create(
        name=row.job_name, defaults={"engine": engine, "window_ns": width_ns}
    )
    row.job, row.created_job = job, row.created_job or created
    row.stored_count = row.repeated_count = 0
    row.save(force_update=True)
    return job


def store_piece(row: Upload, job: Job, number: int, piece: TraceBatch) -> None:
    """Store one piece of the file, unless the job has it, and count it."""
    digest = digest_of("upload", bytes(row.digest), row.format, str(number))
    stored = store_batch(job, piece, digest)
    row.stored_count += stored.record_count
    row.repeated_count += stored.record_count if stored.duplicate else 0
    row.save(force_update=True, update_fields=["stored_count", "repeated_count", "changed_at"])


@transaction.atomic
def finish(row: Upload, job: Job) -> None:
    """Everything is stored: the file is not needed any more, and nothing more comes for a job made by it."""
    if row.created_job and not Source.objects.filter(job=job).exists():
        Job.objects.filter(pk=job.pk).update(finished=True)
    _move(row, UploadState.STORED)
    path = files.path_of(row.pk, row.name)
    transaction.on_commit(lambda: path.unlink(missing_ok=True))


def left_behind() -> list[tuple[str, int]]:
    """Tasks to run again: of uploads that should be under way and have not moved for a while."""
    rows = Upload.objects.filter(state__in=UNDER_WAY, changed_at__lt=timezone.now() - LEFT_AFTER)
    found = rows.order_by("pk").values_list("pk", "state")
    return [(STORE if state == UploadState.STORING else PREVIEW, pk) for pk, state in found]


def clean_up() -> None:
    """Remove files nobody stored within a day, what was left of broken transfers, and rows of long ago."""
    now = timezone.now()
    old = now - FILE_KEPT_FOR
    for row in _kept_files().filter(changed_at__lt=old).exclude(state=UploadState.STORING):
        files.path_of(row.pk, row.name).unlink(missing_ok=True)
        _move(row, UploadState.EXPIRED, row.error)
    Upload.objects.filter(created_at__lt=now - ROW_KEPT_FOR).exclude(state__in=UNDER_WAY).delete()
    needed = {files.path_of(row.pk, row.name).name for row in _kept_files()}
    for path in files.folder().iterdir():
        if path.name not in needed and path.stat().st_mtime < old.timestamp():
            path.unlink(missing_ok=True)


def _kept_files() -> QuerySet[Upload]:
    return Upload.objects.exclude(state__in=(UploadState.STORED, UploadState.EXPIRED))
