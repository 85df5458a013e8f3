"""Where Spark's Python workers get clusters' models and rates from, without the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import orjson

from analytics.bursts.fleet import StoredCluster
from analytics.spark.sources import connection_to

FRESH_NS = 5 * 60 * 1_000_000_000
"""A job's rates older than this, seen from the time that is answered for, say nothing about its input then."""

_CLUSTERS = """
    SELECT cluster.id, model.id, wanted.at_ns, model.payload, model.index_points IS NOT NULL, cluster.rates::text
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS wanted (cluster_id, model_id, at_ns)
    JOIN bursts_cluster AS cluster ON cluster.id = wanted.cluster_id
    JOIN bursts_modelversion AS model ON model.id = wanted.model_id
    ORDER BY cluster.id
"""
_SIZES = """
    SELECT cluster.id, cardinality(model.applications) * model.node_count, cluster.rates::text
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS wanted (cluster_id, model_id, at_ns)
    JOIN bursts_cluster AS cluster ON cluster.id = wanted.cluster_id
    JOIN bursts_modelversion AS model ON model.id = wanted.model_id
"""
_RATES = """
    SELECT cluster.id, job.name, newest.payload
    FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS wanted (cluster_id, model_id, at_ns)
    JOIN bursts_cluster AS cluster ON cluster.id = wanted.cluster_id
    JOIN bursts_modelversion AS model ON model.id = wanted.model_id
    JOIN jobs_job AS job ON job.name = ANY(model.applications)
        AND (job.group_id IS NULL OR job.group_id = cluster.group_id)
    CROSS JOIN LATERAL (
        SELECT payload FROM jobs_rates AS rates
        WHERE rates.job_id = job.id AND rates.at_ns <= wanted.at_ns AND rates.at_ns > wanted.at_ns - %s
        ORDER BY rates.at_ns DESC LIMIT 1
    ) AS newest
"""

Wanted = tuple[int, int, int]
"""Cluster id, model id, and the time (ns) to answer for."""


class PostgresClusters:
    """Clusters in PostgreSQL. It is pickled into Spark tasks; each Python worker keeps one connection."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def sizes(self, wanted: Sequence[Wanted]) -> dict[int, tuple[int, dict[str, float]]]:
        """By cluster, applications times nodes of its model and the rates given now; none if it is gone."""
        columns = [list(column) for column in zip(*wanted, strict=True)]
        rows = connection_to(self.dsn).execute(_SIZES, columns, binary=True)
        return {cluster_id: (size, orjson.loads(given)) for cluster_id, size, given in rows}

    def measured(self, wanted: Sequence[Wanted]) -> dict[int, dict[str, bytes]]:
        """By cluster, the packed newest rates of its jobs by name, as they are stored now."""
        if not wanted:
            return {}
        columns = [list(column) for column in zip(*wanted, strict=True)]
        found: dict[int, dict[str, bytes]] = {}
        rows = connection_to(self.dsn).execute(_RATES, [*columns, FRESH_NS], binary=True)
        for cluster_id, name, payload in rows:
            found.setdefault(cluster_id, {})[name] = payload
        return found

    def read(self, wanted: Sequence[Wanted]) -> Iterator[StoredCluster]:
        """These clusters in order of id; those that are gone are left out."""
        if not wanted:
            return
        columns = [list(column) for column in zip(*wanted, strict=True)]
        measured = self.measured(wanted)
        rows = connection_to(self.dsn).execute(_CLUSTERS, columns, binary=True)
        for cluster_id, model_id, at_ns, model, indexed, given in rows:
            jobs = measured.get(cluster_id, {})
            yield StoredCluster(cluster_id, model_id, at_ns, model, indexed, orjson.loads(given), jobs)
