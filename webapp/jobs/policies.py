"""Who may see which jobs, and what else they may do with them (ADR 10)."""

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from webapp.accounts.models import User
from webapp.jobs.models import Job, Membership, Role

Actor = User | AnonymousUser


def visible_jobs(actor: Actor) -> QuerySet[Job]:
    """The jobs this person may see: those of their groups and those of none; all of them for a superuser.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    if not actor.is_authenticated or not actor.is_active:
        raise PermissionDenied("sign in to see jobs")
    if actor.is_superuser:
        return Job.objects.all()
    groups = Membership.objects.filter(user_id=actor.pk).values("group_id")
    return Job.objects.filter(Q(group=None) | Q(group_id__in=groups))


def role_on(actor: Actor, job: Job) -> Role | None:
    """The person's role on a job; None: the job is not theirs to see. A superuser is an admin everywhere."""
    if not actor.is_authenticated or not actor.is_active:
        return None
    if actor.is_superuser:
        return Role.ADMIN
    if job.group_id is None:
        return Role.VIEWER
    found = Membership.objects.filter(user_id=actor.pk, group_id=job.group_id).first()
    return Role(found.role) if found else None


def may(actor: Actor, job: Job, least: Role) -> bool:
    """Whether the person has at least this role on the job."""
    role = role_on(actor, job)
    return role is not None and role.rank >= least.rank


def jobs_with_role(actor: Actor, least: Role) -> QuerySet[Job]:
    """The jobs on which the person has at least this role."""
    jobs = visible_jobs(actor)
    if actor.is_superuser or least is Role.VIEWER:
        return jobs
    assert actor.pk is not None  # who is not signed in was refused above
    roles = [role.value for role in Role if role.rank >= least.rank]
    groups = Membership.objects.filter(user_id=actor.pk, role__in=roles).values("group_id")
    return jobs.filter(group_id__in=groups)
