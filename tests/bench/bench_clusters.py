"""Burst headroom of a fleet of clusters through Spark: from stored models and rates to stored answers."""

from __future__ import annotations

import time
from pathlib import Path

CLUSTERS = 1_000
APPLICATIONS = 4
NODES = 5


def measure(home: Path, clusters: int = CLUSTERS) -> dict[str, float]:
    """Seconds from asking which clusters are due to the commit, with a warm session.

    ``first_s`` includes BARRE's index of every model, ``next_s`` is when only the rates are new.
    """
    from analytics.spark.clusters import PostgresClusters
    from analytics.spark.jobs import bursts
    from analytics.spark.session import create_session, warm_up
    from tests.support.clusters import random_cluster
    from webapp.accounts.models import User
    from webapp.bursts import services, surveys
    from webapp.bursts.models import Cluster, Survey
    from webapp.telemetry import segment_store

    session = create_session(home)
    warm_up(session)
    boss = User.objects.create_superuser(
        "admin"
    )  # as `bootstrap` calls the first: it makes none beside another
    for seed in range(clusters):
        random_cluster(boss, seed, applications=APPLICATIONS, nodes=NODES)

    def answered() -> float:
        began = time.perf_counter()
        wanted = surveys.due(time.time_ns())
        assert len(wanted) == clusters
        found = bursts.run(session, PostgresClusters(segment_store.address()), wanted)
        assert surveys.keep(found).stored == clusters
        return time.perf_counter() - began

    first_s = answered()
    for cluster in Cluster.objects.all():
        more = {name: rate * 1.05 for name, rate in cluster.rates.items()}
        services.set_rates(boss, cluster, more, time.time_ns())
    next_s = answered()
    session.stop()
    assert Survey.objects.filter(error="").count() == clusters
    return {"clusters": clusters, "first_s": first_s, "next_s": next_s}
