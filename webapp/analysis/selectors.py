"""What the pages ask about results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from analytics.model.activity import ActivityType
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import WindowStatus
from webapp.analysis import shares
from webapp.analysis.closing import closed_until_ns
from webapp.analysis.models import PendingRange, Run, RunState, Window
from webapp.analysis.shares import Coverage, Share, Steps
from webapp.jobs.models import Job, Worker
from webapp.jobs.policies import Actor, visible_jobs
from webapp.telemetry.models import Annotation, Batch, MetricSample, Segment, Source


@dataclass(frozen=True, slots=True)
class Limiter:
    """What limits a job most: the activity type with the highest CP, and the operator that has most of it.

    ``operator`` is "" when the type belongs to no operator (driver scheduling, messages, unknown).
    """

    activity: ActivityType
    operator: str
    cp: float
    conventional: float


@dataclass(frozen=True, eq=False)
class Limits:
    """The four summaries of a job over a range, with the names behind their keys."""

    job: Job
    coverage: Coverage
    activities: list[Share]
    workers: list[Share]
    operators: list[Share]
    operator_processing: list[Share]
    channels: list[Share]
    worker_names: dict[int, str]
    worker_hosts: dict[int, str]
    operator_names: dict[int, str]
    limiter: Limiter | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The run that works now (None: idle), and how many ranges still wait."""

    windows_done: int
    windows_total: int
    started_at: datetime


def job(actor: Actor, job_id: int) -> Job | None:
    """The job, or None if there is none that this person may see."""
    return visible_jobs(actor).filter(pk=job_id).first()


def limits(job: Job, from_ns: int, to_ns: int) -> Limits:
    """The four summaries over ``[from_ns, to_ns]``."""
    cover = shares.coverage(job, Steps.over(from_ns, to_ns, job.window_ns))
    activities = shares.activity_shares(job, cover)
    operators = shares.operator_shares(job, cover)
    workers = list(job.workers.values_list("number", "name", "host"))
    operator_names = dict(job.operators.values_list("number", "name"))
    return Limits(
        job=job,
        coverage=cover,
        activities=activities,
        workers=shares.worker_shares(job, cover),
        operators=operators,
        operator_processing=shares.operator_processing(job, cover),
        channels=shares.channel_shares(job, cover),
        worker_names={number: name for number, name, _ in workers},
        worker_hosts={number: host for number, _, host in workers},
        operator_names=operator_names,
        limiter=limiter_of(activities, operators, operator_names),
    )


def limiter_of(activities: list[Share], operators: list[Share], names: dict[int, str]) -> Limiter | None:
    """The activity type with the highest CP and, if operators ran it, the one with most of that CP."""
    top = max((share for share in activities if share.cp > 0), key=lambda share: share.cp, default=None)
    if top is None:
        return None
    code = top.key[0]
    ran = [share for share in operators if share.key[1] == code and share.cp > 0]
    if not ran:
        return Limiter(ActivityType(code), "", top.cp, top.conventional)
    first = ran[0]
    return Limiter(ActivityType(code), names.get(first.key[0], "?"), first.cp, first.conventional)


def latest_metric(job: Job, name: str, since_ns: int) -> float | None:
    """Sum over a metric's series of their newest value since ``since_ns``; None if nothing was reported."""
    newest = (
        MetricSample.objects.filter(series__job=job, series__name=name, at_ns__gte=since_ns)
        .order_by("series_id", "-at_ns")
        .distinct("series_id")
        .values_list("value", flat=True)
    )
    values = list(newest)
    return sum(values) if values else None


def progress() -> Progress | None:
    """The run under way, if any."""
    run = Run.objects.filter(state=RunState.RUNNING).order_by("-started_at").first()
    return Progress(run.windows_done, run.windows_total, run.started_at) if run else None


def waiting_since(job: Job) -> datetime | None:
    """Since when the oldest range that is due for analysis waits."""
    due = _due(job)
    return due.order_by("not_before").values_list("not_before", flat=True).first()


def window_strip(job: Job, from_ns: int, to_ns: int) -> list[tuple[int, str, float, str]]:
    """For each window of the range ``(start_ns, status, CP of its top activity, that activity's label)``."""
    rows = Window.objects.filter(job=job, start_ns__gte=from_ns, start_ns__lt=to_ns).order_by("start_ns")
    strip = []
    for start_ns, status, cp in rows.values_list("start_ns", "status", "activity_cp"):
        code = max(range(1, len(cp)), key=lambda c: cp[c])
        strip.append((start_ns, status, cp[code], ActivityType(code).label))
    return strip


def window(job: Job, start_ns: int) -> Window | None:
    """The stored result of one window."""
    return Window.objects.filter(job=job, start_ns=start_ns).first()


def newest_window_ns(job: Job) -> int | None:
    """Start of the newest analysed window."""
    return Window.objects.filter(job=job).order_by("-start_ns").values_list("start_ns", flat=True).first()


def source_error(job: Job) -> str:
    """Why a source of the job cannot be read, or ""."""
    errors = Source.objects.filter(job=job).exclude(error="").values_list("error", flat=True)
    return errors.first() or ""


def ranges_waiting(job: Job) -> int:
    """How many ranges of the job wait for analysis although they are due."""
    return _due(job).count()


def _due(job: Job) -> QuerySet[PendingRange]:
    """Ranges that could be analysed now: time that is still open waits for nobody."""
    now = timezone.now()
    waiting = PendingRange.objects.filter(job=job, run__isnull=True, not_before__lte=now)
    return waiting.none() if job.last_ns is None else waiting.filter(from_ns__lt=closed_until_ns(job, now))


MAX_MARKS = 300


def micro_batches(job: Job, from_ns: int, to_ns: int) -> list[tuple[int, str]]:
    """Start (ns) and words of the micro-batches that began in the range; none if there are too many to draw."""
    rows = Annotation.objects.filter(job=job, kind="micro_batch", start_ns__gte=from_ns, start_ns__lt=to_ns)
    found = list(rows.order_by("start_ns").values_list("start_ns", "label")[: MAX_MARKS + 1])
    return [] if len(found) > MAX_MARKS else found


def nearest_window_ns(job: Job, at_ns: int | None) -> int | None:
    """Start of the window with a result nearest to ``at_ns``: that one, else the next, else the last before.

    Without ``at_ns`` the newest whose critical paths are known, else the newest of all.
    """
    windows = Window.objects.filter(job=job).values_list("start_ns", flat=True)
    if at_ns is None:
        found = windows.filter(status=WindowStatus.OK).order_by("-start_ns").first()
    else:
        found = windows.filter(start_ns__gte=at_ns).order_by("start_ns").first()
    return found if found is not None else newest_window_ns(job)


def workers(job: Job) -> list[Worker]:
    """The workers of a job by number."""
    return list(job.workers.order_by("number"))


def operators(job: Job) -> dict[int, str]:
    """The names of a job's operators by number."""
    return dict(job.operators.values_list("number", "name"))


def reading_diagnostics(job: Job, from_ns: int, to_ns: int) -> tuple[Diagnostic, ...]:
    """What was odd about the deliveries whose records lie in the range."""
    within = Segment.objects.filter(job=job, min_ns__lte=to_ns, max_ns__gte=from_ns)
    rows = Batch.objects.filter(pk__in=within.values("batch_id")).exclude(diagnostics=[])
    found = rows.values_list("diagnostics", flat=True)
    return merge(Diagnostic(**item) for items in found for item in items)
