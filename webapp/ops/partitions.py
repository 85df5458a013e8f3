"""Day partitions of the tables that grow, made when first needed; dropping one forgets a day at once."""

from collections.abc import Iterable

from django.db import connection
from psycopg import sql

DAY_NS = 86_400_000_000_000
MAX_DAYS_A_WRITE = 400
"""A write that spans more days is more likely a wrong unit than a long trace."""


class TooManyDaysError(ValueError):
    """The times of one write lie too far apart."""


def ensure_days(table: str, times_ns: Iterable[int]) -> None:
    """Make the partitions of ``table`` that these times fall into. Safe to call from many workers at once.

    Raises
    ------
    TooManyDaysError
        If the times span more than ``MAX_DAYS_A_WRITE`` different days.
    """
    days = sorted({time_ns // DAY_NS for time_ns in times_ns})
    if len(days) > MAX_DAYS_A_WRITE:
        raise TooManyDaysError(
            f"times spread over {len(days)} days; at most {MAX_DAYS_A_WRITE} in one delivery"
        )
    with connection.cursor() as cursor:
        wanted = {_name(table, day): day for day in days}
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relname = ANY(%s) AND relispartition", [list(wanted)]
        )
        for (existing,) in cursor.fetchall():
            del wanted[existing]
        if not wanted:
            return
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [f"partitions of {table}"])
        for name, day in wanted.items():
            cursor.execute(
                sql.SQL("CREATE TABLE IF NOT EXISTS {} PARTITION OF {} FOR VALUES FROM ({}) TO ({})").format(
                    sql.Identifier(name),
                    sql.Identifier(table),
                    sql.Literal(day * DAY_NS),
                    sql.Literal((day + 1) * DAY_NS),
                )
            )


def _name(table: str, day: int) -> str:
    return f"{table}_d{day}" if day >= 0 else f"{table}_dm{-day}"
