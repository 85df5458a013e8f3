"""Making, using and revoking tokens."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from webapp.accounts.models import Scope, Token, User
from webapp.audit.services import Entry, record, record_refused

PREFIX_CHARS = 12
USE_NOTED_EVERY = timedelta(minutes=1)
"""Finer than a person needs, and it saves a write with every request."""

MAX_TOKENS = 1_000
"""Live ones of one person: more are surely made by a program that went wrong."""


class InvalidTokenError(Exception):
    """The secret opens nothing; the message says why."""


def create_token(
    actor: User, name: str, scopes: Iterable[str], *, jobs: Sequence[str] = (),
    expires_at: datetime | None = None, within: Token | None = None,
) -> tuple[Token, str]:  # fmt: skip
    """A new token of ``actor`` and its secret, which nobody can read again.

    ``within`` is the token by which the actor asks, if any: it can give nothing it does not have.

    Raises
    ------
    ValidationError
        If a scope is unknown or missing, the name is empty, a job's name too long, or the expiry past.
    PermissionDenied
        If the new token could do more than ``within``, or the actor has too many.
    """
    wanted = sorted(set(scopes))
    _check_values(name, wanted, jobs, expires_at)
    try:
        if within is not None:
            _check_within(within, wanted, jobs, expires_at)
        if Token.objects.filter(_live(), owner=actor).count() >= MAX_TOKENS:
            raise PermissionDenied(f"you have {MAX_TOKENS} tokens already: revoke some first")
    except PermissionDenied as refused:
        detail = {"name": name, "scopes": wanted, "jobs": sorted(set(jobs))}
        record_refused(Entry(actor, "token.create", "token", None, reason=str(refused), detail=detail))
        raise
    secret = f"weir_{secrets.token_urlsafe(32)}"
    with transaction.atomic():
        token = Token.objects.create(
            owner=actor, name=name, prefix=secret[:PREFIX_CHARS], digest=_digest(secret), scopes=wanted,
            jobs=sorted(set(jobs)), expires_at=expires_at,
        )  # fmt: skip
        record(_entry(actor, "token.create", token))
    return token, secret


def revoke_token(actor: User, token_id: int) -> Token:
    """End a token of ``actor``, for good; revoking it again changes nothing.

    Raises
    ------
    Token.DoesNotExist
        If the actor has no such token.
    """
    with transaction.atomic():
        token = Token.objects.select_for_update().filter(pk=token_id, owner=actor).first()
        if token is not None and token.revoked_at is None:
            token.revoked_at = timezone.now()
            token.save(update_fields=["revoked_at"])
            record(_entry(actor, "token.revoke", token))
    if token is None:
        reason = "they have no such token"
        record_refused(Entry(actor, "token.revoke", "token", token_id, reason=reason))
        raise Token.DoesNotExist(reason)
    return token


def token_of(secret: str) -> Token:
    """The live token of this secret, with its owner; its use is noted.

    Raises
    ------
    InvalidTokenError
        If there is none, or it has expired or was revoked, or its owner's account is disabled.
    """
    token = Token.objects.select_related("owner").filter(digest=_digest(secret)).first()
    now = timezone.now()
    if token is None:
        raise InvalidTokenError("the token is unknown")
    if token.revoked_at is not None:
        raise InvalidTokenError("the token was revoked")
    if token.expires_at is not None and token.expires_at <= now:
        raise InvalidTokenError("the token has expired")
    if not token.owner.is_active:
        raise InvalidTokenError("the account of the token's owner is disabled")
    if token.last_used_at is None or token.last_used_at < now - USE_NOTED_EVERY:
        Token.objects.filter(pk=token.pk).update(last_used_at=now)
    return token


def _entry(actor: User, action: str, token: Token) -> Entry:
    detail = {"name": token.name, "prefix": token.prefix, "scopes": token.scopes, "jobs": token.jobs}
    return Entry(actor, action, "token", token.pk, detail=detail)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def _live() -> Q:
    return Q(revoked_at=None) & (Q(expires_at=None) | Q(expires_at__gt=timezone.now()))


def _check_values(name: str, scopes: Sequence[str], jobs: Sequence[str], expires_at: datetime | None) -> None:
    if not name or len(name) > 100 or "\0" in name:
        raise ValidationError({"name": "a name of 1 to 100 characters is needed"})
    if not scopes or not set(scopes) <= set(Scope.values):
        raise ValidationError({"scopes": f"expected at least one of {', '.join(Scope.values)}"})
    if any(not 0 < len(job) <= 200 or "\0" in job for job in jobs):
        raise ValidationError({"jobs": "a job's name has 1 to 200 characters"})
    if expires_at is not None and expires_at <= timezone.now():
        raise ValidationError({"expires_at": "that is in the past"})


def _check_within(
    within: Token, scopes: Sequence[str], jobs: Sequence[str], expires_at: datetime | None
) -> None:
    if not set(scopes) <= set(within.scopes):
        raise PermissionDenied(f"this token can give its own scopes only: {', '.join(within.scopes)}")
    if within.jobs and not (jobs and set(jobs) <= set(within.jobs)):
        raise PermissionDenied(f"this token can give its own jobs only: {', '.join(within.jobs)}")
    if within.expires_at is not None and (expires_at is None or expires_at > within.expires_at):
        raise PermissionDenied("a token made by this one cannot outlive it")
