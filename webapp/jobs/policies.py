"""Who may see which jobs."""

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.jobs.models import Job

Actor = User | AnonymousUser


def visible_jobs(actor: Actor) -> QuerySet[Job]:
    """The jobs this person may see: all of them once signed in.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    if not actor.is_authenticated or not actor.is_active:
        raise PermissionDenied("sign in to see jobs")
    return Job.objects.all()
