"""Clusters, the versions of their burst models, what was computed from these, and how headroom went over time."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from webapp.jobs.models import JobGroup


class Origin(models.TextChoices):
    """Where a model came from."""

    UPLOADED = "uploaded", "uploaded"
    DERIVED = "derived", "derived from what jobs reported"


class Cluster(models.Model):
    """Applications that share nodes.

    An application of a job's name is that job, if it is in the same group or in none. ``setup`` is what a derived
    model is made of besides rates (``analytics.bursts.derive.Setup`` and ``jobs``), null if models are uploaded.
    ``rates`` are input rates given by hand at ``rates_ns``, by application; they go before measured ones.
    ``burst_ratio`` is the configured burst: by how much all inputs must be able to grow. Below
    ``alert_ratio`` there is an alert. ``guards``: a scale-down that would leave less than the configured burst is
    refused; only if the cluster's maker may change its jobs.
    """

    name = models.CharField(max_length=200, unique=True)
    group = models.ForeignKey(
        JobGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="clusters"
    )
    setup = models.JSONField(null=True)
    rates = models.JSONField(default=dict)
    rates_ns = models.BigIntegerField(null=True)
    burst_ratio = models.FloatField(default=0.2)
    alert_ratio = models.FloatField(default=0.1)
    guards = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="clusters"
    )

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="cluster_ratios_positive", condition=Q(burst_ratio__gte=0, alert_ratio__gte=0)
            ),
        )

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """A burst model as it was for a while; one of a cluster is current. ``version`` is that of the document.

    ``payload`` is the document (``analytics.model.packed``), ``applications`` its names in order. ``basis`` is the
    parallelism of each operator by job, if it was derived. ``diagnostics`` are a list of
    ``{"code", "count", "example"}``: what was odd about it or about what it was derived from. ``index`` is BARRE's
    point index (``analytics.bursts.index.packed``) once a worker has built it; empty if there can be none.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    version = models.CharField(max_length=16)
    origin = models.CharField(max_length=10, choices=Origin.choices)
    payload = models.BinaryField()
    applications = ArrayField(models.CharField(max_length=1000))
    node_count = models.PositiveIntegerField()
    diagnostics = models.JSONField(default=list)
    made_at = models.DateTimeField(auto_now_add=True)
    made_by_name = models.CharField(max_length=200)
    superseded_at = models.DateTimeField(null=True)
    basis = models.JSONField(default=dict)
    index = models.BinaryField(null=True)
    index_points = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="model_number", fields=("cluster", "number")),
            models.UniqueConstraint(
                name="model_current", fields=("cluster",), condition=Q(superseded_at=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.cluster} model {self.number}"


class Survey(models.Model):
    """The newest answers about a cluster (``analytics.model.burst_answers.Survey``, packed).

    They are stale once the cluster has another current model. ``error`` says why there are none; the payload is
    then that of before. ``revision`` rises with every change, so that the slower of two workers writes nothing.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, primary_key=True, related_name="survey")
    model = models.ForeignKey(ModelVersion, null=True, on_delete=models.CASCADE, related_name="surveys")
    at_ns = models.BigIntegerField(null=True)
    seen_ns = models.BigIntegerField(default=0)
    seen_model = models.BigIntegerField(default=0)
    computed_at = models.DateTimeField(null=True)
    payload = models.BinaryField(null=True)
    error = models.TextField(blank=True)


class HeadroomPoint(models.Model):
    """Headroom of a cluster at one time. ``ratio`` is by how much all inputs can grow (−0.1: 10 % must be shed).

    Infinite if nothing limits it. ``joint`` and ``single`` are in the model's unit of rates, ``least_after_loss``
    is ``ratio`` after the loss of the node that costs most, null if no loss was computed. ``rates`` are in the
    order of the applications.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="history")
    at_ns = models.BigIntegerField()
    version = models.CharField(max_length=16)
    rates = ArrayField(models.FloatField())
    ratio = models.FloatField()
    joint = models.FloatField()
    single = models.FloatField()
    least_after_loss = models.FloatField(null=True)
    limit_node = models.CharField(max_length=1100, blank=True)
    limit_resource = models.CharField(max_length=1100, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="headroom_once", fields=("cluster", "at_ns")),)


class HeadroomAlert(models.Model):
    """Headroom fell below a cluster's ``alert_ratio``; open until it is back above it by a tenth of it.

    ``least_ratio`` is the lowest since; ``limit`` says what stopped growth when it opened.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="alerts")
    threshold_ratio = models.FloatField()
    opened_ns = models.BigIntegerField()
    opened_ratio = models.FloatField()
    least_ratio = models.FloatField()
    limit = models.TextField(blank=True)
    closed_ns = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="headroom_alert_open", fields=("cluster",), condition=Q(closed_ns=None)
            ),
        )


class SimulationState(models.TextChoices):
    """Where an asked simulation stands."""

    QUEUED = "queued", "queued"
    READY = "ready", "ready"
    FAILED = "failed", "failed"


class Simulation(models.Model):
    """Simulated bursts of one model at some rates under every strategy; kept, since model and seed decide it."""

    model = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="simulations")
    key = models.CharField(max_length=200)
    params = models.JSONField()
    state = models.CharField(max_length=10, choices=SimulationState.choices, default=SimulationState.QUEUED)
    requested_at = models.DateTimeField()
    payload = models.JSONField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="simulation_once", fields=("model", "key")),)
