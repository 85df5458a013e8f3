"""Who may see and change connections: everybody who is signed in, and administrators."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet

from webapp.accounts.models import User
from webapp.audit.services import Entry, record_refused
from webapp.jobs.policies import Actor, visible_jobs
from webapp.telemetry.models import Source

ONLY_ADMINISTRATORS = "only administrators (staff) may change connections"


def may_change(actor: Actor) -> bool:
    """Whether this person may add, pause and remove connections."""
    return isinstance(actor, User) and actor.is_active and (actor.is_staff or actor.is_superuser)


def changer(actor: Actor, action: str, source_id: int | None = None) -> User:
    """The person, if they may change connections; a refusal is in the audit record.

    Raises
    ------
    PermissionDenied
        If they may not.
    """
    if isinstance(actor, User) and may_change(actor):
        return actor
    if isinstance(actor, User):
        record_refused(Entry(actor, action, "source", source_id, reason=ONLY_ADMINISTRATORS))
    raise PermissionDenied(ONLY_ADMINISTRATORS)


def visible_connections(actor: Actor) -> QuerySet[Source]:
    """The connections a person may see: all but those that feed only a job which is not theirs to see.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    jobs = visible_jobs(actor)
    return Source.objects.filter(Q(job=None) | Q(job__in=jobs), parent=None, removed_at=None)
