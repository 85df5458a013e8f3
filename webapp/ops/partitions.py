"""Day partitions of the tables that grow, made when first needed; dropping one forgets a day at once."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import OperationalError, connection, transaction
from psycopg import sql
from psycopg.errors import LockNotAvailable

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
    check_days(len(days))
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
            made = datetime.now(UTC).date().isoformat()
            cursor.execute(
                sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(name), sql.Literal(made))
            )


def check_days(count: int) -> None:
    """Raise ``TooManyDaysError`` if the times of one write span so many days that they can hardly be right."""
    if count > MAX_DAYS_A_WRITE:
        raise TooManyDaysError(f"times spread over {count} days; at most {MAX_DAYS_A_WRITE} in one delivery")


def drop_older(table: str, days: int) -> list[str]:
    """Drop partitions whose day and whose making are both more than ``days`` days ago; returns their names.

    The day they were made counts too, since an old trace that somebody stores today is wanted today. A partition
    that somebody reads now is left for the next time.
    """
    today = datetime.now(UTC).date()
    last = (today - timedelta(days=days)).isoformat()
    last_day = int((datetime.now(UTC).timestamp() - days * 86_400) // 86_400)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT child.relname, obj_description(child.oid, 'pg_class') FROM pg_inherits "
            "JOIN pg_class parent ON parent.oid = inhparent JOIN pg_class child ON child.oid = inhrelid "
            "WHERE parent.relname = %s",
            [table],
        )
        found = [(name, made or "") for name, made in cursor.fetchall()]
    old = [name for name, made in found if _day(table, name) < last_day and made < last]
    return [name for name in sorted(old) if _drop(name)]


def _drop(name: str) -> bool:
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '2s'")
            cursor.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(name)))
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        return False
    return True


def _day(table: str, name: str) -> int:
    number = name.removeprefix(f"{table}_d")
    return -int(number[1:]) if number.startswith("m") else int(number)


def _name(table: str, day: int) -> str:
    return f"{table}_d{day}" if day >= 0 else f"{table}_dm{-day}"
