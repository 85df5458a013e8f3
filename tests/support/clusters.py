"""Clusters to test with: the worked example, random ones, and answering for them as the worker does."""

from __future__ import annotations

import time
from typing import Any

from analytics.bursts.fleet import answer
from analytics.spark.clusters import PostgresClusters
from tests.support.burst_models import random_document, worked_example
from webapp.accounts.models import User
from webapp.bursts import services, surveys
from webapp.bursts.models import Cluster
from webapp.bursts.surveys import Kept
from webapp.telemetry import segment_store


def worked(actor: User, name: str = "worked example", **rates: float) -> Cluster:
    """The worked example as a cluster, at (0.05, 0.05) if nothing else is said."""
    return cluster(actor, name, worked_example(), rates or {"app1": 0.05, "app2": 0.05})


def cluster(
    actor: User, name: str, document: Any, rates: dict[str, float], at_ns: int | None = None
) -> Cluster:
    """A cluster of this model with these rates given."""
    made = services.create_cluster(actor, name, document)
    return services.set_rates(actor, made, rates, at_ns or time.time_ns())


def random_cluster(actor: User, seed: int, applications: int = 3, nodes: int = 4) -> Cluster:
    """A cluster of a random model, about half loaded."""
    document = random_document(seed, applications=applications, nodes=nodes, resources=1 + seed % 2)
    rates = dict.fromkeys(document["applications"], 0.4 + 0.05 * (seed % 5))
    return cluster(actor, f"cluster-{seed}", document, rates)


def survey_here(now_ns: int | None = None) -> Kept:
    """What the task does, with its own functions but without Spark."""
    wanted = surveys.due(now_ns or time.time_ns())
    found = [answer(one) for one in PostgresClusters(segment_store.address()).read(wanted)]
    return surveys.keep(found)
