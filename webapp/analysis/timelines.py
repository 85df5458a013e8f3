"""Timelines of single windows: asked for by a page, computed by a worker, kept while the result stands."""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from webapp.analysis.models import Timeline, TimelineState, Window
from webapp.jobs.models import Job
from webapp.queue import enqueue

TASK = "workers.tasks.timeline.compute"


def timeline(job: Job, start_ns: int) -> Timeline | None:
    """The timeline of the window that starts there; asked for now if it is missing or outdated.

    None if the window has no result. A queued one comes back with state ``queued``: ask again shortly.
    """
    window = Window.objects.filter(job=job, start_ns=start_ns).first()
    if window is None:
        return None
    with transaction.atomic():
        row, created = Timeline.objects.select_for_update().get_or_create(
            job=job, start_ns=start_ns, defaults={"run_id": window.run_id}
        )
        stale = row.run_id != window.run_id
        lost = row.state == TimelineState.QUEUED and (timezone.now() - row.requested_at).total_seconds() > 30
        if created or stale or lost:
            row.run_id, row.state, row.error = window.run_id, TimelineState.QUEUED, ""
            row.save()
            transaction.on_commit(lambda: enqueue(TASK, row.pk, queue="interactive"))
    return row


def store(timeline_id: int, run_id: int, payload: bytes) -> None:
    """Keep a computed timeline, unless the window was analysed again meanwhile."""
    Timeline.objects.filter(pk=timeline_id, run_id=run_id).update(state=TimelineState.READY, payload=payload)


def fail(timeline_id: int, run_id: int, error: str) -> None:
    """Keep why a timeline could not be computed, unless the window was analysed again meanwhile."""
    Timeline.objects.filter(pk=timeline_id, run_id=run_id).update(
        state=TimelineState.FAILED, error=error[:2000]
    )


def retry(job: Job, start_ns: int) -> None:
    """Compute a timeline again that failed."""
    failed = Timeline.objects.filter(job=job, start_ns=start_ns, state=TimelineState.FAILED)
    for pk in failed.values_list("pk", flat=True):
        failed.update(state=TimelineState.QUEUED, requested_at=timezone.now(), error="")
        enqueue(TASK, pk, queue="interactive")
