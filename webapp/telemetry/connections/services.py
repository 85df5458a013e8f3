"""Adding, pausing and removing connections. Nothing is asked here: the workers do, and say how it went."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ValidationError
from django.db import OperationalError, connection, transaction
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from webapp.accounts.models import User
from webapp.audit.services import Entry, record
from webapp.jobs.models import Engine, Job
from webapp.jobs.policies import Actor, visible_jobs
from webapp.jobs.services import ensure_job
from webapp.telemetry.connections.policies import changer, visible_connections
from webapp.telemetry.connections.wanted import OVER_NETWORK, Wanted, checked
from webapp.telemetry.models import Source, SourceKind

WITHOUT_POSITION = (*OVER_NETWORK, SourceKind.FLINK_JOB, SourceKind.AUTOSCALER_JOB)
"""Kinds whose ``state`` holds nothing but failures."""


class BusyError(Exception):
    """The connection is being asked just now, and the answer takes long: try again."""


def add_connection(actor: Actor, wanted: Wanted) -> Source:
    """Connect a place; the workers ask it for the first time within seconds.

    One that was removed goes on where it was.

    Raises
    ------
    PermissionDenied
        Unless the actor is an administrator.
    ValidationError
        If something cannot be right, or the place is connected already.
    """
    person = changer(actor, "source.add")
    what = checked(wanted)
    _check_job(person, what.job_name)
    with transaction.atomic():
        _forget_removed_of_other_kind(what)
        source, made = Source.objects.select_for_update(of=("self",)).get_or_create(
            location=what.location, defaults={"kind": what.kind}
        )
        if not made and _is_live(source):
            raise ValidationError({"location": _connected_already(source)})
        source.parent, source.removed_at, source.paused = None, None, False
        if what.kind == SourceKind.OPENMETRICS:
            source.job, source.interval_s = ensure_job(what.job_name, Engine.OTHER), what.interval_s
        source.save(update_fields=["parent", "removed_at", "paused", "job", "interval_s"])
        _ask_now(source)
        _record(person, "source.add", source, kind=what.kind)
    return source


def _check_job(person: User, name: str) -> None:
    known = Job.objects.filter(name=name).first() if name else None
    if known is not None and not visible_jobs(person).filter(pk=known.pk).exists():
        raise ValidationError({"job": f"you may not give metrics to job {name}"})


def _is_live(source: Source) -> bool:
    parent_removed = source.parent is not None and source.parent.removed_at is not None
    return source.removed_at is None and not parent_removed


def _forget_removed_of_other_kind(what: Wanted) -> None:
    """Such a row has no position to keep: paths and addresses never look alike."""
    rows = Source.objects.filter(location=what.location, removed_at__isnull=False, kind__in=OVER_NETWORK)
    rows.exclude(kind=what.kind).delete()


def _connected_already(source: Source) -> str:
    if source.parent_id is not None:
        return "this is followed already, as a part of another connection"
    return f"this is connected already, as {source.get_kind_display()}{' (paused)' if source.paused else ''}"


def pause_connection(actor: Actor, source_id: int, paused: bool) -> Source:
    """Stop asking a place, or go on. What it gave stays; going on, it is asked at once.

    Raises
    ------
    PermissionDenied
        Unless the actor is an administrator.
    Source.DoesNotExist
        If they may see no such connection.
    BusyError
        If it stays locked by a poll.
    """
    action = "source.pause" if paused else "source.resume"
    person = changer(actor, action, source_id)
    with _changing(person, source_id) as source:
        if source.paused != paused:
            source.paused = paused
            source.save(update_fields=["paused"])
            _ask_now(source)
            _record(person, action, source)
    return source


def poll_now(actor: Actor, source_id: int) -> Source:
    """Have a place and what was found there asked at once, whatever it waits for.

    Raises
    ------
    PermissionDenied
        Unless the actor is an administrator.
    Source.DoesNotExist
        If they may see no such connection.
    ValidationError
        If it is paused.
    BusyError
        If it stays locked by a poll.
    """
    person = changer(actor, "source.poll", source_id)
    with _changing(person, source_id) as source:
        if source.paused:
            raise ValidationError({"paused": "it is paused: resume it first"})
        _ask_now(source)
        _record(person, "source.poll", source)
    return source


def remove_connection(actor: Actor, source_id: int) -> None:
    """Ask a place, and what was found there, no more. Its jobs and all they reported stay.

    Raises
    ------
    PermissionDenied
        Unless the actor is an administrator.
    Source.DoesNotExist
        If they may see no such connection.
    BusyError
        If it stays locked by a poll.
    """
    person = changer(actor, "source.remove", source_id)
    with _changing(person, source_id) as source:
        source.removed_at = timezone.now()
        source.save(update_fields=["removed_at"])
        _ask_now(source)
        _record(person, "source.remove", source, kind=source.kind)


@contextmanager
def _changing(person: User, source_id: int) -> Iterator[Source]:
    """The connection, locked, once no poll of it is under way."""
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '5s'")
            yield visible_connections(person).select_for_update(of=("self",)).get(pk=source_id)
    except OperationalError as error:
        if isinstance(error.__cause__, LockNotAvailable):
            raise BusyError("it is being asked just now: try again in some seconds") from error
        raise


def _ask_now(source: Source) -> None:
    """What failed before counts no more, here and in what was found here. A log keeps its position."""
    rows = Source.objects.filter(pk=source.pk) | Source.objects.filter(parent=source)
    rows.filter(kind__in=WITHOUT_POSITION).update(state=None)
    rows.filter(finished=False).update(polled_at=None, error="")
    source.refresh_from_db()


def _record(person: User, action: str, source: Source, **detail: Any) -> None:
    job = source.job
    record(
        Entry(
            person, action, "source", source.pk, job.pk if job else None, job.name if job else "",
            detail={"location": source.location, **detail},
        )
    )  # fmt: skip
