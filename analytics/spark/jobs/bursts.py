"""Burst headroom, index and maps of all clusters, as one Spark job without a shuffle.

The driver hands out which models at which times; a Python worker reads them and their jobs' rates itself and sends
back one row a cluster. Clusters are independent, so any cut gives the same rows. A large cluster, of which one
worker would compute for minutes, is cut too: its scenarios (the loss of each node) and its pairs of applications
are spread over partitions of their own, and the driver joins them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from itertools import groupby, islice

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.bursts.fleet import ClusterAnswer, answer, together
from analytics.spark.clusters import PostgresClusters, Wanted

CLUSTERS_A_PARTITION = 25
"""Some tens of milliseconds each: enough to hide what a Spark task costs, few enough to keep all cores busy."""

CLUSTERS_A_BATCH = 25
"""Rows held in a worker's memory at a time."""

LARGE = 400
"""Applications times nodes of a cluster that is cut; the paper's of 12 times 10 takes well under a second."""

MOST_PARTS = 16

_TYPES = {
    "int": pa.int64(),
    "str": pa.string(),
    "bytes": pa.binary(),
    "float": pa.float64(),
    "float | None": pa.float64(),
}
_SCHEMA = pa.schema([(item.name, _TYPES[str(item.type)]) for item in fields(ClusterAnswer)])


@dataclass(frozen=True)
class Unit:
    """What is computed of a cluster at once: the part of this ``number``, of so many ``parts``.

    All parts must be of the same rates, and others can be given or reported before the last of them begins. So the
    rates ``given`` by hand and those ``measured`` go along with parts.
    """

    wanted: Wanted
    number: int = 0
    parts: int = 1
    given: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, bytes] = field(default_factory=dict)


def run(session: SparkSession, clusters: PostgresClusters, wanted: Sequence[Wanted]) -> list[ClusterAnswer]:
    """Answers about these clusters, in order of id; one that is gone meanwhile is left out."""
    if not wanted:
        return []
    cut = _partitions(wanted, clusters)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = _answers(clusters, cut[number])
                while some := list(islice(rows, CLUSTERS_A_BATCH)):
                    columns = zip(*map(astuple, some), strict=True)
                    yield pa.record_batch([*map(pa.array, columns, _SCHEMA.types)], schema=_SCHEMA)

    found = session.range(0, len(cut), 1, len(cut)).mapInArrow(compute, from_arrow_schema(_SCHEMA)).toArrow()
    rows = sorted((ClusterAnswer(**row) for row in found.to_pylist()), key=lambda row: row.cluster_id)
    every = [list(parts) for _, parts in groupby(rows, key=lambda row: row.cluster_id)]
    complete = [parts for parts in every if len(parts) == parts[0].parts]
    return [parts[0] if len(parts) == 1 else together(parts) for parts in complete]


def _partitions(wanted: Sequence[Wanted], clusters: PostgresClusters) -> list[list[Unit]]:
    """Small clusters some a partition; each part of large ones in one of its own, first, as they take longest."""
    sizes = clusters.sizes(wanted)
    large = [one for one in wanted if one[0] in sizes and sizes[one[0]][0] > LARGE]
    measured = clusters.measured(large)
    found: list[list[Unit]] = []
    for one in large:
        size, given = sizes[one[0]]
        parts = min(-(-size // LARGE), MOST_PARTS)
        found += [[Unit(one, number, parts, given, measured.get(one[0], {}))] for number in range(parts)]
    cut = set(large)
    small = [Unit(one) for one in wanted if one not in cut]
    count = -(-len(small) // CLUSTERS_A_PARTITION)
    return found + [small[number::count] for number in range(count)]


def _answers(clusters: PostgresClusters, units: Sequence[Unit]) -> Iterator[ClusterAnswer]:
    which = {unit.wanted[0]: unit for unit in units}
    for stored in clusters.read([unit.wanted for unit in units]):
        unit = which[stored.cluster_id]
        if unit.parts > 1:
            stored = replace(stored, given=unit.given, measured=unit.measured)
        yield answer(stored, unit.number, unit.parts)
