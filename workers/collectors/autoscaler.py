"""Reading the Flink autoscaler's tables in PostgreSQL. Nothing is ever written there: the session is read-only.

The password is not part of the address, which everybody sees: libpq takes it from the workers' password file
(``PGPASSFILE``, else ``~/.pgpass``), which names it for one server only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

from analytics.decode.autoscaler_store import READ_STATES, Event

MOST_ROWS = 1_000
MOST_CHARS = 4_000_000
"""Of one state: a job of a thousand vertices has some hundred thousand."""

CONNECT_S, STATEMENT_MS = 5, 10_000

_STATES = """
    SELECT job_key, state_type, state_value FROM t_flink_autoscaler_state_store
    WHERE state_type = ANY(%s) AND length(state_value) <= %s ORDER BY update_time DESC LIMIT %s
"""
# The columns have no time zone; the autoscaler writes them in that of its JVM, which is UTC in a container.
_EVENTS = """
    SELECT job_key, id, (extract(epoch FROM create_time) * 1000000)::bigint * 1000,
           (extract(epoch FROM update_time) * 1000000)::bigint * 1000, reason, left(message, 2000), event_count
    FROM t_flink_autoscaler_event_handler ORDER BY update_time DESC, id DESC LIMIT %s
"""


class AutoscalerError(Exception):
    """The tables cannot be read; the message is one line for people."""


@dataclass
class Kept:
    """What the tables have about one job."""

    states: list[tuple[str, str]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)


def read_tables(address: str) -> Mapping[str, Kept]:
    """The newest rows by job key.

    Raises
    ------
    AutoscalerError
        If the server cannot be reached or refuses, the tables are not there, or it takes too long.
    """
    found: dict[str, Kept] = defaultdict(Kept)
    options = f"-c default_transaction_read_only=on -c statement_timeout={STATEMENT_MS}"
    try:
        with psycopg.connect(
            address, connect_timeout=CONNECT_S, options=options, application_name="weir"
        ) as connection:
            for key, kind, value in connection.execute(_STATES, (list(READ_STATES), MOST_CHARS, MOST_ROWS)):
                found[key].states.append((kind, value))
            for key, *row in connection.execute(_EVENTS, (MOST_ROWS,)):
                found[key].events.append(Event(*row))
    except psycopg.Error as error:
        raise AutoscalerError(_why(error)) from error
    return found


def _why(error: psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return f"the autoscaler's tables are not there, or have other columns: {_line(error)}"
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return f"the autoscaler's tables may not be read: {_line(error)}"
    return f"cannot be read: {_line(error)}"


def _line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join(lines[0].split())[:300]
