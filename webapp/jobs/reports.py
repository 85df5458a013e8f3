"""What engines say about jobs, as it is stored: every answer for a while, and the rates made of them for longer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from analytics.model import packed
from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import RateWindow
from analytics.model.topology import JobPoll, Topology
from webapp.jobs.models import Job, Rates, Report
from webapp.ops.partitions import ensure_days

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Measured:
    """A job as it ran, and what its operators did."""

    topology: Topology
    window: RateWindow


def pack(value: JobPoll | Measured) -> bytes:
    """As it is stored."""
    return packed.pack(to_plain(value))


def unpack(kind: type[_Kind], payload: bytes | memoryview) -> _Kind:
    """What `pack` was given.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If it is something else.
    """
    value: _Kind = from_plain(kind, packed.unpack(payload))
    return value


def keep_report(job: Job, poll: JobPoll) -> None:
    """Store an answer; one of the same moment is kept as it is."""
    _keep(Report, job, poll.at_ns, poll)


def keep_rates(job: Job, measured: Measured) -> None:
    """Store rates under the end of their window; ones of the same moment are kept as they are."""
    _keep(Rates, job, measured.window.end_ns, measured)


def keep_all_rates(job: Job, measured: Sequence[Measured]) -> None:
    """Store rates of many windows, as :func:`keep_rates` does those of one."""
    rows = [Rates(job=job, at_ns=item.window.end_ns, payload=pack(item)) for item in measured]
    ensure_days(Rates._meta.db_table, [row.at_ns for row in rows])
    Rates.objects.bulk_create(rows, batch_size=1_000, ignore_conflicts=True)


def _keep(model: Any, job: Job, at_ns: int, value: JobPoll | Measured) -> None:
    ensure_days(model._meta.db_table, [at_ns])
    model.objects.bulk_create([model(job=job, at_ns=at_ns, payload=pack(value))], ignore_conflicts=True)


def reports(job: Job, from_ns: int, to_ns: int) -> list[JobPoll]:
    """The answers from ``from_ns`` to ``to_ns``, both included, in their order."""
    return _of(JobPoll, Report.objects.filter(job=job, at_ns__range=(from_ns, to_ns)))


def rates(job: Job, from_ns: int, to_ns: int) -> list[Measured]:
    """The rates of windows that end from ``from_ns`` to ``to_ns``, both included, in their order."""
    return _of(Measured, Rates.objects.filter(job=job, at_ns__range=(from_ns, to_ns)))


def newest_report(job: Job) -> JobPoll | None:
    """The last answer; None if the job's engine was never asked."""
    return next(iter(_of(JobPoll, Report.objects.filter(job=job).order_by("-at_ns")[:1])), None)


def newest_rates(job: Job) -> Measured | None:
    """The last rates; None if there are none."""
    return next(iter(_of(Measured, Rates.objects.filter(job=job).order_by("-at_ns")[:1])), None)


def _of(kind: type[_Kind], rows: Any) -> list[_Kind]:
    ordered: Iterable[Any] = rows if rows.query.order_by else rows.order_by("at_ns")
    return [unpack(kind, row.payload) for row in ordered]
