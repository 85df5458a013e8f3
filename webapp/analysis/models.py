"""Windows that wait for analysis, the runs over them, and what they found."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from webapp.jobs.models import Job


class RunState(models.TextChoices):
    """Where a run stands."""

    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"


class Run(models.Model):
    """One Spark job over the closed windows of all jobs. Its rows and its state are written together."""

    algorithm_version = models.IntegerField()
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.RUNNING)
    started_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(auto_now_add=True)
    worker = models.CharField(max_length=200, blank=True)
    windows_total = models.IntegerField(default=0)
    windows_done = models.IntegerField(default=0)
    record_count = models.BigIntegerField(default=0)
    error = models.TextField(blank=True)

    class Meta:
        indexes = (
            # the page's progress bar and the claim's look for live runs
            models.Index(name="run_live", fields=("state",), condition=models.Q(state="running")),
        )


class PendingRange(models.Model):
    """Time whose windows must be analysed (again). ``run`` is who works on it now, if anyone.

    ``attempts`` counts the runs that failed on it.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="pending_ranges")
    from_ns = models.BigIntegerField()
    to_ns = models.BigIntegerField()
    not_before = models.DateTimeField()
    attempts = models.IntegerField(default=0)
    run = models.ForeignKey(Run, null=True, on_delete=models.SET_NULL, related_name="ranges")


class Window(models.Model):
    """Result of one window of one job (``analytics.model.results.WindowSummary``), in day partitions.

    Arrays that belong together have one length: ``activity_*`` are indexed by activity code, ``worker_*``,
    ``operator_*`` and ``channel_*`` by position.
    """

    pk = models.CompositePrimaryKey("job_id", "start_ns")
    job = models.ForeignKey(Job, on_delete=models.DO_NOTHING, related_name="windows")
    start_ns = models.BigIntegerField()
    width_ns = models.BigIntegerField()
    effective_start_ns = models.BigIntegerField()
    effective_end_ns = models.BigIntegerField()
    status = models.CharField(max_length=20)
    reason = models.TextField()
    log10_paths = models.FloatField()
    cp_total = models.FloatField()
    record_count = models.BigIntegerField()
    run_id = models.BigIntegerField()
    activity_cp = ArrayField(models.FloatField())
    activity_conventional = ArrayField(models.FloatField())
    worker_ids = ArrayField(models.IntegerField())
    worker_cp = ArrayField(models.FloatField())
    worker_conventional = ArrayField(models.FloatField())
    operator_ids = ArrayField(models.IntegerField())
    operator_types = ArrayField(models.SmallIntegerField())
    operator_cp = ArrayField(models.FloatField())
    operator_conventional = ArrayField(models.FloatField())
    operator_workers = ArrayField(models.IntegerField())
    channel_src = ArrayField(models.IntegerField())
    channel_dst = ArrayField(models.IntegerField())
    channel_types = ArrayField(models.SmallIntegerField())
    channel_cp = ArrayField(models.FloatField())
    channel_conventional = ArrayField(models.FloatField())

    class Meta:
        db_table = "analysis_window"


class TimelineState(models.TextChoices):
    """Where a requested timeline stands."""

    QUEUED = "queued", "queued"
    READY = "ready", "ready"
    FAILED = "failed", "failed"


class Timeline(models.Model):
    """Every edge of one window, computed when a person opens it and kept while the window's result stands."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="timelines")
    start_ns = models.BigIntegerField()
    run_id = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=TimelineState.choices, default=TimelineState.QUEUED)
    requested_at = models.DateTimeField(auto_now=True)
    payload = models.BinaryField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="timeline_once", fields=("job", "start_ns")),)


class QuestionKind(models.TextChoices):
    """What a person can ask about a range of windows."""

    WHY = "why", "Why was it waiting?"
    WHAT_IF = "what_if", "What if it were faster?"
    RANKING = "ranking", "What is worth optimising?"
    COMPARE = "compare", "What changed?"
    TOGETHER = "together", "Which workers belong together?"
    TRUST = "trust", "Is the trace trustworthy?"


class Question(models.Model):
    """What was asked about a job, and the answer (``analytics.model.answers``), kept while its windows stand.

    ``params`` say what was asked; a range that moves with the clock stands there by its name, so that asking again
    replaces the answer. ``basis`` are the windows asked about, one entry a range (``webapp.analysis.basis``), and
    ``version`` tells whether they are still the same. While state is ``queued`` the payload is that of before.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="questions")
    kind = models.CharField(max_length=10, choices=QuestionKind.choices)
    params = models.JSONField()
    basis = models.JSONField()
    version = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=TimelineState.choices, default=TimelineState.QUEUED)
    requested_at = models.DateTimeField()
    payload = models.JSONField(null=True)
    answered_basis = models.JSONField(null=True)
    answered_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(name="question_once", fields=("job", "kind", "params")),)
        indexes = (models.Index(name="question_age", fields=("job", "requested_at")),)  # forgetting old ones


class Standing(models.Model):
    """What limits a job now, worked out after its results changed, so that a list of all jobs is one query.

    ``activity`` is null if nothing could be told. ``sparkline`` is the CP of that activity per minute of the hour
    before ``computed_at`` (null: no result in that minute).
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="standing")
    outdated_at = models.DateTimeField(null=True)
    computed_at = models.DateTimeField(null=True)
    activity = models.SmallIntegerField(null=True)
    operator = models.CharField(max_length=500, blank=True)
    cp = models.FloatField(null=True)
    conventional = models.FloatField(null=True)
    unknown_cp = models.FloatField(null=True)
    input_rows_per_s = models.FloatField(null=True)
    sparkline = ArrayField(models.FloatField(null=True), default=list)

    class Meta:
        indexes = (
            models.Index(
                name="standing_outdated",
                fields=("outdated_at",),
                condition=models.Q(outdated_at__isnull=False),
            ),
        )


class ScalingSetup(models.Model):
    """How Weir advises a job on parallelism; a job without one is advised by the defaults.

    ``settings`` are what differs from the policy's defaults, ``targets_per_s`` what sources should deliver, by
    operator name. ``memory`` is what the policy remembers (``analytics.scaling.advice``) as JSON text: a JSON
    column does not keep every float as it is. ``seen_ns`` is the end of the newest rates it was shown, and
    ``error`` why they gave no advice, if so. ``revision`` rises with every change: whoever computed with an older
    one writes nothing.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, primary_key=True, related_name="scaling_setup")
    policy = models.CharField(max_length=40, default="ds2")
    settings = models.JSONField(default=dict)
    targets_per_s = models.JSONField(default=dict)
    enabled = models.BooleanField(default=True)
    memory = models.TextField(null=True)
    seen_ns = models.BigIntegerField(null=True)
    error = models.TextField(blank=True)
    revision = models.BigIntegerField(default=0)


class Recommendation(models.Model):
    """What a policy says about a job: one current row a job, and those that said something else before.

    ``changes`` and ``undecided`` are as ``analytics.scaling.advice.JobAdvice`` has them; with policy, version and
    ``move`` they tell whether a recommendation says something new. ``made_at`` is when it was first said;
    ``confirmed_at``, the window and ``payload`` (``{"evidence", "action"}``, ``analytics.model.packed``) are of the
    last time.
    """

    job = models.ForeignKey(
        Job, on_delete=models.CASCADE, related_name="recommendations", db_index=False
    )  # its history's index does
    policy = models.CharField(max_length=40)
    version = models.IntegerField()
    window_start_ns = models.BigIntegerField()
    window_end_ns = models.BigIntegerField()
    made_at = models.DateTimeField()
    confirmed_at = models.DateTimeField()
    move = models.CharField(max_length=20)
    changes = models.JSONField()
    undecided = models.JSONField()
    why = models.TextField()
    payload = models.BinaryField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                name="recommendation_current", fields=("job",), condition=models.Q(superseded_at=None)
            ),
        )
        indexes = (models.Index(name="recommendation_history", fields=("job", "-made_at")),)

    def __str__(self) -> str:
        return f"{self.policy} for {self.job}: {self.move}"


class Replay(models.Model):
    """A replay of the policy lab (``webapp.analysis.policy_lab``): what was asked for, and the answer.

    ``key`` says what is replayed. ``version`` and ``newest_ns``, the end of the newest rates, tell whether it is
    still the same. While state is ``queued`` the payload is that of before. Without a job it is that of a published
    dataflow.
    """

    key = models.CharField(max_length=200, unique=True)
    job = models.ForeignKey(Job, null=True, on_delete=models.CASCADE, related_name="replays")
    params = models.JSONField()
    version = models.TextField()
    newest_ns = models.BigIntegerField(null=True)
    state = models.CharField(max_length=10, choices=TimelineState.choices, default=TimelineState.QUEUED)
    requested_at = models.DateTimeField()
    payload = models.JSONField(null=True)
    answered_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True)

    def __str__(self) -> str:
        return self.key
