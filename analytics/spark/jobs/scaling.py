"""Scaling advice for all jobs, as one Spark job without a shuffle.

The driver hands out which rates of which job; a Python worker reads them and the jobs' setups itself, asks each
job's policy, and sends back one row a job. Jobs are independent, so any cut gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from itertools import islice

import orjson
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.model import packed
from analytics.scaling.advice import JobAdvice, NoAdviceError, advise, summary_of
from analytics.spark.rates import PostgresRates, StoredRates

JOBS_A_PARTITION = 1_250
"""A Spark task costs 0.15 s besides its work, as much as about 250 jobs."""

JOBS_A_BATCH = 250
"""Rows held in a worker's memory at a time."""

_TYPES = {"int": pa.int64(), "str": pa.string(), "str | None": pa.string(), "bytes": pa.binary()}
_SCHEMA = pa.schema([(item.name, _TYPES[str(item.type)]) for item in fields(JobAdvice)])


def run(session: SparkSession, rates: PostgresRates, wanted: Sequence[tuple[int, int]]) -> list[JobAdvice]:
    """Advice from the rates of these ``(job id, at_ns)``, in order of job.

    A job whose rates are gone meanwhile is left out; one that cannot be advised says why.
    """
    partitions = -(-len(wanted) // JOBS_A_PARTITION)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = (advise_stored(one) for one in rates.read(wanted[number::partitions]))
                while some := list(islice(rows, JOBS_A_BATCH)):
                    columns = zip(*map(astuple, some), strict=True)
                    yield pa.record_batch([*map(pa.array, columns, _SCHEMA.types)], schema=_SCHEMA)

    found = (
        session.range(0, partitions, 1, partitions).mapInArrow(compute, from_arrow_schema(_SCHEMA)).toArrow()
    )
    return sorted((JobAdvice(**row) for row in found.to_pylist()), key=lambda row: row.job_id)


def advise_stored(stored: StoredRates) -> JobAdvice:
    """Advice about one job as it is stored."""
    policy = stored.setup.policy
    try:
        advice = advise(stored.setup, packed.unpack(stored.payload))
    except (NoAdviceError, ValueError) as error:
        text = str(error).replace("\0", "\ufffd")
        return JobAdvice(stored.job_id, stored.revision, stored.at_ns, policy, error=text)
    summary = summary_of(advice.evidence, advice.action)
    return JobAdvice(
        job_id=stored.job_id,
        revision=stored.revision,
        at_ns=stored.at_ns,
        policy=policy,
        version=advice.evidence["version"],
        start_ns=advice.evidence["seen"]["window"]["start_ns"],
        move=summary.move,
        changes=orjson.dumps(summary.changes).decode(),
        undecided=orjson.dumps(summary.undecided).decode(),
        why=summary.why,
        payload=packed.pack({"evidence": advice.evidence, "action": advice.action}),
        memory=orjson.dumps(advice.memory).decode(),
    )
