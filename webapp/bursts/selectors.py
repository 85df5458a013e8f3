"""What pages and the API ask about clusters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet

from analytics.bursts.forecast import Forecast, crossing
from analytics.model import packed
from analytics.model.burst_answers import Survey as Answers
from analytics.model.bursts import BurstModel, to_document
from analytics.model.bursts_json import burst_model
from analytics.model.plain import from_plain
from webapp.bursts.models import Cluster, HeadroomAlert, HeadroomPoint, ModelVersion, Survey
from webapp.bursts.policies import visible_clusters
from webapp.jobs.policies import Actor

MOST_LISTED = 500
FORECAST_NS = 7 * 86_400_000_000_000
"""How much of the past a trend rests on."""


@dataclass(frozen=True)
class Standing:
    """A cluster with its current model and its newest answers (None: none yet).

    ``stale``: the answers are of another model than the current one. ``alert`` is the open one.
    """

    cluster: Cluster
    model: ModelVersion | None
    survey: Survey | None
    alert: HeadroomAlert | None

    @property
    def stale(self) -> bool:
        """Whether the answers are of another model than the current one."""
        return self.survey is not None and self.survey.model_id != (self.model.pk if self.model else None)

    @property
    def comparable(self) -> bool:
        """Whether the answers' rates are those of the current model's applications, in its order."""
        answered = self.survey.model if self.survey is not None else None
        if answered is None or self.model is None:
            return False
        return answered.applications == self.model.applications

    @cached_property
    def answers(self) -> Answers | None:
        """The newest answers; None if there are none, or they were written otherwise."""
        if self.survey is None or self.survey.payload is None:
            return None
        return _answers(bytes(self.survey.payload))


def cluster(actor: Actor, cluster_id: int) -> Cluster | None:
    """The cluster, or None if there is none that this person may see."""
    return visible_clusters(actor).select_related("group").filter(pk=cluster_id).first()


def standings(actor: Actor) -> list[Standing]:
    """All clusters of this person, at most `MOST_LISTED`: with an alert first, then those with least headroom.

    Those without answers come before those with enough of it: nobody knows how they stand.
    """
    alerts = HeadroomAlert.objects.filter(cluster=OuterRef("pk"), closed_ns=None)
    rows = list(
        visible_clusters(actor)
        .select_related("group")
        .annotate(alerted=Exists(alerts))
        .order_by("-alerted", "name")[:MOST_LISTED]
    )
    ids = [row.pk for row in rows]
    models = {
        row.cluster_id: row
        for row in ModelVersion.objects.filter(cluster_id__in=ids, superseded_at=None).defer(
            "payload", "index"
        )
    }
    surveys = {row.cluster_id: row for row in _with_applications(Survey.objects.filter(cluster_id__in=ids))}
    open_ = {row.cluster_id: row for row in HeadroomAlert.objects.filter(cluster_id__in=ids, closed_ns=None)}
    found = [Standing(row, models.get(row.pk), surveys.get(row.pk), open_.get(row.pk)) for row in rows]
    return sorted(found, key=_urgency)


def _urgency(standing: Standing) -> tuple[bool, float, str]:
    answers, burst = standing.answers, standing.cluster.burst_ratio
    return standing.alert is None, burst if answers is None else answers.ratio, standing.cluster.name


def how_many(actor: Actor) -> int:
    """How many clusters this person may see."""
    return visible_clusters(actor).count()


def standing(cluster: Cluster) -> Standing:
    """One cluster with what belongs to it."""
    return Standing(
        cluster,
        cluster.versions.filter(superseded_at=None).defer("index").first(),
        _with_applications(Survey.objects.filter(cluster=cluster)).first(),
        HeadroomAlert.objects.filter(cluster=cluster, closed_ns=None).first(),
    )


def _with_applications(rows: QuerySet[Survey]) -> QuerySet[Survey]:
    """The same with the models they are for, without what is large in these."""
    return rows.select_related("model").defer("model__payload", "model__index")


@lru_cache(maxsize=64)
def _answers(payload: bytes) -> Answers | None:
    try:
        found: Answers = from_plain(Answers, packed.unpack(payload))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return found


def stamp(cluster: Cluster) -> str:
    """Changes whenever the cluster has other answers or another model."""
    survey = Survey.objects.filter(cluster=cluster).values_list("computed_at", "error").first()
    model = (
        cluster.versions.filter(superseded_at=None).values_list("pk", "index_points", "diagnostics").first()
    )
    return f"{survey} {model}"


def model_of(version: ModelVersion) -> BurstModel:
    """The model of a version; the same document is read once.

    Raises
    ------
    ValueError
        If it was written by a release that wrote otherwise.
    """
    return _read(bytes(version.payload))


def document(cluster: Cluster) -> dict[str, Any] | None:
    """The cluster's current model as JSON says it; None if it has none.

    Raises
    ------
    ValueError
        If it was written by a release that wrote otherwise.
    """
    row = cluster.versions.filter(superseded_at=None).defer("index").first()
    return None if row is None else to_document(model_of(row))


@lru_cache(maxsize=64)
def _read(payload: bytes) -> BurstModel:
    return burst_model(packed.unpack(payload))[0]


def alerts(cluster: Cluster, limit: int = 20) -> Sequence[HeadroomAlert]:
    """The newest alerts, open ones first."""
    return list(HeadroomAlert.objects.filter(cluster=cluster).order_by("-opened_ns")[:limit])


def forecast(cluster: Cluster, now_ns: int) -> Forecast:
    """When headroom will be below the alert's threshold by the trend of the last week, or why nobody can tell."""
    rows = HeadroomPoint.objects.filter(cluster=cluster, at_ns__gte=now_ns - FORECAST_NS).order_by("at_ns")
    points = [
        (at_ns / 1e9, ratio) for at_ns, ratio in rows.values_list("at_ns", "ratio") if math.isfinite(ratio)
    ]
    return crossing([at for at, _ in points], [ratio for _, ratio in points], cluster.alert_ratio)
