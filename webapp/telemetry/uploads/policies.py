"""Who may do what with uploads."""

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from webapp.accounts.models import User
from webapp.jobs.policies import Actor
from webapp.telemetry.uploads.models import Upload


def uploader(actor: Actor) -> User:
    """The person, if they may upload: everybody who is signed in.

    Raises
    ------
    PermissionDenied
        If nobody is signed in, or the account is disabled.
    """
    if not isinstance(actor, User) or not actor.is_active:
        raise PermissionDenied("sign in to upload files")
    return actor


def visible_uploads(actor: Actor) -> QuerySet[Upload]:
    """One's own uploads; all of them for administrators."""
    person = uploader(actor)
    return Upload.objects.all() if person.is_superuser else Upload.objects.filter(owner=person)


def own_uploads(actor: Actor) -> QuerySet[Upload]:
    """Uploads that this person may store or discard: administrators see those of others, and leave them alone."""
    return Upload.objects.filter(owner=uploader(actor))
