"""Searching and exporting the audit record."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from webapp.audit.models import AuditEvent, Outcome
from webapp.audit.policies import visible_events
from webapp.audit.services import Entry
from webapp.jobs.policies import Actor

COLUMNS = (
    "id", "at", "actor_id", "actor_name", "action", "outcome", "loud", "object_type", "object_id", "job_id",
    "job_name", "reason", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class Search:
    """What to look for; what is empty does not restrict. ``text`` is looked for in names, actions and reasons."""

    text: str = ""
    actor_name: str = ""
    action: str = ""
    outcome: str = ""
    job_id: int | None = None
    object_type: str = ""
    object_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    loud: bool = False


def search(actor: Actor, wanted: Search | None = None) -> QuerySet[AuditEvent]:
    """The events this person may read and looks for, newest first."""
    wanted = wanted or Search()
    exact = {
        "actor_name": wanted.actor_name, "action": wanted.action, "outcome": wanted.outcome,
        "job_id": wanted.job_id, "object_type": wanted.object_type, "object_id": wanted.object_id,
        "at__gte": wanted.since, "at__lt": wanted.until,
    }  # fmt: skip
    found = visible_events(actor).filter(**{k: v for k, v in exact.items() if v not in ("", None)})
    if wanted.loud:
        found = found.filter(loud=True)
    if wanted.text:
        fields = ("actor_name", "action", "job_name", "reason")
        some = Q()
        for name in fields:
            some |= Q(**{f"{name}__icontains": wanted.text})
        found = found.filter(some)
    return found.order_by("-id")


def refused_lately(entry: Entry, since: datetime) -> bool:
    """Whether the same was tried by the same and refused, whatever the reason was, at or after ``since``."""
    same = AuditEvent.objects.filter(
        job_id=entry.job_id,
        actor_name=str(entry.who),
        action=entry.action,
        outcome=Outcome.REFUSED,
        at__gte=since,
    )
    return same.filter(detail=entry.detail).exists()


def history_of(actor: Actor, object_type: str, object_id: int) -> QuerySet[AuditEvent]:
    """What happened to one thing, in its order."""
    return search(actor, Search(object_type=object_type, object_id=object_id)).order_by("id")


def export_csv(actor: Actor, wanted: Search | None = None) -> Iterator[str]:
    """The events this person may read and looks for as CSV, a line at a time, with a header."""
    return csv_lines(search(actor, wanted))


def csv_lines(events: QuerySet[AuditEvent]) -> Iterator[str]:
    """Events as CSV, a line at a time, with a header."""
    yield _line(COLUMNS)
    for event in events.iterator(chunk_size=1_000):
        yield _line([_cell(getattr(event, name)) for name in COLUMNS])


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    text = (
        json.dumps(value, sort_keys=True) if isinstance(value, dict) else "" if value is None else str(value)
    )
    # A spreadsheet runs what begins like this, and reasons are free text.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _line(cells: tuple[str, ...] | list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
