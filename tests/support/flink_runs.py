"""Rates of the recorded Flink job around a change, as its collector keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from analytics.model.rates import InstanceRates, OperatorRates, RateWindow
from analytics.model.topology import Edge, Operator, Topology
from tests.support.changes import COUNT, JOB_ID, NAMES, SINK, SOURCE, SPLIT
from webapp.jobs import reports
from webapp.jobs.models import Job
from webapp.reconfigurations.models import Attempt, Proposal

EDGES = (Edge(SOURCE, SPLIT), Edge(SPLIT, COUNT), Edge(COUNT, SINK))


def keep(
    job: Job, until: datetime, rate_per_s: float, busy: Mapping[str, float], counts: Mapping[str, int]
) -> None:
    """A minute's rates that end at this time: what the source delivered, and how busy each operator was."""
    end_ns = int(until.timestamp() * 1e9)
    operators = tuple(Operator(key, name, counts[key], 128) for key, name in NAMES.items())
    topology = Topology(JOB_ID, "job", "RUNNING", None, operators, EDGES)
    rates = tuple(
        OperatorRates(key, counts[key], _instances(key, counts[key], rate_per_s, busy.get(key, 0.1)))
        for key in NAMES
    )
    reports.keep_rates(job, reports.Measured(topology, RateWindow(end_ns - 60 * 10**9, end_ns, rates)))


def _instances(key: str, count: int, rate_per_s: float, busy: float) -> tuple[InstanceRates, ...]:
    out = rate_per_s if key == SOURCE else None
    return tuple(InstanceRates(i, None, None, None, out, busy_ratio=busy) for i in range(count))


def around(
    row: Proposal, before_per_s: float, after_per_s: float, busy: Mapping[str, float], *, minutes: int = 5
) -> None:  # fmt: skip
    """Pretend the change was ``minutes`` ago, with such rates before and such a rate and load after."""
    shift = timedelta(minutes=minutes)
    attempt = row.attempt
    applied_at = row.applied_at
    assert applied_at is not None
    assert attempt.sent_at is not None
    Proposal.objects.filter(pk=row.pk).update(applied_at=applied_at - shift)
    Attempt.objects.filter(pk=attempt.pk).update(
        sent_at=attempt.sent_at - shift, started_at=attempt.started_at - shift
    )
    was = {item["id"]: item["parallelism"] for item in row.binding["operators"]}
    for half in range(1, 5):
        at = attempt.sent_at - shift - timedelta(seconds=30 * half)
        keep(row.job, at, before_per_s, {SPLIT: 1.0, COUNT: 0.3}, was)
    for half in range(2 * minutes - 3):
        at = applied_at - shift + timedelta(seconds=85 + 30 * half)
        keep(row.job, at, after_per_s, busy, was | row.change["parallelism"])
