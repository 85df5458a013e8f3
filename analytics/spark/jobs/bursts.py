"""Burst headroom, index and maps of all clusters, as one Spark job without a shuffle.

The driver hands out which models at which times; a Python worker reads them and their jobs' rates itself and sends
back one row a cluster. Clusters are independent, so any cut gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from itertools import islice

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.bursts.fleet import ClusterAnswer, answer
from analytics.spark.clusters import PostgresClusters, Wanted

CLUSTERS_A_PARTITION = 25
"""Some tens of milliseconds each: enough to hide what a Spark task costs, few enough to keep all cores busy."""

CLUSTERS_A_BATCH = 25
"""Rows held in a worker's memory at a time."""

_TYPES = {
    "int": pa.int64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "float": pa.float64(),
    "float | None": pa.float64(),
}
_SCHEMA = pa.schema([(item.name, _TYPES[str(item.type)]) for item in fields(ClusterAnswer)])


def run(session: SparkSession, clusters: PostgresClusters, wanted: Sequence[Wanted]) -> list[ClusterAnswer]:
    """Answers about these clusters, in order of id; one that is gone meanwhile is left out."""
    partitions = -(-len(wanted) // CLUSTERS_A_PARTITION)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = map(answer, clusters.read(wanted[number::partitions]))
                while some := list(islice(rows, CLUSTERS_A_BATCH)):
                    columns = zip(*map(astuple, some), strict=True)
                    yield pa.record_batch([*map(pa.array, columns, _SCHEMA.types)], schema=_SCHEMA)

    found = (
        session.range(0, partitions, 1, partitions).mapInArrow(compute, from_arrow_schema(_SCHEMA)).toArrow()
    )
    return sorted((ClusterAnswer(**row) for row in found.to_pylist()), key=lambda row: row.cluster_id)
