"""Clusters over the API: models and rates are sent, answers are read."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404
from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.bursts.index import Found
from analytics.bursts.notation import read_rates
from analytics.model.plain import to_plain
from webapp.accounts.models import Scope
from webapp.api.etags import check_if_match
from webapp.api.idempotency import once
from webapp.api.pagination import page
from webapp.api.problems import ProblemError
from webapp.api.schema import IDEMPOTENCY_KEY, IF_MATCH, PAGE, NsField, ObjectField, paged, text
from webapp.api.views import ApiView, actor_of, token_of_request
from webapp.bursts import deriving, moving, revisions, selectors, services
from webapp.bursts.models import Cluster, Origin
from webapp.bursts.plans import plan_for
from webapp.bursts.policies import visible_clusters
from webapp.bursts.revisions import Part

MOST_RATIO = 100.0


class NewCluster(serializers.Serializer[Any]):
    """A cluster with its model."""

    name = serializers.CharField(max_length=services.MOST_NAME)
    model = serializers.JSONField(required=False, help_text="the burst model, as the user guide describes it")
    setup = ObjectField(
        required=False,
        help_text="instead of a model, what one is derived from besides measured rates: "
        '{"jobs": ["ad-events"], "nodes": {"node-1": {"cpu": 8, "network_bytes": 1.25e9}}, "margin_ratio": 0.1, '
        '"placement": {"ad-events": {"count": ["node-1"]}}}',
    )
    group = serializers.CharField(
        required=False, allow_null=True, max_length=services.MOST_NAME,
        help_text="the group of jobs it belongs to and guards; its operators may name it; without it: none",
    )  # fmt: skip

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either a model or a setup."""
        if ("model" in attrs) == ("setup" in attrs):
            raise serializers.ValidationError({"model": "give either a model or a setup"})
        return attrs


class RatesWanted(serializers.Serializer[Any]):
    """Input rates by application, in the model's unit; null takes one back."""

    rates = serializers.DictField(child=serializers.FloatField(allow_null=True, min_value=0))
    at_ns = NsField(
        required=False, help_text="when they were measured, at most an hour ahead; without it: now"
    )


class RatesShape(serializers.Serializer[Any]):
    """Input rates that were given, by application; what is not there is as measured."""

    rates = serializers.DictField(child=serializers.FloatField())
    at_ns = NsField(allow_null=True, help_text="when they were measured; null: none were ever given")


class ClusterChange(serializers.Serializer[Any]):
    """What to change of a cluster; what is left out stays."""

    group = serializers.CharField(
        allow_null=True, max_length=services.MOST_NAME,
        help_text="the group of jobs to move it to, of which you are an admin, as of its own; null: out of any",
    )  # fmt: skip
    burst_ratio = serializers.FloatField(
        min_value=0,
        max_value=MOST_RATIO,
        help_text="by how much all inputs must be able to grow: 0.5 is half more",
    )
    alert_ratio = serializers.FloatField(
        min_value=0, max_value=MOST_RATIO, help_text="below this headroom there is an alert"
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


def _one(request: Request, cluster_id: int, *, lock: bool = False) -> Cluster:
    rows = visible_clusters(actor_of(request)).select_related("group")
    if lock:
        rows = rows.select_for_update(of=("self",))
    found = rows.filter(pk=cluster_id).first()
    if found is None:
        raise Http404(f"there is no cluster {cluster_id}")
    return found


def _as_seen(request: Request, cluster_id: int, part: Part) -> Cluster:
    """The cluster, locked until the end of the transaction, if its part is still as the asker saw it."""
    cluster = _one(request, cluster_id, lock=True)
    check_if_match(request, revisions.tag(cluster, part))
    return cluster


def _answer(cluster: Cluster, part: Part, body: dict[str, Any] | None = None) -> Response:
    shape = shown(cluster) if body is None else body
    return Response(shape, headers={"ETag": revisions.tag(cluster, part)})


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
        description="Make a cluster from a burst model, or from jobs whose rates a model is derived from and "
        "follows. Give it rates, or name its applications after jobs.",
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
            if "setup" in values:
                cluster = deriving.create_derived(actor, values["name"], values["setup"], group)
            else:
                cluster = services.create_cluster(actor, values["name"], values["model"], group=group)
            answer = _answer(cluster, Part.SETTINGS)
            answer.status_code = 201
            answer["Location"] = f"/api/v1/clusters/{cluster.pk}"
            return answer

        digest = hashlib.sha256(repr(request.data).encode()).digest()
        return once(request, token_of_request(request), digest, act)


@extend_schema_view(
    get=extend_schema(
        operation_id="get_cluster", responses=ClusterShape,
        description="One cluster with the newest answers about it. The ETag is of its group and bounds: answers, "
        "model and rates change without it.",
    ),
    patch=extend_schema(
        operation_id="change_cluster", parameters=[IF_MATCH], request=ClusterChange(partial=True),
        responses=ClusterShape,
        description="Change its bounds, or move it to another group. Who moves it administers both groups. The "
        "model is then a new version, and answers are stale until a worker has answered again. A wrong field "
        "changes nothing.",
    ),
    delete=extend_schema(
        operation_id="remove_cluster", parameters=[IF_MATCH], responses={204: None},
        description="Forget it with its models and history.",
    ),
)  # fmt: skip
class ClusterDetail(ClusterView):
    """``/api/v1/clusters/<id>``."""

    def get(self, request: Request, cluster_id: int) -> Response:
        """One."""
        return _answer(_one(request, cluster_id), Part.SETTINGS)

    @transaction.atomic
    def patch(self, request: Request, cluster_id: int) -> Response:
        """Change it, if its group and bounds are still as the asker saw them."""
        cluster = _as_seen(request, cluster_id, Part.SETTINGS)
        asked = ClusterChange(data=request.data, partial=True)
        asked.is_valid(raise_exception=True)
        if unknown := sorted(set(request.data) - set(asked.fields)):
            wrong = [{"field": name, "detail": "there is nothing of this name to change"} for name in unknown]
            raise ProblemError(400, "invalid", "some fields are wrong", errors=wrong)
        values, actor = dict(asked.validated_data), actor_of(request)
        if "group" in values:
            moving.move(actor, cluster, moving.target_named(actor, cluster, values.pop("group")))
        if values:
            now = {"burst_ratio": cluster.burst_ratio, "alert_ratio": cluster.alert_ratio}
            services.set_bounds(actor, cluster, **(now | values))
        return _answer(_one(request, cluster_id), Part.SETTINGS)

    @transaction.atomic
    def delete(self, request: Request, cluster_id: int) -> Response:
        """Forget it, if its group and bounds are still as the asker saw them."""
        services.remove_cluster(actor_of(request), _as_seen(request, cluster_id, Part.SETTINGS))
        return Response(status=204)


@extend_schema_view(
    get=extend_schema(
        operation_id="get_cluster_model", responses=dict[str, Any],
        description="The current burst model, with an ETag to replace it by.",
    ),
    put=extend_schema(
        operation_id="put_cluster_model", parameters=[IF_MATCH],
        request={"application/json": dict},
        responses=ClusterShape,
        description="Make this burst model the current one; the same again changes nothing. The ETag is that of "
        "the model.",
    ),
)  # fmt: skip
class ClusterModel(ClusterView):
    """``/api/v1/clusters/<id>/model``."""

    def get(self, request: Request, cluster_id: int) -> Response:
        """The document."""
        cluster = _one(request, cluster_id)
        document = selectors.document(cluster)
        if document is None:
            raise Http404("the cluster has no model")
        return _answer(cluster, Part.MODEL, document)

    @transaction.atomic
    def put(self, request: Request, cluster_id: int) -> Response:
        """A new version, if the model is still the one that the asker saw."""
        cluster = _as_seen(request, cluster_id, Part.MODEL)
        services.upload_model(actor_of(request), cluster, request.data)
        return _answer(cluster, Part.MODEL)


@extend_schema_view(
    get=extend_schema(
        operation_id="get_cluster_rates", responses=RatesShape,
        description="The rates that were given, with an ETag to change them by.",
    ),
    put=extend_schema(
        operation_id="put_cluster_rates", parameters=[IF_MATCH],
        request=RatesWanted,
        responses=ClusterShape,
        description="Say what the inputs are; these go before what Weir measures of jobs of the same name. The "
        "ETag is that of the rates. A program that is the only one to give them sends `If-Match: *`.",
    ),
)  # fmt: skip
class ClusterRates(ClusterView):
    """``/api/v1/clusters/<id>/rates``."""

    def get(self, request: Request, cluster_id: int) -> Response:
        """Those given."""
        cluster = _one(request, cluster_id)
        return _answer(cluster, Part.RATES, {"rates": cluster.rates, "at_ns": cluster.rates_ns})

    @transaction.atomic
    def put(self, request: Request, cluster_id: int) -> Response:
        """New rates, if those given are still as the asker saw them."""
        cluster = _as_seen(request, cluster_id, Part.RATES)
        asked = RatesWanted(data=request.data)
        asked.is_valid(raise_exception=True)
        values = asked.validated_data
        at_ns = values.get("at_ns", time.time_ns())
        return _answer(services.set_rates(actor_of(request), cluster, values["rates"], at_ns), Part.RATES)


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
