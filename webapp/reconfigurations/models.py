"""Proposals, votes on them, attempts to apply them, and the rules under which a job may be changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.analysis.models import Recommendation
from webapp.jobs.models import Job
from webapp.reconfigurations.lifecycle import IN_FLIGHT, State


class Kind(models.TextChoices):
    """What a proposal changes."""

    RESCALE = "rescale", "change the parallelism of operators"
    RESIZE = "resize", "change the size of containers"
    REBALANCE = "rebalance", "move keys between instances"
    MICROBATCH = "microbatch", "change the size of batch groups"
    MIGRATE = "migrate", "move state between workers"
    COLLOCATE = "collocate", "put workers on the same host"


class Mode(models.TextChoices):
    """How far Weir may go with a job."""

    OBSERVE = "observe", "observe: Weir proposes nothing by itself, and nothing is changed"
    RECOMMEND = "recommend", "recommend: people decide"
    AUTOMATIC = "automatic", "automatic within limits: people decide what is beyond them"


class EngineKind(models.TextChoices):
    """Through what a change is applied."""

    DRY_RUN = "dry-run", "dry run: nothing is sent"
    FLINK = "flink", "Flink's REST API"
    WEBHOOK = "webhook", "signed webhook"


class ChangePolicy(models.Model):
    """The rules of one job. ``windows`` are when changes may be applied (``change_windows``), empty: always.

    ``scaled_by`` names another controller (KEDA, an HPA, Flink's autoscaler) that an admin knows to own the job.
    ``auto_*`` bound what is done without asking: the factor by which an operator may grow or shrink, its instances
    at most, and changes a day.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="change_policy")
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.OBSERVE)
    quorum = models.PositiveSmallIntegerField(default=1)
    expires_after_s = models.PositiveIntegerField(default=3_600)
    windows = models.JSONField(default=list, blank=True)
    scaled_by = models.CharField(max_length=100, blank=True)
    auto_max_factor = models.FloatField(default=2.0)
    auto_max_parallelism = models.PositiveIntegerField(default=32)
    auto_max_per_day = models.PositiveSmallIntegerField(default=4)
    engine = models.CharField(max_length=10, choices=EngineKind.choices, default=EngineKind.DRY_RUN)
    engine_url = models.CharField(max_length=500, blank=True)
    webhook_secret = models.CharField(max_length=200, blank=True)
    apply_limit_s = models.PositiveIntegerField(default=120)
    settle_s = models.PositiveIntegerField(default=90)

    class Meta:
        constraints = (
            models.CheckConstraint(name="quorum_positive", condition=Q(quorum__gte=1)),
            models.CheckConstraint(name="mode_known", condition=Q(mode__in=Mode.values)),
            models.CheckConstraint(name="engine_known", condition=Q(engine__in=EngineKind.values)),
            # A Flink's meters mislead for 80 s after a rescale.
            models.CheckConstraint(name="settle_long_enough", condition=Q(settle_s__gte=80)),
        )

    def __str__(self) -> str:
        return f"rules of {self.job}"


class Freeze(models.Model):
    """Nothing is approved or applied from ``at`` until somebody lifts it: on one job, or without one on all."""

    job = models.ForeignKey(Job, null=True, on_delete=models.CASCADE, related_name="freezes")
    reason = models.TextField()
    at = models.DateTimeField(auto_now_add=True)
    by_name = models.CharField(max_length=200)
    lifted_at = models.DateTimeField(null=True)
    lifted_by_name = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="one_freeze", fields=("job",), condition=Q(lifted_at=None), nulls_distinct=False
            ),
        )

    def __str__(self) -> str:
        return f"{self.job or 'everything'} frozen by {self.by_name}"


class Proposal(models.Model):
    """A reconfiguration with all that speaks for it. What is proposed never changes, only where it stands.

    ``version`` counts the steps of its life: who decides says which one they saw. ``change`` depends on the kind;
    for a rescale ``{"parallelism": {operator id: instances}}``. ``binding`` and ``prediction`` are
    ``analytics.model.reconfigurations`` as JSON, ``rules`` the job's rules when it was made. ``risks`` are
    sentences; with any of them an approval needs a reason. ``shortfall_per_s`` is what waiting costs: records a
    second that the job stays behind its target. ``automatic``: approved within the limits, by nobody. ``undoes`` is
    the proposal that this one takes back. ``recommendation`` is what it was made of, and ``payload`` that one's
    evidence and action as they were then (``analytics.model.packed``): ``evidence`` tells the same to readers.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="proposals")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    state = models.CharField(max_length=14, choices=State.choices, default=State.PROPOSED)
    version = models.PositiveIntegerField(default=1)
    state_reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True)
    proposed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="proposals"
    )
    proposed_by_name = models.CharField(max_length=200)
    by_hand = models.BooleanField(default=False)
    policy = models.CharField(max_length=60, blank=True)
    policy_version = models.PositiveIntegerField(default=0)
    change = models.JSONField()
    binding = models.JSONField()
    recommendation = models.ForeignKey(
        Recommendation, null=True, on_delete=models.SET_NULL, related_name="proposals"
    )
    evidence = models.JSONField(default=dict)
    payload = models.BinaryField(null=True)
    prediction = models.JSONField(default=dict)
    rules = models.JSONField(default=dict)
    risks = models.JSONField(default=list)
    shortfall_per_s = models.FloatField(default=0.0)
    automatic = models.BooleanField(default=False)
    break_glass = models.BooleanField(default=False)
    supersedes = models.OneToOneField(
        "self", null=True, on_delete=models.SET_NULL, related_name="superseded_by"
    )
    undoes = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="ways_back")
    verdict = models.JSONField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="proposal_state_known", condition=Q(state__in=State.values)),
            models.CheckConstraint(name="proposal_kind_known", condition=Q(kind__in=Kind.values)),
            models.UniqueConstraint(
                name="one_proposed", fields=("job", "kind"), condition=Q(state=State.PROPOSED)
            ),
            models.UniqueConstraint(name="one_in_flight", fields=("job",), condition=Q(state__in=IN_FLIGHT)),
        )
        indexes = (
            models.Index(name="proposal_history", fields=("job", "-id")),  # a job's page
            models.Index(
                name="proposal_live",  # the sweeps
                fields=("state",),
                condition=Q(state__in=(State.PROPOSED, *IN_FLIGHT, State.APPLIED)),
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.job} ({self.state})"


class Vote(models.Model):
    """One person's word on a proposal."""

    proposal = models.ForeignKey(Proposal, on_delete=models.CASCADE, related_name="votes")
    voter = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    voter_name = models.CharField(max_length=200)
    approves = models.BooleanField()
    reason = models.TextField(blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="vote_once", fields=("proposal", "voter")),)

    def __str__(self) -> str:
        return f"{self.voter_name} {'approves' if self.approves else 'rejects'}"


class Step(models.TextChoices):
    """How far an attempt got. ``sending`` is written before anything leaves Weir."""

    STARTED = "started", "nothing sent yet"
    SENDING = "sending", "sent, or about to be"
    SENT = "sent", "sent and answered"
    FINISHED = "finished", "over"


class Attempt(models.Model):
    """The one try to apply a proposal. ``holder`` works on it until ``lease_until``; then anybody may go on.

    ``exchanges`` are all requests and answers in their order, which for a webhook is the delivery log. ``before``
    and ``after`` are what the engine said around it, ``request`` what was (about to be) sent, ``rescale`` the
    engine's own record of it. ``engine`` is through what it is applied, whatever the job's rules say later.
    """

    proposal = models.OneToOneField(Proposal, on_delete=models.CASCADE, related_name="attempt")
    engine = models.CharField(max_length=10, choices=EngineKind.choices, default=EngineKind.DRY_RUN)
    step = models.CharField(max_length=10, choices=Step.choices, default=Step.STARTED)
    holder = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True)
    takeovers = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    request = models.JSONField(null=True)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    rescale = models.JSONField(null=True)
    exchanges = models.JSONField(default=list)
    outcome = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"attempt at {self.proposal_id}: {self.step}"
