"""Rules of a job group, what is remembered of every subject they watch, what fired when, and silences."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from analytics.alerting.machine import Terms, Told, Watch
from webapp.jobs.models import Job, JobGroup


class RuleKind(models.TextChoices):
    """What a rule watches."""

    ACTIVITY_CP = "activity_cp", "CP of an activity"
    OPERATOR_CP = "operator_cp", "CP of an operator"
    WORKER_CP = "worker_cp", "CP of a worker"
    HEADROOM = "headroom", "headroom of a cluster"
    BACKLOG = "backlog", "backlog of a job's sources"
    NO_DATA = "no_data", "no data from a job"
    EXPIRING = "expiring", "proposal about to expire"
    REGRESSED = "regressed", "change that made it worse"


class Severity(models.TextChoices):
    """How bad it is; PagerDuty's words."""

    CRITICAL = "critical", "critical"
    WARNING = "warning", "warning"
    INFO = "info", "info"


LOW_IS_BAD = (RuleKind.HEADROOM, RuleKind.EXPIRING)


class AlertRule(models.Model):
    """What a job group wants to be told of: about all its jobs (or clusters), or about one ``job``.

    ``target`` is the activity, operator or worker by name; of a backlog the metric, "" for what Flink said.
    Thresholds are shares of 1 (CP, headroom), records (backlog) or seconds. ``due_at``: when it is evaluated next.
    """

    group = models.ForeignKey(JobGroup, on_delete=models.CASCADE, related_name="alert_rules")
    job = models.ForeignKey(Job, null=True, on_delete=models.CASCADE, related_name="alert_rules")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=12, choices=RuleKind.choices)
    target = models.CharField(max_length=500, blank=True)
    threshold = models.FloatField()
    clear = models.FloatField()
    fire_after = models.PositiveSmallIntegerField(default=1)
    clear_after = models.PositiveSmallIntegerField(default=1)
    severity = models.CharField(max_length=10, choices=Severity.choices, default=Severity.WARNING)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by_name = models.CharField(max_length=200)
    due_at = models.DateTimeField()
    error = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="alert_rule_name_once", fields=("group", "name")),
            models.CheckConstraint(name="alert_kind_known", condition=Q(kind__in=RuleKind.values)),
        )
        indexes = (models.Index(name="alert_rule_due", fields=("due_at",)),)  # the claim

    def __str__(self) -> str:
        return f"{self.name} of {self.group}"

    @property
    def terms(self) -> Terms:
        """For the state machine."""
        above = self.kind not in LOW_IS_BAD
        return Terms(above, self.threshold, self.clear, self.fire_after, self.clear_after)


class AlertWatch(models.Model):
    """What the state machine remembers of one subject (``job:7``, ``cluster:2``, ``proposal:9``) of a rule.

    ``seen_ns`` is the time of the last value that it saw: nothing is counted twice.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="watches")
    subject = models.CharField(max_length=40)
    firing = models.BooleanField(default=False)
    row = models.PositiveSmallIntegerField(default=0)
    seen_ns = models.BigIntegerField(default=0)

    class Meta:
        constraints = (models.UniqueConstraint(name="watched_once", fields=("rule", "subject")),)

    @property
    def watch(self) -> Watch:
        """For the state machine."""
        return Watch(self.firing, self.row)


class Alert(models.Model):
    """A time in which a rule fired for a subject; open until ``resolved_at``.

    ``job`` is the one that the subject is or belongs to; a cluster has none. ``subject_name`` and ``path`` are how
    people know and find it. ``worst`` is the worst value so far, ``last`` the newest. ``told`` is what the group's
    channels were told last, changed in the transaction that stores the messages.
    """

    rule = models.ForeignKey(AlertRule, on_delete=models.CASCADE, related_name="alerts")
    subject = models.CharField(max_length=40)
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="alerts")
    subject_name = models.CharField(max_length=300)
    path = models.CharField(max_length=200)
    fired_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True)
    worst = models.FloatField()
    last = models.FloatField()
    told = models.CharField(max_length=10, choices=[(item.value, item.value) for item in Told], blank=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by_name = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="alert_open_once", fields=("rule", "subject"), condition=Q(resolved_at=None)
            ),
        )
        indexes = (
            models.Index(name="alert_newest", fields=("rule", "-fired_at")),
            models.Index(  # what channels must still hear
                name="alert_untold", fields=("rule",), condition=Q(told="fired") | Q(resolved_at=None)
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject_name}: alert {self.pk}"


class Silence(models.Model):
    """Nothing is told of a group's rule, or without one of all its rules, until a time or until it is ended.

    With a ``job`` only what these rules find about that job of the group is silent.
    """

    group = models.ForeignKey(JobGroup, on_delete=models.CASCADE, related_name="silences")
    rule = models.ForeignKey(AlertRule, null=True, on_delete=models.CASCADE, related_name="silences")
    job = models.ForeignKey(Job, null=True, on_delete=models.CASCADE, related_name="silences")
    reason = models.CharField(max_length=300)
    created_at = models.DateTimeField(auto_now_add=True)
    until = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    by_name = models.CharField(max_length=200)
    ended_at = models.DateTimeField(null=True)
    ended_by_name = models.CharField(max_length=200, blank=True)

    class Meta:
        indexes = (models.Index(name="silence_live", fields=("group", "until"), condition=Q(ended_at=None)),)
        constraints = (models.CheckConstraint(name="silence_ends", condition=Q(until__gt=F("created_at"))),)

    def __str__(self) -> str:
        about = f"{self.job} for {self.rule or self.group}" if self.job else f"{self.rule or self.group}"
        return f"{about} silent until {self.until:%F %R}"
