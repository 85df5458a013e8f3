"""Reading uploaded files, for a preview and for storing them: one at a time in a process, to save its memory."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Task, shared_task
from django.db import InterfaceError, OperationalError

from analytics.decode.limits import UnreadableFileError
from webapp.queue import enqueue
from webapp.telemetry.uploads import files, reading, work
from webapp.telemetry.uploads import preview as previews
from webapp.telemetry.uploads.models import Upload, UploadState

logger = logging.getLogger(__name__)

_alone = threading.Lock()
TRY_AGAIN_S = 1


@shared_task(bind=True)
def preview(task: Task, upload_id: int) -> None:
    """Read the file and say what was understood."""
    if not _alone.acquire(blocking=False):
        task.apply_async([upload_id], countdown=TRY_AGAIN_S)
        return
    try:
        with work.taken(upload_id, UploadState.RECEIVED, UploadState.READING) as row:
            if row is not None:
                with _told(row):
                    _preview(row)
    finally:
        _alone.release()


def _preview(row: Upload) -> None:
    path = files.path_of(row.pk, row.name)
    batch = reading.read(path, row.name, row.format, row.created_at)
    found = previews.of(batch)
    why = previews.why_not_storable(found, found["window_ns"] or 1)
    if why:
        work.refused(row, f"{row.name}: {why}", batch.diagnostics)
    else:
        work.understood(row, found, batch.diagnostics, reading.job_name_in(path, row.format))


@shared_task(bind=True)
def store(task: Task, upload_id: int) -> None:
    """Store the file piece by piece. Run again after a crash, it stores what is missing."""
    if not _alone.acquire(blocking=False):
        task.apply_async([upload_id], countdown=TRY_AGAIN_S)
        return
    try:
        with work.taken(upload_id, UploadState.STORING) as row:
            if row is not None:
                with _told(row):
                    _store(row)
    finally:
        _alone.release()


def _store(row: Upload) -> None:
    path = files.path_of(row.pk, row.name)
    batch = reading.read(path, row.name, row.format, row.created_at)
    job = work.job_for(row)
    for number, piece in enumerate(reading.pieces(batch)):
        work.store_piece(row, job, number, piece)
    work.finish(row, job)
    logger.info("upload.stored upload=%d job=%d records=%d", row.pk, job.pk, row.stored_count)


@contextmanager
def _told(row: Upload) -> Iterator[None]:
    """Whatever goes wrong, the person who uploaded the file reads it on the page."""
    try:
        yield
    except UnreadableFileError as error:
        work.refused(row, str(error))
    except (OperationalError, InterfaceError):
        raise  # the database is away: the upload stays as it is, and is taken up again
    except Exception as error:
        logger.exception("upload.failed upload=%d", row.pk)
        work.failed(row, f"{type(error).__name__}: {error}")


@shared_task
def tend() -> None:
    """Take up what a worker left behind, and clean up."""
    for task, upload_id in work.left_behind():
        enqueue(task, upload_id, queue="default")
    work.clean_up()
