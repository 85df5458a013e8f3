"""What people do with uploads: hand in a file, have it read as another format, store it, discard it."""

from __future__ import annotations

from pathlib import PurePath

from django.db import transaction

from analytics.decode.formats import UPLOADED
from analytics.decode.guess import guess_format
from webapp.jobs.models import SECOND_NS, Job
from webapp.jobs.policies import Actor, visible_jobs
from webapp.queue import enqueue
from webapp.telemetry.uploads import files, preview
from webapp.telemetry.uploads.models import UNDER_WAY, Upload, UploadState
from webapp.telemetry.uploads.policies import own_uploads, uploader
from webapp.telemetry.uploads.problems import BusyError, NotNowError, UnknownFormatError, UploadError

MOST_KEPT = 20
"""Files of one person that are kept for storing."""

MAX_JOB_NAME = 150
PREVIEW, STORE = "workers.tasks.uploads.preview", "workers.tasks.uploads.store"

_COMPRESSED = (".gz", ".zst", ".zstd", ".inprogress")


@transaction.atomic
def create_upload(
    actor: Actor, received: files.Received, format_name: str = "", job_name: str = ""
) -> Upload:
    """Keep a received file and have it read for a preview.

    Parameters
    ----------
    format_name
        A key of ``UPLOADED``; "" to have it guessed.
    job_name
        What its job is to be called; "" takes what the file says, else the file's name.

    Raises
    ------
    UploadError
        If the format is unknown, the file is empty, or this person has too many.
    """
    person = uploader(actor)
    format_name = format_name or guess_format(received.name or "", received.head) or ""
    _check_format(format_name)
    if not received.size:
        raise UploadError("the file is empty")
    kept = Upload.objects.filter(owner=person).exclude(state__in=(UploadState.STORED, UploadState.EXPIRED))
    if kept.count() >= MOST_KEPT:
        raise BusyError(f"{MOST_KEPT} of your uploads wait already. Store or discard some first.")
    row = Upload.objects.create(
        owner=person, name=received.name or "trace", size_bytes=received.size, digest=received.digest,
        format=format_name, job_name=_job_name(job_name),
    )  # fmt: skip
    received.move(files.path_of(row.pk, row.name))
    transaction.on_commit(lambda: enqueue(PREVIEW, row.pk, queue="default"))
    return row


@transaction.atomic
def read_as(actor: Actor, upload_id: int, format_name: str) -> Upload:
    """Have the file read once more, as another format.

    Raises
    ------
    Upload.DoesNotExist, UploadError
        If this person has no such upload, the format is unknown, or the file is gone or in use.
    """
    row = own_uploads(actor).select_for_update().get(pk=upload_id)
    _check_format(format_name)
    if row.state in UNDER_WAY or not row.file_kept:
        raise NotNowError(f"the upload is {row.get_state_display()}: it cannot be read again now")
    row.format, row.state, row.attempts, row.error = format_name, UploadState.RECEIVED, 0, ""
    row.preview, row.diagnostics = None, []
    row.save()
    transaction.on_commit(lambda: enqueue(PREVIEW, row.pk, queue="default"))
    return row


@transaction.atomic
def store_upload(actor: Actor, upload_id: int, job_name: str = "") -> Upload:
    """Have what was understood stored as this job (the name it was uploaded with, if not given).

    One that is stored, or being stored, as this job already stays as it is.

    Raises
    ------
    Upload.DoesNotExist, UploadError
        If this person has no such upload, it was not understood, or it does not fit the job.
    """
    row = own_uploads(actor).select_for_update().get(pk=upload_id)
    name = _job_name(job_name) or row.job_name
    if not name:
        raise UploadError("give the job a name")
    if row.state in (UploadState.STORING, UploadState.STORED) and row.job_name == name:
        return row
    failed = row.state == UploadState.FAILED and row.preview is not None
    if row.state != UploadState.UNDERSTOOD and not failed:
        raise NotNowError(f"the upload is {row.get_state_display()}: it cannot be stored")
    job = Job.objects.filter(name=name).first()
    if job is not None and not visible_jobs(actor).filter(pk=job.pk).exists():
        raise UploadError(f"a job {name} exists that you may not see: choose another name")
    found = row.preview or {}
    if why := preview.why_not_storable(found, job.window_ns if job else found["window_ns"] or SECOND_NS):
        raise NotNowError(f"{row.name} cannot be stored as {name}: {why}")
    row.job_name, row.state, row.attempts, row.error = name, UploadState.STORING, 0, ""
    row.stored_count = row.repeated_count = 0
    row.save()
    transaction.on_commit(lambda: enqueue(STORE, row.pk, queue="default"))
    return row


@transaction.atomic
def discard_upload(actor: Actor, upload_id: int) -> None:
    """Forget an upload and its file; a job that was stored from it stays.

    Raises
    ------
    Upload.DoesNotExist, UploadError
        If this person has no such upload, or a worker has it.
    """
    row = own_uploads(actor).select_for_update().get(pk=upload_id)
    if row.state in (UploadState.READING, UploadState.STORING):
        raise NotNowError(f"the upload is {row.get_state_display()}: wait until that is done")
    path = files.path_of(row.pk, row.name)
    row.delete()
    transaction.on_commit(lambda: path.unlink(missing_ok=True))


def name_of_file(name: str) -> str:
    """What a job is called after a file: its name without what only tells its format."""
    stem = name
    while (path := PurePath(stem)).suffix.lower() in _COMPRESSED and path.stem:
        stem = path.stem
    if PurePath(stem).suffix:
        stem = PurePath(stem).stem
    return stem[:MAX_JOB_NAME].strip()


def guess(name: str, head: bytes) -> str:
    """The format a file of this name and these first bytes most likely has; "" if nobody can tell."""
    return guess_format(name, head) or ""


def _job_name(name: str) -> str:
    name = " ".join(name.split())
    if len(name) > MAX_JOB_NAME or not name.isprintable():
        raise UploadError(f"a job's name has at most {MAX_JOB_NAME} printable characters")
    return name


def _check_format(name: str) -> None:
    if name not in UPLOADED:
        known = ", ".join(UPLOADED)
        if name:
            raise UnknownFormatError(f"{name[:40]!r} is no format; expected one of {known}")
        raise UnknownFormatError(f"cannot tell what kind of file this is; say which it is: {known}")
