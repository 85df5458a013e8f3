"""Streaming jobs and the names behind the integers that records carry."""

from django.conf import settings
from django.db import models

SECOND_NS = 1_000_000_000


class Engine(models.TextChoices):
    """The stream processor a job runs on."""

    SPARK = "spark", "Spark Structured Streaming"
    FLINK = "flink", "Flink"
    KAFKA_STREAMS = "kafka-streams", "Kafka Streams"
    SAMZA = "samza", "Samza"
    TIMELY = "timely", "Timely"
    OTHER = "other", "Other"


class Role(models.TextChoices):
    """What a member of a job group may do; each may also do what those before it may (ADR 10)."""

    VIEWER = "viewer", "viewer: sees the jobs"
    OPERATOR = "operator", "operator: proposes changes"
    APPROVER = "approver", "approver: approves and rejects changes"
    ADMIN = "admin", "admin: sets the rules, freezes, breaks glass"

    @property
    def rank(self) -> int:
        """0 for the least."""
        return list(Role).index(self)


class JobGroup(models.Model):
    """Jobs that the same people look after. Only its members see them; a job in no group is seen by everybody."""

    name = models.CharField(max_length=200, unique=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a job group."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    group = models.ForeignKey(JobGroup, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="member_once", fields=("user", "group")),
            models.CheckConstraint(name="role_known", condition=models.Q(role__in=Role.values)),
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.group}"


class Job(models.Model):
    """A streaming application.

    Analysis settings: ``window_ns`` is the width of a window; a window closes when the job has reported
    records ``lateness_ns`` past its end; a gap longer than ``gap_horizon_ns`` is unknown, never waiting,
    which bounds how much context a window needs (ADR 3). ``first_ns``/``last_ns`` bound its records.
    """

    name = models.CharField(max_length=200, unique=True)
    engine = models.CharField(max_length=20, choices=Engine.choices, default=Engine.OTHER)
    engine_job_id = models.CharField(max_length=200, blank=True)
    group = models.ForeignKey(JobGroup, null=True, blank=True, on_delete=models.PROTECT, related_name="jobs")
    created_at = models.DateTimeField(auto_now_add=True)
    finished = models.BooleanField(default=False)
    window_ns = models.BigIntegerField(default=SECOND_NS)
    lateness_ns = models.BigIntegerField(default=2 * SECOND_NS)
    gap_horizon_ns = models.BigIntegerField(default=60 * SECOND_NS)
    first_ns = models.BigIntegerField(null=True)
    last_ns = models.BigIntegerField(null=True)
    last_received_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.CheckConstraint(name="window_positive", condition=models.Q(window_ns__gt=0)),
            models.CheckConstraint(
                name="not_negative", condition=models.Q(lateness_ns__gte=0, gap_horizon_ns__gte=0)
            ),
        )

    def __str__(self) -> str:
        return self.name


class Worker(models.Model):
    """A timeline of a job. ``number`` is what records carry; ``last_ns`` its latest record so far."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="workers")
    number = models.IntegerField()
    name = models.CharField(max_length=500)
    host = models.CharField(max_length=500, blank=True)
    alive_from_ns = models.BigIntegerField(null=True)
    alive_until_ns = models.BigIntegerField(null=True)
    last_ns = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="worker_number", fields=("job", "number")),
            models.UniqueConstraint(name="worker_name", fields=("job", "name")),
        )

    def __str__(self) -> str:
        return self.name


class Operator(models.Model):
    """A vertex of the job's logical graph. ``number`` is what records carry."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="operators")
    number = models.IntegerField()
    name = models.CharField(max_length=500)

    class Meta:
        constraints = (
            models.UniqueConstraint(name="operator_number", fields=("job", "number")),
            models.UniqueConstraint(name="operator_name", fields=("job", "name")),
        )

    def __str__(self) -> str:
        return self.name


class Report(models.Model):
    """What a job's engine said when it was asked once (``analytics.model.topology.JobPoll``), in day partitions.

    ``payload`` is JSON (``analytics.model.plain``), zstd.
    """

    pk = models.CompositePrimaryKey("job_id", "at_ns")
    job = models.ForeignKey(Job, on_delete=models.DO_NOTHING, related_name="reports")
    at_ns = models.BigIntegerField()
    payload = models.BinaryField()

    class Meta:
        db_table = "jobs_report"


class Rates(models.Model):
    """What a job's operators did in the time up to ``at_ns`` (``webapp.jobs.reports.Measured``), in day partitions.

    ``payload`` is JSON (``analytics.model.plain``), zstd.
    """

    pk = models.CompositePrimaryKey("job_id", "at_ns")
    job = models.ForeignKey(Job, on_delete=models.DO_NOTHING, related_name="rates")
    at_ns = models.BigIntegerField()
    payload = models.BinaryField()

    class Meta:
        db_table = "jobs_rates"
