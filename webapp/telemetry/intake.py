"""Deliveries that programs push: whose job they are for, whether they may, and storing all parts or none.

A delivery may hold telemetry of several jobs. Each is stored under the digest of the whole body, so a body sent
again changes nothing, and all are stored in one transaction: what was acknowledged is there, whatever crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.samples import MetricBatch
from analytics.model.trace import TraceBatch
from webapp.accounts.models import Token
from webapp.api.problems import ProblemError
from webapp.jobs.models import Job
from webapp.jobs.policies import visible_jobs
from webapp.jobs.services import TooManyNamesError, ensure_job
from webapp.ops.partitions import DAY_NS, TooManyDaysError
from webapp.telemetry import quarantine
from webapp.telemetry.plausible import AHEAD_NS
from webapp.telemetry.services import Stored, digest_of, store_batch, store_metrics

LIMIT_RETRY_S = 300
"""When everything in a delivery is above a limit of the job: it may be raised, or old series may be dropped."""

JOB_REFUSED = "job_refused"
OVER_LIMIT = ("too_many_series", "too_many_names")
LEFT_OUT = frozenset({"time_in_the_future", "longer_than_a_day", "older_than_kept", "too_many_series"})
"""Diagnostics of things that the store left out; a decoder says how many it could not use."""

T = TypeVar("T", TraceBatch, MetricBatch)


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """What a delivery has for one job: how many things its sender sent, how many the decoder lost, and the rest."""

    count: int
    lost: int
    batch: T


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a delivery: how many of its things were stored and not, and why not."""

    accepted: int
    rejected: int
    reasons: tuple[Diagnostic, ...]
    diagnostics: tuple[Diagnostic, ...]
    stored: Mapping[str, Stored]

    @property
    def complaint(self) -> str:
        """Why something was rejected, in one line; "" if nothing was."""
        return "; ".join(f"{item.code} ({item.count:,}): {item.example}" for item in self.reasons)[:2000]


@dataclass(frozen=True)
class Delivery:
    """A body that a token sent. ``kind`` says what it is, such as ``otlp-traces``."""

    token: Token
    kind: str
    body: bytes

    @cached_property
    def digest(self) -> bytes:
        """What tells this delivery from all others."""
        return digest_of(self.kind, self.body)

    def refused(self, code: str, reason: str, job_name: str = "") -> None:
        """Keep in quarantine that it, or what it has for a job, was refused."""
        quarantine.refuse(self.token, self.kind, code, reason, self.body, job_name)


def take_traces(delivery: Delivery, parts: Mapping[str, Part[TraceBatch]]) -> Outcome:
    """Store spans or activities, by the name of their job."""
    return _take(delivery, parts, store_batch)


def take_metrics(delivery: Delivery, parts: Mapping[str, Part[MetricBatch]]) -> Outcome:
    """Store metric samples, by the name of their job."""

    def store(job: Job, batch: MetricBatch, digest: bytes) -> Stored:
        return store_metrics(job, in_time(batch), digest)

    return _take(delivery, parts, store)


def _take(
    delivery: Delivery, parts: Mapping[str, Part[T]], store: Callable[[Job, T, bytes], Stored]
) -> Outcome:
    """All parts in one transaction, jobs in the order of their names so that no two deliveries wait in a circle."""
    kept: dict[str, Stored] = {}
    reasons: list[tuple[str, Diagnostic]] = []
    rejected = 0
    # One part alone needs no savepoint: its transaction is all there is to undo.
    with transaction.atomic() if len(parts) > 1 else nullcontext():
        for name in sorted(parts):
            part = parts[name]
            try:
                with transaction.atomic():
                    kept[name] = store(_job(delivery.token, name), part.batch, delivery.digest)
            except (PartRefusedError, TooManyNamesError, TooManyDaysError) as error:
                reasons.append((name, Diagnostic(_code(error), part.count, str(error))))
                rejected += part.count
                continue
            told = [item for item in kept[name].diagnostics if item.code in LEFT_OUT]
            rejected += min(part.count, part.lost + sum(item.count for item in told))
            if part.lost:
                told += part.batch.diagnostics
            reasons += [(name, item) for item in told]
    for name, item in reasons:
        delivery.refused(item.code, item.example, name)
    outcome = Outcome(
        accepted=sum(part.count for part in parts.values()) - rejected,
        rejected=rejected,
        reasons=merge(item for _, item in reasons),
        diagnostics=merge(item for stored in kept.values() for item in stored.diagnostics),
        stored=kept,
    )
    _check_something_stored(outcome)
    return outcome


def _check_something_stored(outcome: Outcome) -> None:
    """Nothing that may be stored is an error; nothing that can be read is for the answer's format to tell."""
    codes = {item.code for item in outcome.reasons}
    if outcome.accepted or not codes:
        return
    if codes <= set(OVER_LIMIT):
        raise ProblemError(429, codes.pop(), outcome.complaint, retry_after_s=LIMIT_RETRY_S)
    if codes == {JOB_REFUSED}:
        raise ProblemError(403, JOB_REFUSED, outcome.complaint)


class PartRefusedError(Exception):
    """The token may not store telemetry of this job."""


def _code(error: Exception) -> str:
    if isinstance(error, TooManyNamesError):
        return "too_many_names"
    return "too_many_days" if isinstance(error, TooManyDaysError) else JOB_REFUSED


def _job(token: Token, name: str) -> Job:
    """The job of this name, registered if it is new and the token may.

    Raises
    ------
    PartRefusedError
        If the token is for other jobs, its owner may not see this one, or there are as many jobs as there may be.
    """
    if not token.may_touch(name):
        raise PartRefusedError(f"this token may not send telemetry of job {name}")
    if (job := visible_jobs(token.owner).filter(name=name).first()) is not None:
        return job
    job = Job.objects.filter(name=name).first()
    if job is None:
        if Job.objects.count() >= settings.WEIR_MAX_JOBS:
            raise PartRefusedError(
                f"there are {settings.WEIR_MAX_JOBS} jobs already, as many as there may be"
            )
        return ensure_job(name)
    if not visible_jobs(token.owner).filter(pk=job.pk).exists():  # a neighbour may have just made it
        raise PartRefusedError(f"this token may not send telemetry of job {name}")
    return job


def job_name_for(token: Token, told: str) -> str:
    """The job that telemetry is of: what it says itself, else the only job of its token; "" if neither tells.

    A name is cut to what can be stored, so that a long one is one job and not an error.
    """
    name = told.encode("utf-8", "replace").decode().replace("\0", "?").strip()[:200]
    return name or (token.jobs[0] if len(token.jobs) == 1 else "")


def in_time(batch: MetricBatch) -> MetricBatch:
    """The samples that can be true and would be kept: others would make partitions that nobody needs."""
    now_ns = int(timezone.now().timestamp() * 1e9)
    future = batch.at_ns > now_ns + AHEAD_NS
    old = batch.at_ns < now_ns - settings.WEIR_KEEP_RAW_DAYS * DAY_NS
    told = [
        Diagnostic(code, int(np.count_nonzero(wrong)), f"a sample at {batch.at_ns[wrong][0]} ns")
        for code, wrong in (("time_in_the_future", future), ("older_than_kept", old))
        if wrong.any()
    ]
    if not told:
        return batch
    keep = ~(future | old)
    columns = {
        name: getattr(batch, name)[keep] for name in ("position", "at_ns", "value", "start_ns", "stale")
    }
    return replace(batch, **columns, diagnostics=(*batch.diagnostics, *told))
