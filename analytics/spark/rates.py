"""Where Spark's Python workers get jobs' stored rates and scaling setups from, without the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from analytics.scaling.advice import Setup
from analytics.spark.sources import connection_to

_QUERY = """
    SELECT job_id, at_ns, rates.payload,
           setup.policy, setup.settings::text, setup.targets_per_s::text, setup.memory, setup.revision
    FROM unnest(%s::bigint[], %s::bigint[]) AS wanted (job_id, at_ns)
    JOIN jobs_rates AS rates USING (job_id, at_ns)
    LEFT JOIN analysis_scalingsetup AS setup USING (job_id)
    WHERE rates.at_ns BETWEEN %s AND %s
"""
"""The range names the day partitions to look into, which the join alone does not."""


@dataclass(frozen=True, slots=True)
class StoredRates:
    """A job's packed rates of the window that ends at ``at_ns``, and its setup with its revision (0: none)."""

    job_id: int
    at_ns: int
    payload: bytes
    setup: Setup
    revision: int


class PostgresRates:
    """Rates in PostgreSQL. It is pickled into Spark tasks; each Python worker keeps one connection."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def read(self, wanted: Sequence[tuple[int, int]]) -> Iterator[StoredRates]:
        """The rates of ``(job id, at_ns)``, in any order, as they arrive; those that are gone are left out."""
        if not wanted:
            return
        jobs, times = zip(*wanted, strict=True)
        arguments = [list(jobs), list(times), min(times), max(times)]
        with connection_to(self.dsn).cursor(binary=True) as cursor:
            for job_id, at_ns, payload, policy, *setup, revision in cursor.stream(
                _QUERY, arguments, binary=True
            ):
                yield StoredRates(
                    job_id,
                    at_ns,
                    payload,
                    Setup() if policy is None else _setup(policy, *setup),
                    revision or 0,
                )


def _setup(policy: str, settings: str, targets_per_s: str, memory: str | None) -> Setup:
    return Setup(
        policy,
        orjson.loads(settings),
        orjson.loads(targets_per_s),
        None if memory is None else orjson.loads(memory),
    )
