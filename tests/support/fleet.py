"""Many jobs with rates: chains that only differ in their numbers, or graphs with everything that can be odd."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

from analytics.model.rates import InstanceRates, OperatorRates, RateWindow
from analytics.model.topology import Edge, Operator, Topology
from analytics.scaling.advice import JobAdvice
from analytics.spark.jobs.scaling import advise_stored
from analytics.spark.rates import PostgresRates
from webapp.analysis import recommendations
from webapp.analysis.recommendations import Kept
from webapp.jobs import reports
from webapp.jobs.models import Job
from webapp.jobs.reports import Measured
from webapp.telemetry import segment_store

MINUTE_NS = 60_000_000_000


def measured(seed: int, end_ns: int, operators: int = 10, instances: int = 4) -> Measured:
    """A chain without gaps in what it reports; its source is not held back."""
    draw = random.Random(seed)
    names = [f"operator-{k}" for k in range(operators)]
    graph = Topology(
        f"job-{seed}",
        f"job-{seed}",
        "RUNNING",
        end_ns // 1_000_000,
        tuple(Operator(name, name, instances, 128) for name in names),
        tuple(Edge(*pair, "HASH") for pair in pairwise(names)),
        running_since_ms=1,
    )
    found = tuple(
        OperatorRates(
            name, instances, tuple(_instance(draw, k, source=name == names[0]) for k in range(instances))
        )
        for name in names
    )
    return Measured(graph, RateWindow(end_ns - MINUTE_NS, end_ns, found))


def _instance(draw: random.Random, number: int, *, source: bool) -> InstanceRates:
    useful, capacity, selectivity = draw.uniform(0.3, 1.0), draw.uniform(80, 200), draw.uniform(0.8, 1.2)
    processed = 0.0 if source else capacity * useful
    sent = capacity * useful * selectivity
    held = draw.uniform(0, 0.05)
    return InstanceRates(
        number, processed / useful, sent / useful, processed, sent, useful, useful, held if source else 0.0
    )


def odd(seed: int, end_ns: int) -> Measured:
    """A graph of up to seven operators in which some instances, numbers or edges are not as they should be."""
    draw = random.Random(seed)
    whole = measured(seed, end_ns, operators=draw.randint(1, 7), instances=draw.randint(1, 3))
    names = [operator.id for operator in whole.topology.operators]
    more = [Edge(*draw.choices(names, k=2)) for _ in range(draw.choice((0, 0, 0, 1, 2)))]
    rates = tuple(_spoilt(draw, item) for item in whole.window.operators)
    if draw.random() < 0.1:
        rates = rates[1:]
    return Measured(
        replace(whole.topology, edges=(*whole.topology.edges, *more)),
        replace(whole.window, operators=rates),
    )


def _spoilt(draw: random.Random, rates: OperatorRates) -> OperatorRates:
    lag = draw.choice((None, None, draw.uniform(0, 1e6)))
    rates = replace(rates, lag_first=lag, lag_last=None if lag is None else lag * draw.uniform(0.5, 2))
    kind = draw.choice(
        ("", "", "", "", "missing", "none", "stale", "idle", "nan", "infinite", "negative", "whole")
    )
    if kind == "missing":
        return replace(rates, instances=rates.instances[1:])
    if kind == "stale":
        return replace(rates, stale_count=1)
    numbers = {
        "idle": 0.0,
        "nan": float("nan"),
        "infinite": float("inf"),
        "negative": -0.0,
        "whole": 7,
        "none": None,
    }
    if kind in numbers:
        first = replace(
            rates.instances[0], true_processing_per_s=numbers[kind], observed_output_per_s=numbers[kind]
        )
        return replace(rates, instances=(first, *rates.instances[1:]))
    return rates


def store(found: Measured, name: str = "") -> Job:
    """The job of these rates, with them; made if it is new."""
    job, _ = Job.objects.get_or_create(name=name or found.topology.job_name)
    reports.keep_rates(job, found)
    return job


def advise_here(now_ns: int) -> tuple[list[JobAdvice], Kept]:
    """What the task does, with its own functions but without Spark."""
    source = PostgresRates(segment_store.address())
    found = [advise_stored(one) for one in source.read(recommendations.due(now_ns))]
    return found, recommendations.keep(found)
