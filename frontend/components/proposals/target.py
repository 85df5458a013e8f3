"""The job that a request wants to change. Whoever may not see it is refused, and recorded, by the service."""

from __future__ import annotations

import re

from frontend.request import person
from webapp.jobs.models import Job
from webapp.jobs.policies import visible_jobs

NONE = "there is no such job"


def job_at(path: str) -> Job | None:
    """The job of an address, whoever asks: only for what a service checks."""
    found = re.match(r"^/jobs/(\d{1,18})", path)
    return Job.objects.filter(pk=int(found[1])).first() if found else None


def refusal(job: Job, error: Exception) -> str:
    """What a refused person reads: nothing about a job that is not theirs to see."""
    return str(error) if visible_jobs(person()).filter(pk=job.pk).exists() else NONE
