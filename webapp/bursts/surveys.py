"""Which clusters have new rates or a new model, and keeping what was computed about them.

`workers.tasks.bursts` computes it. Headroom over time and the alerts follow from it, in the same transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from analytics.bursts.fleet import ClusterAnswer
from analytics.model import packed
from webapp.bursts.models import Cluster, HeadroomAlert, HeadroomPoint, ModelVersion, Survey

FRESH_NS = 5 * 60 * 1_000_000_000
RELIEF = 1.1
"""An alert ends only a tenth above its threshold, or it would come and go with every sample."""

_DUE = """
    SELECT cluster.id, model.id, greatest(coalesce(cluster.rates_ns, 0), coalesce(newest.at_ns, 0)) AS at_ns
    FROM bursts_cluster AS cluster
    JOIN bursts_modelversion AS model ON model.cluster_id = cluster.id AND model.superseded_at IS NULL
    LEFT JOIN bursts_survey AS survey ON survey.cluster_id = cluster.id
    LEFT JOIN LATERAL (
        SELECT max(rates.at_ns) AS at_ns
        FROM jobs_job AS job JOIN jobs_rates AS rates ON rates.job_id = job.id AND rates.at_ns > %s
        WHERE job.name = ANY(model.applications) AND (job.group_id IS NULL OR job.group_id = cluster.group_id)
    ) AS newest ON true
    WHERE survey.cluster_id IS NULL OR survey.seen_model <> model.id
        OR survey.seen_ns < greatest(coalesce(cluster.rates_ns, 0), coalesce(newest.at_ns, 0))
    ORDER BY cluster.id
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of answers: stored, without one (an error), and too late, since somebody was faster."""

    stored: int
    failed: int
    late: int


def due(now_ns: int) -> list[tuple[int, int, int]]:
    """``(cluster, model, time to answer for)`` of every cluster that nobody has looked at as it is now."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, [now_ns - FRESH_NS])
        return list(cursor.fetchall())


@transaction.atomic
def keep(found: Sequence[ClusterAnswer]) -> Kept:
    """Store answers with the point each adds to its cluster's history, and open or close alerts."""
    ids = [item.cluster_id for item in found]
    clusters = {row.pk: row for row in Cluster.objects.select_for_update().filter(pk__in=ids).order_by("pk")}
    models = {row.pk: row for row in ModelVersion.objects.filter(pk__in=[item.model_id for item in found])}
    seen = {row.cluster_id: row for row in Survey.objects.filter(cluster_id__in=ids).defer("payload")}
    on_time = [
        item
        for item in found
        if item.cluster_id in clusters and item.model_id in models and not _is_late(item, seen)
    ]
    answered = [item for item in on_time if not item.error]
    _keep_answers(answered)
    _keep_errors([item for item in on_time if item.error])
    _keep_indexes(answered)
    _keep_history(answered, models)
    _alert(answered, clusters)
    return Kept(len(answered), len(on_time) - len(answered), len(found) - len(on_time))


def _is_late(item: ClusterAnswer, seen: dict[int, Survey]) -> bool:
    row = seen.get(item.cluster_id)
    return row is not None and (row.seen_model, row.seen_ns) > (item.model_id, item.at_ns)


def _keep_answers(answered: Sequence[ClusterAnswer]) -> None:
    now = timezone.now()
    rows = [
        Survey(
            cluster_id=item.cluster_id, model_id=item.model_id, at_ns=item.at_ns, seen_ns=item.at_ns,
            seen_model=item.model_id, computed_at=now, payload=item.payload, error="",
        )
        for item in answered
    ]  # fmt: skip
    columns = ["model", "at_ns", "seen_ns", "seen_model", "computed_at", "payload", "error"]
    Survey.objects.bulk_create(rows, update_conflicts=True, unique_fields=["cluster"], update_fields=columns)


def _keep_errors(failed: Sequence[ClusterAnswer]) -> None:
    rows = [
        Survey(cluster_id=item.cluster_id, seen_ns=item.at_ns, seen_model=item.model_id, error=item.error)
        for item in failed
    ]
    Survey.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["cluster"],
        update_fields=["seen_ns", "seen_model", "error"],
    )  # fmt: skip


def _keep_indexes(answered: Sequence[ClusterAnswer]) -> None:
    rows = [
        ModelVersion(pk=item.model_id, index=item.index, index_points=item.index_points)
        for item in answered
        if item.index_points >= 0
    ]
    ModelVersion.objects.bulk_update(rows, ["index", "index_points"], batch_size=200)


def _keep_history(answered: Sequence[ClusterAnswer], models: dict[int, ModelVersion]) -> None:
    rows = [
        HeadroomPoint(
            cluster_id=item.cluster_id, at_ns=item.at_ns, version=models[item.model_id].version,
            rates=packed.unpack(item.payload)["headroom"]["rates"], ratio=item.ratio, joint=item.joint,
            single=item.single, least_after_loss=item.least_after_loss, limit_node=item.limit_node,
            limit_resource=item.limit_resource,
        )
        for item in answered
    ]  # fmt: skip
    columns = [
        "version", "rates", "ratio", "joint", "single", "least_after_loss", "limit_node", "limit_resource",
    ]  # fmt: skip
    HeadroomPoint.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["cluster", "at_ns"], update_fields=columns
    )


def judge_again(cluster: Cluster) -> None:
    """Open or close the alert of a cluster whose bounds were changed, by the answer that stands.

    The caller holds the cluster's row locked. An answer of another model says nothing: a worker's is on its way.
    """
    survey = Survey.objects.filter(cluster=cluster, model__superseded_at=None).defer("payload").first()
    if survey is None or survey.at_ns is None:
        return
    point = cluster.history.filter(at_ns=survey.at_ns).first()
    if point is None:
        return
    answer = ClusterAnswer(
        cluster.pk, survey.seen_model, point.at_ns, ratio=point.ratio, limit_node=point.limit_node,
        limit_resource=point.limit_resource,
    )  # fmt: skip
    _alert([answer], {cluster.pk: cluster})


def _alert(answered: Sequence[ClusterAnswer], clusters: dict[int, Cluster]) -> None:
    """Open, deepen or close the alert of each cluster."""
    rows = HeadroomAlert.objects.filter(cluster_id__in=clusters, closed_ns=None)
    open_ = {row.cluster_id: row for row in rows}
    new, changed = list[HeadroomAlert](), list[HeadroomAlert]()
    for item in answered:
        threshold = clusters[item.cluster_id].alert_ratio
        alert = open_.get(item.cluster_id)
        if alert is None:
            if item.ratio < threshold:
                new.append(_opened(item, threshold))
            continue
        alert.least_ratio = min(alert.least_ratio, item.ratio)
        if item.ratio >= threshold * RELIEF:
            alert.closed_ns = item.at_ns
        changed.append(alert)
    HeadroomAlert.objects.bulk_create(new)
    HeadroomAlert.objects.bulk_update(changed, ["least_ratio", "closed_ns"])


def _opened(item: ClusterAnswer, threshold: float) -> HeadroomAlert:
    limit = f"{item.limit_resource} of {item.limit_node}" if item.limit_node else ""
    known: dict[str, Any] = {"opened_ns": item.at_ns, "opened_ratio": item.ratio, "least_ratio": item.ratio}
    return HeadroomAlert(cluster_id=item.cluster_id, threshold_ratio=threshold, limit=limit, **known)
