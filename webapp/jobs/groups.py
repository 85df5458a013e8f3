"""Putting jobs into groups and people into roles. Every change is in the audit record."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db import transaction

from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import Job, JobGroup, Membership, Role


def create_group(actor: User, name: str) -> JobGroup:
    """A new job group without members or jobs.

    Raises
    ------
    PermissionDenied
        Unless the actor is a superuser.
    ValidationError
        If the name is empty, too long or taken.
    """
    _check(actor, "group.create", None, actor.is_superuser)
    group = JobGroup(name=name.strip())
    with transaction.atomic():
        group.full_clean()
        group.save()
        record(Entry(actor, "group.create", "group", group.pk, detail={"name": group.name}))
    return group


def set_role(actor: User, group: JobGroup, person: User, role: Role | None) -> None:
    """Give a person a role in the group, or with None take it away.

    Raises
    ------
    PermissionDenied
        Unless the actor is an admin of the group or a superuser.
    """
    theirs = Membership.objects.filter(user=actor, group=group, role=Role.ADMIN).exists()
    _check(actor, "group.set_role", group, actor.is_active and (actor.is_superuser or theirs))
    with transaction.atomic():
        before = Membership.objects.select_for_update().filter(user=person, group=group).first()
        detail = {"person": person.get_username(), "before": before.role if before else None, "after": role}
        if role is None:
            Membership.objects.filter(user=person, group=group).delete()
        else:
            Membership.objects.update_or_create(user=person, group=group, defaults={"role": role})
        record(Entry(actor, "group.set_role", "group", group.pk, detail=detail))


def put_job(actor: User, job: Job, group: JobGroup | None) -> None:
    """Move a job into a group, or with None out of any: then everybody who signs in sees it.

    Raises
    ------
    PermissionDenied
        Unless the actor is a superuser.
    """
    _check(actor, "group.put_job", group, actor.is_superuser)
    with transaction.atomic():
        row = Job.objects.select_for_update(of=("self",)).select_related("group").get(pk=job.pk)
        detail = {"before": row.group.name if row.group else None, "after": group.name if group else None}
        Job.objects.filter(pk=job.pk).update(group=group)
        entry = Entry(actor, "group.put_job", "job", job.pk, job.pk, job.name, detail=detail)
        record(entry)


def _check(actor: User, action: str, group: JobGroup | None, allowed: bool) -> None:
    if not allowed:
        why = "only an admin of the group or a superuser may do this"
        record_refused(Entry(actor, action, "group", group.pk if group else None, reason=why))
        raise PermissionDenied(why)
