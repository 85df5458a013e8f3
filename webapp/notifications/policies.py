"""Who may get digests about what."""

from __future__ import annotations

from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.policies import visible_jobs


def groups_of(actor: User) -> QuerySet[JobGroup]:
    """The job groups that a person may follow: their own; all for a superuser."""
    groups = JobGroup.objects.order_by("name")
    return groups if actor.is_superuser else groups.filter(memberships__user=actor)


def followed_jobs(actor: User, group: JobGroup | None) -> QuerySet[Job]:
    """The jobs a digest is about, as far as the person may see them now.

    Raises
    ------
    PermissionDenied
        If the account is disabled.
    """
    jobs = visible_jobs(actor)
    return jobs if group is None else jobs.filter(group=group)
