"""What jobs reported, as it is stored."""

from django.db import models

from webapp.accounts.models import Token, User
from webapp.jobs.models import Job
from webapp.telemetry.uploads.models import Upload  # noqa: F401  (so that Django finds it)


class Batch(models.Model):
    """One accepted delivery. The digest of its content makes a second delivery a no-op."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="batches")
    digest = models.BinaryField(max_length=32)
    received_at = models.DateTimeField(auto_now_add=True)
    record_count = models.IntegerField()
    metric_count = models.IntegerField()
    diagnostics = models.JSONField(default=list)

    class Meta:
        constraints = (models.UniqueConstraint(name="batch_once", fields=("job", "digest")),)
        indexes = (models.Index(name="batch_recent", fields=("job", "-received_at")),)  # data tab


class Segment(models.Model):
    """The records of one batch as an Arrow stream (``analytics.model.segments``), with their time range.

    The overlap index (GiST on job and range) and the column's external storage are set in the migration.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="segments", db_index=False)
    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="segments")
    min_ns = models.BigIntegerField()
    max_ns = models.BigIntegerField()
    record_count = models.IntegerField()
    schema_version = models.SmallIntegerField()
    payload = models.BinaryField()


class OpenHalves(models.Model):
    """Message ends that may still find another end, within the job's gap horizon.

    ``met`` are those of them that already have one: a message may have several receivers.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="open_halves")
    halves = models.JSONField(default=list)
    met = models.JSONField(default=list)


class Series(models.Model):
    """A metric with its labels. ``digest`` is of both (``metric_store.digest_of_series``), short enough to index.

    ``kind`` is an ``analytics.model.samples.Kind``. ``ended_ns`` is when its sender last said that it ended.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="series")
    name = models.CharField(max_length=200)
    labels = models.JSONField(default=dict)
    digest = models.BinaryField(max_length=16)
    kind = models.CharField(max_length=10, default="unknown")
    ended_ns = models.BigIntegerField(null=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="series_digest_once", fields=("job", "digest")),)
        indexes = (models.Index(name="series_name", fields=("job", "name")),)  # charts ask by name


class MetricSample(models.Model):
    """One number of a series at one time, in day partitions made by ``webapp.ops.partitions``."""

    pk = models.CompositePrimaryKey("series_id", "at_ns")
    series = models.ForeignKey(
        Series, on_delete=models.DO_NOTHING, related_name="samples", db_constraint=False
    )
    at_ns = models.BigIntegerField()
    value = models.FloatField()

    class Meta:
        db_table = "telemetry_metricsample"


class Rollup(models.Model):
    """What a series did in one minute or one hour that begins at ``at_ns``, in day partitions like the samples."""

    pk = models.CompositePrimaryKey("series_id", "at_ns")
    series = models.ForeignKey(Series, on_delete=models.DO_NOTHING, related_name="+")
    at_ns = models.BigIntegerField()
    minimum = models.FloatField()
    maximum = models.FloatField()
    total = models.FloatField()
    count = models.IntegerField()
    last = models.FloatField()

    class Meta:
        abstract = True


class MinuteRollup(Rollup):
    """One minute."""

    class Meta:
        db_table = "telemetry_minuterollup"


class HourRollup(Rollup):
    """One hour."""

    class Meta:
        db_table = "telemetry_hourrollup"


class RollupDue(models.Model):
    """An hour of a job that got samples and must be rolled up (again) from ``not_before`` on."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="+")
    hour_ns = models.BigIntegerField()
    not_before = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(name="rollup_due_once", fields=("job", "hour_ns")),)
        indexes = (models.Index(name="rollup_due", fields=("not_before",)),)  # the task's look


class Refused(models.Model):
    """Something that was sent and not stored: its first bytes and why, for whoever sent it to see."""

    owner = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(Token, null=True, on_delete=models.SET_NULL, related_name="+")
    token_name = models.CharField(max_length=120)
    job_name = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=40)
    code = models.CharField(max_length=60)
    reason = models.CharField(max_length=1000)
    first_bytes = models.BinaryField()
    size_bytes = models.BigIntegerField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = (models.Index(name="refused_recent", fields=("owner", "-id")),)  # the owner's list


class Annotation(models.Model):
    """Something that happened to a job, such as a micro-batch."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="annotations")
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=200)
    label = models.CharField(max_length=500)
    start_ns = models.BigIntegerField()
    end_ns = models.BigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(name="annotation_once", fields=("job", "kind", "key")),)
        indexes = (models.Index(name="annotation_range", fields=("job", "start_ns")),)  # charts


class SourceKind(models.TextChoices):
    """What a source is."""

    SPARK_EVENT_LOG = "spark-event-log", "Spark event log"
    SPARK_EVENT_LOG_DIRECTORY = "spark-event-log-directory", "Directory of Spark event logs"
    FLINK = "flink", "Flink cluster (REST)"
    FLINK_JOB = "flink-job", "Job of a Flink cluster"
    OPENMETRICS = "openmetrics", "OpenMetrics endpoint"
    AUTOSCALER = "flink-autoscaler", "Flink autoscaler (its tables in PostgreSQL)"
    AUTOSCALER_JOB = "flink-autoscaler-job", "Job of a Flink autoscaler"


class Source(models.Model):
    """A place Weir reads by itself. ``state`` is the reader's own position, saved with what it read.

    ``identity`` tells a copy of a log from another log; the place that was found first is followed. A paused or
    removed source is not read, nor what was found there; it keeps its row, since the position in a log must outlive
    a removal: read from the start again, its records would be stored twice. ``interval_s`` is how often an
    OpenMetrics endpoint is scraped.
    """

    kind = models.CharField(max_length=40, choices=SourceKind.choices)
    location = models.CharField(max_length=1000, unique=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="children")
    job = models.ForeignKey(Job, null=True, on_delete=models.SET_NULL, related_name="sources")
    identity = models.CharField(max_length=300, blank=True)
    state = models.JSONField(null=True)
    finished = models.BooleanField(default=False)
    paused = models.BooleanField(default=False)
    removed_at = models.DateTimeField(null=True)
    interval_s = models.IntegerField(null=True)
    error = models.CharField(max_length=1000, blank=True)
    polled_at = models.DateTimeField(null=True)
    data_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.location}"
