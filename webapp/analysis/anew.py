"""Analysing all of a job anew."""

from __future__ import annotations

from django.db import connection, transaction

from webapp.analysis.models import PendingRange, Run, RunState, Window
from webapp.analysis.services import fail_run, mark_pending
from webapp.jobs.models import Job


@transaction.atomic
def analyse_anew(job: Job) -> None:
    """Forget a job's results and have all its windows analysed again: their width has changed.

    Runs under way are given up, since they compute with the old width. The caller holds the job's row lock.
    """
    with connection.cursor() as cursor:
        # A claim that has read the job's old width must not commit after this.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('analysis.claim_work'))")
    for run in Run.objects.filter(state=RunState.RUNNING, ranges__job=job).distinct():
        fail_run(run, f"the windows of {job.name} got another width")
    Window.objects.filter(job=job).delete()
    PendingRange.objects.filter(job=job).delete()
    if job.first_ns is not None and job.last_ns is not None:
        mark_pending(job, job.first_ns, job.last_ns)
