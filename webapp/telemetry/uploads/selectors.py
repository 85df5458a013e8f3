"""What pages and the API ask about uploads."""

from __future__ import annotations

from dataclasses import dataclass

from analytics.decode.formats import UPLOADED
from webapp.analysis.models import PendingRange, Window
from webapp.jobs.models import Job
from webapp.jobs.policies import Actor, visible_jobs
from webapp.telemetry.uploads.models import Upload, UploadState
from webapp.telemetry.uploads.policies import own_uploads, visible_uploads

RECENT = 50


@dataclass(frozen=True, slots=True)
class Result:
    """Where the results of a stored upload are: its time in whole windows (ns), and how far their analysis is."""

    job: Job
    from_ns: int
    to_ns: int
    windows_done: int
    is_analysed: bool


def formats() -> list[tuple[str, str]]:
    """Name and label of every format a file may have."""
    return [(item.name, item.label) for item in UPLOADED.values()]


def upload(actor: Actor, upload_id: int) -> Upload | None:
    """The upload, or None if there is none that this person may see."""
    return visible_uploads(actor).select_related("job", "owner").filter(pk=upload_id).first()


def recent(actor: Actor, *, everybody: bool = False) -> list[Upload]:
    """The newest uploads: one's own, or of everybody whose uploads one may see."""
    rows = visible_uploads(actor) if everybody else own_uploads(actor)
    return list(rows.select_related("job", "owner").order_by("-created_at", "-pk")[:RECENT])


def known_job(actor: Actor, name: str) -> bool:
    """Whether a job of this name exists that this person may see."""
    return visible_jobs(actor).filter(name=name).exists()


def result(stored: Upload) -> Result | None:
    """Where its results are; None before it is stored, or if nothing in it has a time."""
    job, preview = stored.job, stored.preview
    if stored.state != UploadState.STORED or job is None or not preview or preview["from_ns"] is None:
        return None
    from_ns = preview["from_ns"] // job.window_ns * job.window_ns
    to_ns = max(-(-preview["to_ns"] // job.window_ns) * job.window_ns, from_ns + job.window_ns)
    done = Window.objects.filter(job=job, start_ns__gte=from_ns, start_ns__lt=to_ns).count()
    waiting = PendingRange.objects.filter(job=job, from_ns__lt=to_ns, to_ns__gte=from_ns, attempts=0)
    return Result(job, from_ns, to_ns, done, done > 0 and not waiting.exists())
