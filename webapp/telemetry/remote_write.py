"""Prometheus remote write requests: by job, decoded, stored.

The job is the label ``job`` of a series, as Prometheus sets it, else the only job of the token. The samples of
series without either are rejected; the others are stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from analytics.decode.limits import Limits
from analytics.decode.remote_write import decode_remote_write
from analytics.model.diagnostics import Diagnostic
from analytics.model.samples import MetricBatch, Numbered, Numbering, Series
from analytics.model.trace import Int64
from webapp.accounts.models import Token
from webapp.telemetry.intake import Delivery, Part, job_name_for, take_metrics
from webapp.telemetry.numbered import Kept

KIND = "remote-write"
MAX_SAMPLES = 1_000_000

_ALIKE = Kept(1)
"""Of each series, the number of the first that tells the same job."""

_FIRST: WeakKeyDictionary[Numbering, dict[str, int]] = WeakKeyDictionary()
"""The number of the first series that tells a job."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of a request; ``complaint`` is "" if all of it was stored."""

    samples: int
    histograms: int
    rejected: int
    complaint: str


def take_write(delivery: Delivery, version: int, max_bytes: int) -> Written:
    """Store the samples of a request of this version of the protocol.

    Raises
    ------
    UnreadableFileError
        If the body is damaged, ``TooLargeError`` if it is too large; ``ProblemError`` if nothing may be stored.
    """
    batch = decode_remote_write(delivery.body, version, Limits(max_bytes, MAX_SAMPLES))
    parts, homeless = by_job(delivery.token, batch)
    outcome = take_metrics(delivery, parts)
    told = list(outcome.reasons)
    if batch.rejected_count:
        told += batch.diagnostics
    if homeless:
        told.append(Diagnostic("no_job", homeless, "a series has no label job, nor is the token for one job"))
    for item in told[len(outcome.reasons) :]:
        delivery.refused(item.code, item.example)
    rejected = outcome.rejected + batch.rejected_count + homeless
    words = "; ".join(f"{item.code} ({item.count:,}): {item.example}" for item in told)[:2000]
    # Of a native histogram two samples are kept, its count and its sum.
    plain = max(0, outcome.accepted - 2 * batch.histogram_count)
    return Written(plain, batch.histogram_count, rejected, words if rejected else "")


def by_job(token: Token, batch: MetricBatch) -> tuple[dict[str, Part[MetricBatch]], int]:
    """The samples of each job, and how many belong to none."""
    told, which = _jobs_told(batch)
    names = [job_name_for(token, said) for said in told]
    jobs = {name: number for number, name in enumerate(dict.fromkeys(names))}
    numbers = np.array([jobs[name] for name in names], np.int64)[which][batch.position]
    order = np.argsort(numbers, kind="stable") if len(jobs) > 1 else np.arange(len(numbers))
    cuts = np.searchsorted(numbers[order], np.arange(len(jobs) + 1))
    parts = {}
    homeless = 0
    for name, number in jobs.items():
        at = order[cuts[number] : cuts[number + 1]]
        if not name:
            homeless = len(at)
        elif len(at):
            parts[name] = Part(len(at), 0, _taken(batch, at))
    return parts, homeless


def _jobs_told(batch: MetricBatch) -> tuple[list[str], Int64]:
    """The jobs that the series tell, and which of them each tells."""
    if batch.numbered is None:
        told = [_job_said(series) for series in batch.series]
        places = {said: number for number, said in enumerate(dict.fromkeys(told))}
        return list(places), np.array([places[said] for said in told], np.int64)
    numbering, numbers = batch.numbered
    alike = _ALIKE.get(batch.numbered)[0]
    new = np.flatnonzero(alike < 0)
    if len(new):
        first = _FIRST.setdefault(numbering, {})
        alike[new] = [first.setdefault(_job_said(batch.series[at]), int(numbers[at])) for at in new.tolist()]
        _ALIKE.keep(Numbered(numbering, numbers[new]), alike[new])
    if (alike == alike[:1]).all():  # nearly always; sorting costs more than all else here
        used, which = alike[:1], np.zeros(len(alike), np.int64)
    else:
        used, which = np.unique(alike, return_inverse=True)
    return [_job_said(numbering.series[number]) for number in used.tolist()], which


def _job_said(series: Series) -> str:
    for name, value in series.labels:
        if name == "job":
            return value
    return ""


def _taken(batch: MetricBatch, at: np.typing.NDArray[np.intp]) -> MetricBatch:
    """Some of the samples; what was rejected and why is told with the whole."""
    columns = {name: getattr(batch, name)[at] for name in ("position", "at_ns", "value", "start_ns", "stale")}
    return replace(batch, **columns, rejected_count=0, histogram_count=0, diagnostics=())
