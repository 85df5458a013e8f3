"""Recommendations: which jobs have rates that no policy has looked at, and keeping what the policies said.

`workers.tasks.recommend` computes them. Pages read them through `webapp.analysis.advice`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from analytics.scaling.advice import JobAdvice

FRESH_NS = 5 * 60 * 1_000_000_000
"""Rates older than this say nothing about what a job needs now."""


@dataclass(frozen=True)
class Kept:
    """What became of advice: ids of recommendations that say something new, how many current ones were confirmed,
    and how many came too late: the setup was changed, or another worker was faster.
    """

    fresh: tuple[int, ...]
    confirmed: int
    late: int


def due(now_ns: int) -> list[tuple[int, int]]:
    """``(job id, end of the window)`` of the newest rates of every job whose policy has not seen them yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT job_id, newest.at_ns
            FROM (SELECT job_id, max(at_ns) AS at_ns FROM jobs_rates WHERE at_ns > %s GROUP BY job_id) AS newest
            JOIN jobs_job AS job ON job.id = job_id AND NOT job.finished
            LEFT JOIN analysis_scalingsetup AS setup USING (job_id)
            WHERE coalesce(setup.enabled, true) AND newest.at_ns > coalesce(setup.seen_ns, 0)
            ORDER BY job_id
            """,
            [now_ns - FRESH_NS],
        )
        return list(cursor.fetchall())


@transaction.atomic
def keep(found: Sequence[JobAdvice]) -> Kept:
    """Store advice about many jobs, in one transaction.

    Advice that says what the current recommendation says confirms it and brings newer evidence; other advice
    supersedes it. What was made with a setup that has changed since is dropped.
    """
    with connection.cursor() as cursor:
        _copy(cursor, found)
        cursor.execute(_REMEMBER)
        on_time = [job_id for (job_id,) in cursor.fetchall()]
        names: dict[str, Any] = {"now": timezone.now(), "jobs": on_time}
        cursor.execute(_CONFIRM, names)
        names["same"] = [job_id for (job_id,) in cursor.fetchall()]
        cursor.execute(_SUPERSEDE, names)
        cursor.execute(_INSERT, names)
        fresh = tuple(pk for (pk,) in cursor.fetchall())
        cursor.execute("DROP TABLE advised")
    return Kept(fresh, len(names["same"]), len(found) - len(on_time))


_TYPES = {"int": "int8", "str": "text", "str | None": "text", "bytes": "bytea"}
_COLUMNS = {item.name: _TYPES[str(item.type)] for item in fields(JobAdvice)}

_REMEMBER = """
    INSERT INTO analysis_scalingsetup AS setup
        (job_id, policy, settings, targets_per_s, enabled, memory, seen_ns, error, revision)
    SELECT job_id, policy, '{}', '{}', true, memory, at_ns, error, revision + 1
    FROM advised JOIN jobs_job ON jobs_job.id = job_id
    ON CONFLICT (job_id) DO UPDATE
    SET memory = CASE WHEN excluded.error = '' THEN excluded.memory ELSE setup.memory END,
        seen_ns = excluded.seen_ns, error = excluded.error, revision = excluded.revision
    WHERE setup.revision + 1 = excluded.revision
    RETURNING job_id
"""
"""What the policy remembers; a window that could not be read changes nothing of that. A job without a setup gets
the one it was advised with: the defaults."""

_CONFIRM = """
    UPDATE analysis_recommendation AS current
    SET window_start_ns = start_ns, window_end_ns = at_ns, confirmed_at = %(now)s, why = advised.why,
        payload = advised.payload
    FROM advised
    WHERE current.job_id = advised.job_id AND superseded_at IS NULL
        AND advised.job_id = ANY(%(jobs)s) AND error = ''
        AND (current.policy, current.version, current.move, current.changes, current.undecided)
            = (advised.policy, advised.version, advised.move, advised.changes::jsonb, advised.undecided::jsonb)
    RETURNING current.job_id
"""

_SUPERSEDE = """
    UPDATE analysis_recommendation AS current SET superseded_at = %(now)s FROM advised
    WHERE current.job_id = advised.job_id AND superseded_at IS NULL
        AND advised.job_id = ANY(%(jobs)s) AND advised.job_id <> ALL(%(same)s) AND error = ''
"""

_INSERT = """
    INSERT INTO analysis_recommendation
        (job_id, policy, version, window_start_ns, window_end_ns, made_at, confirmed_at,
         move, changes, undecided, why, payload)
    SELECT job_id, policy, version, start_ns, at_ns, %(now)s, %(now)s,
           move, changes::jsonb, undecided::jsonb, why, payload
    FROM advised
    WHERE job_id = ANY(%(jobs)s) AND job_id <> ALL(%(same)s) AND error = ''
    ORDER BY job_id
    RETURNING id
"""


def _copy(cursor: CursorWrapper, found: Sequence[JobAdvice]) -> None:
    """The advice as a table of this transaction, to be joined with."""
    columns = ", ".join(f"{name} {kind}" for name, kind in _COLUMNS.items())
    cursor.execute(f"CREATE TEMPORARY TABLE advised ({columns}) ON COMMIT DROP")
    with cursor.copy(f"COPY advised ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(list(_COLUMNS.values()))
        for row in found:
            copy.write_row(astuple(row))
    cursor.execute("ANALYZE advised")
