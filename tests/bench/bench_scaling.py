"""Stored rates → persisted recommendations for a fleet through Spark, warm, on two cores."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tests.bench.setup import weir

JOBS = 10_000
OPERATORS = 10
INSTANCES = 4
"""Of every operator: 400,000 instances in all."""

FEW = 5
ROUNDS = 3


def measure(home: Path, jobs: int = JOBS) -> dict[str, float]:
    """Seconds from asking which jobs have new rates to the commit, with a warm session.

    ``first_s`` is when every recommendation is new, ``next_s`` the median when all are looked at again with
    newer rates; ``few_s`` is for a handful of jobs, ``idle_ms`` for none. ``cpu_s`` is of all processes
    but the database.
    """
    from analytics.spark.session import create_session, warm_up
    from webapp.analysis.models import Recommendation

    session = create_session(home)
    warm_up(session)
    now_ns = time.time_ns()
    _store(range(FEW), now_ns)
    for step in range(1, 4):
        few = _advise(session, now_ns)
        _store(range(FEW), now_ns + step)
    few = _advise(session, now_ns)
    _store(range(jobs), now_ns + 10)
    first = _advise(session, now_ns)
    assert first["jobs"] == jobs
    rounds = []
    for step in range(ROUNDS):
        _store(range(jobs), now_ns + 20 + step)
        rounds.append(_advise(session, now_ns))
    idle = _advise(session, now_ns)
    session.stop()
    assert Recommendation.objects.filter(superseded_at=None).count() == jobs
    rounds.sort(key=lambda took: took["seconds"])
    middle = rounds[len(rounds) // 2]
    return {
        "jobs": jobs,
        "first_s": first["seconds"],
        "next_s": middle["seconds"],
        "compute_s": middle["compute_s"],
        "write_s": middle["write_s"],
        "cpu_s": middle["cpu_s"],
        "few_s": few["seconds"],
        "idle_ms": idle["seconds"] * 1e3,
    }


def _advise(session: Any, now_ns: int) -> dict[str, float]:
    """What the task does."""
    from analytics.spark.jobs import scaling
    from webapp.analysis import recommendations
    from workers import spark

    cpu = _cpu_s()
    began = time.perf_counter()
    wanted = recommendations.due(now_ns)
    found = scaling.run(session, spark.rates(), wanted) if wanted else []
    computed = time.perf_counter()
    if found:
        kept = recommendations.keep(found)
        assert kept.late == 0
    over = time.perf_counter()
    assert not any(advice.error for advice in found)
    return {
        "jobs": len(found),
        "seconds": over - began,
        "compute_s": computed - began,
        "write_s": over - computed,
        "cpu_s": _cpu_s() - cpu,
    }


def _store(seeds: range, end_ns: int) -> None:
    """New rates of these jobs; their numbers stay as they are, so that most recommendations are confirmed."""
    from tests.support.fleet import measured
    from webapp.jobs.models import Job, Rates
    from webapp.jobs.reports import pack
    from webapp.ops.partitions import ensure_days

    found = {f"job-{seed}": measured(seed, end_ns, OPERATORS, INSTANCES) for seed in seeds}
    Job.objects.bulk_create([Job(name=name) for name in found], ignore_conflicts=True)
    ids = dict(Job.objects.values_list("name", "pk"))
    ensure_days(Rates._meta.db_table, [end_ns])
    rows = [Rates(job_id=ids[name], at_ns=end_ns, payload=pack(seen)) for name, seen in found.items()]
    Rates.objects.bulk_create(rows, batch_size=1_000)


def _cpu_s() -> float:
    """Seconds of a core that this process, its JVM and Python workers have used."""
    ticks, todo = 0, [os.getpid()]
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            after = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        children.setdefault(int(after[1]), []).append(int(entry.parent.name))
        spent[int(entry.parent.name)] = int(after[11]) + int(after[12])
    while todo:
        pid = todo.pop()
        ticks += spent.get(pid, 0)
        todo += children.get(pid, [])
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    import json
    import sys

    with weir() as home:
        print(json.dumps(measure(home, *map(int, sys.argv[1:])), indent=1))
