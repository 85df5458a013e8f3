"""Where Spark's Python workers get segments from, without passing them through the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from analytics.model import segments
from analytics.model.trace import Records


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A stored segment without its bytes: id, time range (ns) and number of records."""

    id: int
    min_ns: int
    max_ns: int
    count: int


_connections: dict[str, psycopg.Connection] = {}


def connection_to(dsn: str) -> psycopg.Connection:
    """This process's one connection to a database, opened again if it was lost."""
    connection = _connections.get(dsn)
    if connection is None or connection.closed or connection.broken:
        connection = psycopg.connect(dsn, autocommit=True)
        _connections[dsn] = connection
    return connection


class PostgresSegments:
    """Segments in PostgreSQL. It is pickled into Spark tasks; each Python worker keeps one connection."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def index(self, job_id: int, from_ns: int, to_ns: int) -> list[SegmentRef]:
        """The job's segments that overlap ``[from_ns, to_ns]``, in order of id."""
        rows = self._connection().execute(
            "SELECT id, min_ns, max_ns, record_count FROM telemetry_segment WHERE job_id = %s "
            "AND int8range(min_ns, max_ns, '[]') && int8range(%s, %s, '[]') ORDER BY id",
            [job_id, from_ns, to_ns],
        )
        return [SegmentRef(*row) for row in rows]

    def read(self, ids: Sequence[int]) -> Records:
        """The records of these segments, in order of id.

        Raises
        ------
        LookupError
            If a segment is gone.
        """
        query = "SELECT payload FROM telemetry_segment WHERE id = ANY(%s) ORDER BY id"
        rows = self._connection().execute(query, [list(ids)], binary=True).fetchall()
        if len(rows) != len(set(ids)):
            raise LookupError(f"{len(set(ids)) - len(rows)} of {len(set(ids))} segments are gone")
        return Records.concat([segments.decode(payload) for (payload,) in rows])

    def lifetimes(self, job_id: int) -> list[tuple[int, int | None, int | None]]:
        """``(worker number, alive from, alive until)`` of workers that reported anything, in order of number."""
        query = (
            "SELECT number, alive_from_ns, alive_until_ns FROM jobs_worker WHERE job_id = %s "
            "AND coalesce(alive_from_ns, alive_until_ns, last_ns) IS NOT NULL ORDER BY number"
        )
        return self._connection().execute(query, [job_id]).fetchall()

    def report_progress(self, run_id: int, windows: int) -> None:
        """Add to a run's count of windows done and say that it is alive."""
        self._connection().execute(
            "UPDATE analysis_run SET windows_done = least(windows_total, windows_done + %s), heartbeat_at = now() "
            "WHERE id = %s",
            [windows, run_id],
        )

    def _connection(self) -> psycopg.Connection:
        return connection_to(self.dsn)
