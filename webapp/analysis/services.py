"""Marking time for analysis, claiming it, and writing what a run found in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from analytics.model.results import WindowSummary
from webapp.analysis import standings
from webapp.analysis.closing import closed_until_ns
from webapp.analysis.models import PendingRange, Run, RunState, Window
from webapp.jobs.models import Job
from webapp.ops import binary_copy
from webapp.ops.partitions import ensure_days

LEASE = timedelta(seconds=60)
"""A run that has not said anything for so long is dead, and its ranges are free again."""

MAX_WINDOWS_A_RUN = 10_000
"""Bounds what a run holds in memory and how long others wait for it; the rest waits for the next run."""

LONGEST_RETRY_S = 300


@dataclass(frozen=True, slots=True)
class JobWork:
    """Windows of one job to analyse: the half-open index ranges, and what the analysis needs to know."""

    job_id: int
    window_ns: int
    gap_horizon_ns: int
    first_ns: int
    last_ns: int
    index_ranges: tuple[tuple[int, int], ...]


def mark_pending(job: Job, from_ns: int, to_ns: int) -> None:
    """Have the windows that touch ``[from_ns, to_ns]`` analysed (again) as soon as they are closed."""
    PendingRange.objects.create(job=job, from_ns=from_ns, to_ns=to_ns, not_before=timezone.now())


def mark_for_settling(job: Job, from_ns: int, to_ns: int) -> None:
    """Have windows that late records *may* have changed analysed once more when the job's horizon has passed.

    Waiting collects many late records into one range, so that each window is computed again once, not with
    every batch. The caller holds the job's row lock.
    """
    now = timezone.now()
    later = PendingRange.objects.filter(job=job, run__isnull=True, not_before__gt=now, attempts=0)
    # A range that is being claimed at this moment is not waiting any more.
    waiting = later.select_for_update(skip_locked=True).first()
    if waiting is None:
        due = now + timedelta(seconds=job.gap_horizon_ns / 1e9)
        PendingRange.objects.create(job=job, from_ns=from_ns, to_ns=to_ns, not_before=due)
    else:
        waiting.from_ns, waiting.to_ns = min(waiting.from_ns, from_ns), max(waiting.to_ns, to_ns)
        waiting.save(update_fields=["from_ns", "to_ns"])


@transaction.atomic
def claim_work(algorithm_version: int, worker: str) -> tuple[Run, list[JobWork]] | None:
    """Start a run over all closed windows that wait, or None if there are none.

    A job that another live run works on is left alone, so that an older result never overwrites a newer
    one. Ranges that reach past a job's closed time are split: the open part keeps waiting.
    """
    with connection.cursor() as cursor:
        # One claim at a time: without it, a range that is committed between two looks is claimed twice.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('analysis.claim_work'))")
    _free_dead_runs()
    now = timezone.now()
    busy = PendingRange.objects.filter(run__isnull=False).values("job_id")
    ranges = (
        PendingRange.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(not_before__lte=now, run__isnull=True)
        .exclude(job_id__in=busy)
        .select_related("job")
        .order_by("job_id", "from_ns")
    )
    by_job: dict[Job, list[PendingRange]] = {}
    for item in ranges:
        by_job.setdefault(item.job, []).append(item)
    healthy = {job: items for job, items in by_job.items() if not any(item.attempts for item in items)}
    suspects = sorted(
        (job for job in by_job if job not in healthy), key=lambda job: by_job[job][0].not_before
    )
    # Jobs that failed are tried alone, so that a bad one takes no other down with it.
    for group in (healthy, *({job: by_job[job]} for job in suspects)):
        run = Run(algorithm_version=algorithm_version, worker=worker)
        share = max(1, MAX_WINDOWS_A_RUN // max(1, len(group)))
        parts = [
            _claim_job(run, job, items, closed_until_ns(job, now), share) for job, items in group.items()
        ]
        work = [part for part in parts if part is not None]
        if work:
            run.windows_total = sum(stop - start for part in work for start, stop in part.index_ranges)
            run.save(update_fields=["windows_total"])
            return run, work
    return None


def _free_dead_runs() -> None:
    dead = Run.objects.filter(state=RunState.RUNNING, heartbeat_at__lt=timezone.now() - LEASE)
    for run in dead.select_for_update(skip_locked=True):
        fail_run(run, "the worker stopped without a word")


def _claim_job(run: Run, job: Job, items: list[PendingRange], closed_ns: int, room: int) -> JobWork | None:
    """Take the closed part of a job's ranges for the run; None if nothing of them is closed."""
    assert job.first_ns is not None
    assert job.last_ns is not None
    indexes: list[tuple[int, int]] = []
    for item in items:
        start = item.from_ns // job.window_ns
        # A border belongs to both its windows: a change at the very start of a window touches the one before.
        start = max(start - (item.from_ns % job.window_ns == 0), job.first_ns // job.window_ns)
        stop = min(item.to_ns // job.window_ns + 1, closed_ns // job.window_ns)
        stop = min(stop, start + room - sum(b - a for a, b in indexes))
        if stop <= start:
            continue
        if run._state.adding:
            run.save()
        if item.to_ns > stop * job.window_ns:
            # One ns past the border, or it would stand for the window before it again.
            rest = stop * job.window_ns + 1
            PendingRange.objects.create(job=job, from_ns=rest, to_ns=item.to_ns, not_before=timezone.now())
            item.to_ns = stop * job.window_ns - 1
        item.run = run
        item.save(update_fields=["run", "to_ns"])
        indexes.append((start, stop))
    if not indexes:
        return None
    return JobWork(job.pk, job.window_ns, job.gap_horizon_ns, job.first_ns, job.last_ns, _union(indexes))


def _union(ranges: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return tuple(merged)


def release_runs_of(worker: str) -> int:
    """Give back what an earlier process of this worker left unfinished; the worker calls it when it starts."""
    left = list(Run.objects.filter(state=RunState.RUNNING, worker=worker))
    for run in left:
        fail_run(run, "the worker was restarted")
    return len(left)


def keep_alive(run: Run) -> None:
    """Say that the run's worker still works on it."""
    Run.objects.filter(pk=run.pk).update(heartbeat_at=timezone.now())


def finish_run(run: Run, work: Sequence[JobWork], results: Sequence[tuple[int, WindowSummary]]) -> None:
    """Write all rows of a run and its state in one transaction, replacing what these windows had.

    ``results`` are ``(job id, summary)`` pairs.

    Raises
    ------
    RunLostError
        If the run was given up meanwhile (its lease ended): nothing is written.
    """
    with transaction.atomic():
        live = Run.objects.select_for_update().filter(pk=run.pk, state=RunState.RUNNING)
        if not live.exists():
            raise RunLostError(f"run {run.pk} was given up before it finished")
        widths = {part.job_id: part.window_ns for part in work}
        _delete_windows(work)
        _insert_windows(run, widths, results)
        PendingRange.objects.filter(run=run).delete()
        standings.outdate([part.job_id for part in work])
        live.update(
            state=RunState.DONE,
            finished_at=timezone.now(),
            windows_done=F("windows_total"),
            record_count=sum(summary.record_count for _, summary in results),
        )


class RunLostError(RuntimeError):
    """Another worker may already have taken the run's ranges."""


def fail_run(run: Run, error: str) -> None:
    """Give the run's ranges back, at once the first time, then later each time, and keep why it failed."""
    with transaction.atomic():
        now = timezone.now()
        for item in PendingRange.objects.select_for_update().filter(run=run):
            item.attempts += 1
            item.not_before = now + timedelta(seconds=min(2**item.attempts - 2, LONGEST_RETRY_S))
            item.run = None
            item.save(update_fields=["attempts", "not_before", "run"])
        Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
            state=RunState.FAILED, finished_at=timezone.now(), error=error[:10_000]
        )


def _delete_windows(work: Sequence[JobWork]) -> None:
    with connection.cursor() as cursor:
        for part in work:
            for start, stop in part.index_ranges:
                cursor.execute(
                    "DELETE FROM analysis_window WHERE job_id = %s AND start_ns >= %s AND start_ns < %s",
                    [part.job_id, start * part.window_ns, stop * part.window_ns],
                )


_COLUMNS = (
    "job_id", "start_ns", "width_ns", "effective_start_ns", "effective_end_ns", "status", "reason",
    "log10_paths", "cp_total", "record_count", "run_id", "activity_cp", "activity_conventional",
    "worker_ids", "worker_cp", "worker_conventional", "operator_ids", "operator_types", "operator_cp",
    "operator_conventional", "operator_workers", "channel_src", "channel_dst", "channel_types",
    "channel_cp", "channel_conventional",
)  # fmt: skip


def _insert_windows(run: Run, widths: dict[int, int], results: Sequence[tuple[int, WindowSummary]]) -> None:
    starts = [summary.index * widths[job_id] for job_id, summary in results]
    ensure_days(Window._meta.db_table, starts)
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY analysis_window ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.write(binary_copy.HEADER)
        for start_ns, (job_id, summary) in zip(starts, results, strict=True):
            head = (job_id, start_ns, widths[job_id], summary.start_ns, summary.end_ns, summary.status.value)
            rest = (summary.reason, summary.log10_paths, summary.cp_total, summary.record_count, run.pk)
            arrays = (getattr(summary, name) for name in _COLUMNS[len(head) + len(rest) :])
            copy.write(binary_copy.row((*head, *rest, *arrays)))
        copy.write(binary_copy.TRAILER)
