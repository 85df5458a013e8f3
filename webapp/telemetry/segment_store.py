"""The one seam between segments and where their bytes lie: PostgreSQL today."""

from typing import Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from analytics.model import segments
from analytics.model.trace import Records
from webapp.jobs.models import Job
from webapp.telemetry.models import Batch, Segment


def address() -> str:
    """How a process outside Django (a Spark task) reaches the database that segments lie in."""
    known = connection.settings_dict
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    options: dict[str, Any] = dict(known["OPTIONS"])
    return make_conninfo(**options, **{names[key]: known[key] for key in names if known[key]})


def records_of(segment_id: int) -> Records | None:
    """What a segment holds; None if it is there no more: retention."""
    payload = Segment.objects.filter(pk=segment_id).values_list("payload", flat=True).first()
    return None if payload is None else segments.decode(payload)


def put(job: Job, batch: Batch, records: Records) -> None:
    """Store the records of a batch (at least one); their workers and operators have job-wide numbers."""
    from_ns = int(min(records.start_ns.min(), records.end_ns.min()))
    to_ns = int(max(records.start_ns.max(), records.end_ns.max()))
    payload = segments.encode(records)
    # Django's own cursor would write the bytes into the statement as text, twice as long.
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(
            "INSERT INTO telemetry_segment "
            "(job_id, batch_id, min_ns, max_ns, record_count, schema_version, payload) "
            "VALUES (%s, %s, %s, %s, %s, %s, %b)",
            (job.pk, batch.pk, from_ns, to_ns, len(records), segments.SCHEMA_VERSION, payload),
        )
