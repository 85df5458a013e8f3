"""Writing the audit record. There is no way to change it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from webapp.accounts.models import User
from webapp.audit.models import Outcome

_INSERT = """
    INSERT INTO audit_event (actor_id, actor_name, action, outcome, object_type, object_id, job_id, job_name,
                             reason, detail, loud)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


@dataclass(frozen=True)
class Entry:
    """What was done or tried. ``who`` is a person, or the name of a policy or worker.

    ``loud`` marks what everybody should look at: somebody went past the rules.
    """

    who: User | str
    action: str
    object_type: str
    object_id: int | None
    job_id: int | None = None
    job_name: str = ""
    reason: str = ""
    detail: dict[str, Any] = field(default_factory=dict)
    loud: bool = False


def record(entry: Entry) -> None:
    """Write what is being done, in the transaction that does it: one cannot happen without the other."""
    _insert(connection, entry, Outcome.DONE)


def record_refused(entry: Entry) -> None:
    """Write what was tried and refused, so that it stays even if the caller's transaction is rolled back.

    A refusal is an exception, and whoever opened a transaction around the attempt will roll it back: then the row
    needs a connection of its own.
    """
    if not connection.in_atomic_block:
        _insert(connection, entry, Outcome.REFUSED)
        return
    own = connection.copy()
    try:
        _insert(own, entry, Outcome.REFUSED)
    finally:
        own.close()


def _insert(into: BaseDatabaseWrapper, entry: Entry, outcome: Outcome) -> None:
    person = entry.who if isinstance(entry.who, User) else None
    name = person.get_username() if person else str(entry.who)
    row = (
        person.pk if person else None, name[:200], entry.action, outcome.value, entry.object_type, entry.object_id,
        entry.job_id, entry.job_name[:200], storable(entry.reason), _json(entry.detail), entry.loud,
    )  # fmt: skip
    with into.cursor() as cursor:
        cursor.execute(_INSERT, row)


def _json(detail: dict[str, Any]) -> str:
    """As JSON; what was refused may hold anything."""
    return storable(json.dumps(detail, ensure_ascii=False)).replace("\\u0000", "\ufffd")


def storable(text: str) -> str:
    """The text without what PostgreSQL keeps nowhere: null characters, and halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
