"""The one seam between segments and where their bytes lie: PostgreSQL today."""

from typing import Any

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


def put(job: Job, batch: Batch, records: Records) -> Segment:
    """Store the records of a batch (at least one); their workers and operators have job-wide numbers."""
    return Segment.objects.create(
        job=job,
        batch=batch,
        min_ns=int(min(records.start_ns.min(), records.end_ns.min())),
        max_ns=int(max(records.start_ns.max(), records.end_ns.max())),
        record_count=len(records),
        schema_version=segments.SCHEMA_VERSION,
        payload=segments.encode(records),
    )
