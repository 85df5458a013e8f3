"""When a window is closed: nothing more is expected in it."""

from datetime import datetime, timedelta

from webapp.jobs.models import Job

IDLE_AFTER = timedelta(seconds=5)
"""A job that sent nothing for so long has its last window closed as it is."""


def closed_until_ns(job: Job, now: datetime) -> int:
    """Time up to which the windows of a job with records are closed: by watermark, or by idleness."""
    assert job.last_ns is not None
    idle = job.finished or job.last_received_at is None or now - job.last_received_at > IDLE_AFTER
    if idle:
        return -(-job.last_ns // job.window_ns) * job.window_ns
    return (job.last_ns - job.lateness_ns) // job.window_ns * job.window_ns
