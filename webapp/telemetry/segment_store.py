"""The one seam between segments and where their bytes lie: PostgreSQL today."""

from analytics.model import segments
from analytics.model.trace import Records
from webapp.jobs.models import Job
from webapp.telemetry.models import Batch, Segment


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
