"""Who asks: what the Django view put into the request before it handed it to Dash."""

from typing import cast

import flask
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied

from webapp.accounts.models import User
from webapp.jobs.policies import Actor

ACTOR = "weir.actor"
CSRF_TOKEN = "weir.csrf_token"  # noqa: S105  (the name of a key)


def actor() -> Actor:
    """The person behind the current callback; nobody outside a request."""
    if not flask.has_request_context():
        return AnonymousUser()
    return cast(Actor, flask.request.environ.get(ACTOR) or AnonymousUser())


def person() -> User:
    """The person behind the current callback.

    Raises
    ------
    PermissionDenied
        If nobody is signed in.
    """
    who = actor()
    if not isinstance(who, User):
        raise PermissionDenied("sign in first")
    return who


def csrf_token() -> str:
    """The token a form of the current page must send; "" outside a request."""
    return str(flask.request.environ.get(CSRF_TOKEN, "")) if flask.has_request_context() else ""
