"""Who may read the audit record."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from webapp.audit.models import AuditEvent
from webapp.jobs.policies import Actor, visible_jobs


def visible_events(actor: Actor) -> QuerySet[AuditEvent]:
    """What concerns the jobs a person may see, and what the person did about no job; all of it for a superuser.

    Whoever tries something on a job that is not theirs is told that there is none: nor may the record of it tell.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    jobs = visible_jobs(actor)
    events = AuditEvent.objects.all()
    if actor.is_superuser:
        return events
    return events.filter(Q(job_id__in=jobs.values("pk")) | Q(actor_id=actor.pk, job_id=None))
