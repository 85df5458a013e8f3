"""Clusters over the API: models and rates are sent, answers are read."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.bursts.index import Found
from analytics.bursts.notation import read_rates
from analytics.model.plain import to_plain
from webapp.accounts.models import Scope
from webapp.api.idempotency import once
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, PAGE, NsField, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.bursts import selectors, services
from webapp.bursts.models import Cluster, Origin
from webapp.bursts.plans import plan_for
from webapp.bursts.policies import visible_clusters


class NewCluster(serializers.Serializer[Any]):
    """A cluster with its model."""

    name = serializers.CharField(max_length=services.MOST_NAME)
    model = serializers.JSONField(help_text="the burst model, as the user guide describes it")
    group = serializers.CharField(
        required=False, allow_null=True, max_length=services.MOST_NAME,
        help_text="the group of jobs it belongs to and guards; its operators may name it; without it: none",
    )  # fmt: skip


class RatesWanted(serializers.Serializer[Any]):
    """Input rates by application, in the model's unit; null takes one back."""

    rates = serializers.DictField(child=serializers.FloatField(allow_null=True, min_value=0))
    at_ns = NsField(
        required=False, help_text="when they were measured, at most an hour ahead; without it: now"
    )


class ClusterShape(serializers.Serializer[Any]):
    """A cluster and its headroom. ``stale``: the answers are of another model than the current one."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    group = serializers.CharField(allow_null=True, help_text="the group of jobs it belongs to")
    version = serializers.CharField(allow_null=True, help_text="of the current model")
    model_number = serializers.IntegerField(allow_null=True)
    origin = serializers.ChoiceField(Origin.choices, allow_null=True)
    applications = serializers.ListField(child=serializers.CharField())
    flags = serializers.ListField(child=serializers.JSONField(), help_text="what was odd about the model")
    burst_ratio = serializers.FloatField()
    alert_ratio = serializers.FloatField()
    alert = serializers.BooleanField(help_text="headroom is below alert_ratio")
    stale = serializers.BooleanField()
    at_ns = NsField(allow_null=True, help_text="the time the answers are for")
    error = serializers.CharField(help_text="why there are no newer answers; empty: there are")
    answers = serializers.JSONField(
        allow_null=True,
        help_text="headroom, losses and maps of pairs; infinite: nothing limits it, -infinite: it cannot be had",
    )


class PlanShape(serializers.Serializer[Any]):
    """What every component handles. With it all inputs can grow by ``growth`` at once, up to ``target``."""

    model_number = serializers.IntegerField()
    version = serializers.CharField()
    found = serializers.ChoiceField(
        [found.value for found in Found], help_text="near, any_side: from the index; program: solved for it"
    )
    growth = serializers.FloatField(help_text="below 0: these rates do not fit")
    growth_at_most = serializers.FloatField(
        allow_null=True, help_text="no plan lets all inputs grow by more at once; null: nothing limits them"
    )
    rates = serializers.DictField(child=serializers.FloatField())
    target = serializers.DictField(child=serializers.FloatField())
    plan = serializers.DictField(child=serializers.FloatField(), help_text="data units by component")
    fractions = serializers.DictField(
        child=serializers.FloatField(), help_text="each component's share of its stage"
    )


def shown(cluster: Cluster, *, whole: bool = True) -> dict[str, Any]:
    """A cluster as the API shows it."""
    found = selectors.standing(cluster)
    model, survey = found.model, found.survey
    answers = found.answers if whole else None
    return {
        "id": cluster.pk,
        "name": cluster.name,
        "group": cluster.group.name if cluster.group else None,
        "version": model.version if model else None,
        "model_number": model.number if model else None,
        "origin": model.origin if model else None,
        "applications": model.applications if model else [],
        "flags": model.diagnostics if model else [],
        "burst_ratio": cluster.burst_ratio,
        "alert_ratio": cluster.alert_ratio,
        "alert": found.alert is not None,
        "stale": found.stale,
        "at_ns": survey.at_ns if survey else None,
        "error": survey.error if survey else "",
        "answers": None if answers is None else to_plain(answers),
    }


def _one(request: Request, cluster_id: int) -> Cluster:
    found = visible_clusters(actor_of(request)).select_related("group").filter(pk=cluster_id).first()
    if found is None:
        raise Http404(f"there is no cluster {cluster_id}")
    return found


class ClusterView(ApiView):
    """What the addresses of clusters share."""

    scopes = {"*": Scope.ADMIN, "GET": Scope.READ}  # noqa: RUF012

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """A token for some jobs only sees no clusters: these show what else runs beside its jobs."""
        super().initial(request, *args, **kwargs)
        if token_of_request(request).jobs:
            raise PermissionDenied("a token for some jobs only cannot be used for clusters")


@extend_schema_view(
    get=extend_schema(
        operation_id="list_clusters", parameters=PAGE, responses=paged("ClusterPage", ClusterShape),
        description="The clusters with their models, without answers.",
    ),
    post=extend_schema(
        operation_id="create_cluster", parameters=[IDEMPOTENCY_KEY], request=NewCluster,
        responses={201: ClusterShape},
        description="Make a cluster from a burst model. Give it rates, or name its applications after jobs.",
    ),
)  # fmt: skip
class ClusterList(ClusterView):
    """``/api/v1/clusters``."""

    def get(self, request: Request) -> Response:
        """One page."""
        rows = visible_clusters(actor_of(request)).select_related("group")
        return Response(page(request, rows, lambda row: shown(row, whole=False)))

    def post(self, request: Request) -> Response:
        """Make one."""
        asked = NewCluster(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data

        def act() -> Response:
            actor = actor_of(request)
            group = services.group_named(actor, values.get("group") or "")
            cluster = services.create_cluster(actor, values["name"], values["model"], group=group)
            where = {"Location": f"/api/v1/clusters/{cluster.pk}"}
            return Response(shown(cluster), 201, headers=where)

        digest = hashlib.sha256(repr(request.data).encode()).digest()
        return once(request, token_of_request(request), digest, act)


@extend_schema_view(
    get=extend_schema(
        operation_id="get_cluster", responses=ClusterShape,
        description="One cluster with the newest answers about it.",
    ),
    delete=extend_schema(
        operation_id="remove_cluster", responses={204: None},
        description="Forget it with its models and history.",
    ),
)  # fmt: skip
class ClusterDetail(ClusterView):
    """``/api/v1/clusters/<id>``."""

    def get(self, request: Request, cluster_id: int) -> Response:
        """One."""
        return Response(shown(_one(request, cluster_id)))

    def delete(self, request: Request, cluster_id: int) -> Response:
        """Forget it."""
        services.remove_cluster(actor_of(request), _one(request, cluster_id))
        return Response(status=204)


@extend_schema_view(
    put=extend_schema(
        operation_id="put_cluster_model",
        request={"application/json": dict},
        responses=ClusterShape,
        description="Make this burst model the current one; the same again changes nothing.",
    )
)
class ClusterModel(ClusterView):
    """``/api/v1/clusters/<id>/model``."""

    def put(self, request: Request, cluster_id: int) -> Response:
        """A new version."""
        cluster = _one(request, cluster_id)
        services.upload_model(actor_of(request), cluster, request.data)
        return Response(shown(cluster))


@extend_schema_view(
    put=extend_schema(
        operation_id="put_cluster_rates",
        request=RatesWanted,
        responses=ClusterShape,
        description="Say what the inputs are; these go before what Weir measures of jobs of the same name.",
    )
)
class ClusterRates(ClusterView):
    """``/api/v1/clusters/<id>/rates``."""

    def put(self, request: Request, cluster_id: int) -> Response:
        """New rates."""
        cluster = _one(request, cluster_id)
        asked = RatesWanted(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        services.set_rates(actor_of(request), cluster, values["rates"], values.get("at_ns", time.time_ns()))
        return Response(shown(cluster))


class ClusterPlan(ClusterView):
    """``/api/v1/clusters/<id>/plan``."""

    @extend_schema(
        operation_id="get_cluster_plan",
        parameters=[text("at", "inputs as app1=0.05,app2=0.05; what is not named has none", required=True)],
        responses=PlanShape,
        description="How to route these inputs so that every burst up to `target` is carried without a change:"
        " looked up in the index that was built beforehand.",
    )
    def get(self, request: Request, cluster_id: int) -> Response:
        """Of the current model."""
        row = _one(request, cluster_id).versions.filter(superseded_at=None).defer("index").first()
        if row is None:
            raise Http404("the cluster has no model")
        try:
            found = plan_for(row, read_rates(request.query_params.get("at", "")))
        except ValueError as error:
            wrong = [{"field": "at", "detail": str(error)}]
            raise ProblemError(400, "invalid", "some parameters are wrong", errors=wrong) from error
        return Response({"model_number": row.number, "version": row.version, **asdict(found)})
