"""Registering jobs and giving their workers and operators job-wide numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction

from analytics.model import trace
from analytics.model.trace import Int32
from webapp.accounts.models import User
from webapp.analysis.anew import analyse_anew
from webapp.audit.services import Entry, record, record_refused
from webapp.jobs.models import Engine, Job, Operator, Role, Worker
from webapp.jobs.policies import may

SETTING_BOUNDS = {
    "window_ns": (1_000_000, 3_600_000_000_000),
    "lateness_ns": (0, 3_600_000_000_000),
    "gap_horizon_ns": (0, 3_600_000_000_000),
}
"""A job's analysis settings and between which lengths each may be."""


class TooManyNamesError(ValueError):
    """A job reported more distinct worker or operator names than any real job has."""


@dataclass(frozen=True, eq=False)
class Numbering:
    """For each position in a batch's name tables, the job-wide number."""

    workers: Int32
    operators: Int32


def ensure_job(name: str, engine: Engine = Engine.OTHER, engine_job_id: str = "") -> Job:
    """The job of this name, registered now if it is new."""
    job, _ = Job.objects.get_or_create(name=name, defaults={"engine": engine, "engine_job_id": engine_job_id})
    return job


@transaction.atomic
def change_settings(actor: User, job: Job, values: Mapping[str, int]) -> Job:
    """Set some of ``SETTING_BOUNDS`` of a job, whose row the caller has locked.

    Another lateness or horizon counts from now on; another window width has everything analysed again.

    Raises
    ------
    PermissionDenied
        Unless the actor is an operator of the job.
    ValidationError
        If a length is not within its bounds.
    """
    entry = Entry(actor, "job.settings", "job", job.pk, job.pk, job.name, detail=dict(values))
    if not may(actor, job, Role.OPERATOR):
        record_refused(entry)
        raise PermissionDenied("only an operator of the job changes its settings")
    wrong = {
        name: f"expected {low} to {high} ns"
        for name, (low, high) in SETTING_BOUNDS.items()
        if name in values and not low <= values[name] <= high
    }
    if wrong:
        raise ValidationError(wrong)
    width_before = job.window_ns
    for name in SETTING_BOUNDS.keys() & values.keys():
        setattr(job, name, values[name])
    job.save(update_fields=list(SETTING_BOUNDS))
    record(entry)
    if job.window_ns != width_before:
        analyse_anew(job)
    return job


@transaction.atomic
def number_names(
    job: Job, workers: Sequence[trace.Worker], operators: Sequence[str], first_seen_ns: int | None
) -> Numbering:
    """Give each name its number in the job; new names get the next ones. The caller holds the job's row lock.

    A worker whose source did not report its life is taken to be added when the store first sees it: at the
    batch's first record, unless this is the job's first batch (then it lives from the job's first record).
    """
    added_at = first_seen_ns if job.first_ns is not None else None
    known = {worker.name: worker for worker in job.workers.all()}
    lives = {worker.number: life(worker) for worker in known.values()}
    for name, reported in {worker.name: worker for worker in workers}.items():
        if (row := known.get(name)) is None:
            born = reported.alive_from_ns if reported.alive_from_ns is not None else added_at
            row = Worker(job=job, number=len(known), name=name, host=reported.host, alive_from_ns=born)
            known[name] = row
        if reported.alive_from_ns is not None:
            # A restarted application brings workers of the same name: their lives become one.
            born = row.alive_from_ns
            row.alive_from_ns = reported.alive_from_ns if born is None else min(born, reported.alive_from_ns)
            row.alive_until_ns = reported.alive_until_ns
        elif reported.alive_until_ns is not None:
            row.alive_until_ns = reported.alive_until_ns
    _refuse_above_limit(job, "workers", len(known))
    seen = [known[worker.name] for worker in workers]
    changed = [row for row in set_of(seen) if row.pk and lives[row.number] != life(row)]
    Worker.objects.bulk_create([row for row in set_of(seen) if row.pk is None])
    Worker.objects.bulk_update(changed, ["alive_from_ns", "alive_until_ns"])
    known_operators = dict(job.operators.values_list("name", "number"))
    fresh = [name for name in dict.fromkeys(operators) if name not in known_operators]
    _refuse_above_limit(job, "operators", len(known_operators) + len(fresh))
    rows = [Operator(job=job, number=len(known_operators) + i, name=name) for i, name in enumerate(fresh)]
    Operator.objects.bulk_create(rows)
    known_operators |= {row.name: row.number for row in rows}
    return Numbering(
        np.array([row.number for row in seen], np.int32),
        np.array([known_operators[name] for name in operators], np.int32),
    )


def life(row: Worker) -> tuple[int | None, int | None]:
    """When a worker was alive, as far as its source told."""
    return row.alive_from_ns, row.alive_until_ns


def set_of(rows: Sequence[Worker]) -> list[Worker]:
    """Each row once, in the order first seen (rows without a key cannot be hashed)."""
    return list({row.number: row for row in rows}.values())


def _refuse_above_limit(job: Job, what: str, count: int) -> None:
    most = settings.WEIR_MAX_NAMES_PER_JOB  # above it the names are surely data, not names
    if count > most:
        raise TooManyNamesError(f"job {job.name} would have {count} {what}, more than the {most} it may")
