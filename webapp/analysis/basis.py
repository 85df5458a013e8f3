"""What an answer rests on: which windows of a range, how many of how many, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from django.db.models import Count, Max, QuerySet, Sum

from analytics.model.results import WindowStatus, WindowSummary
from webapp.analysis.models import Window
from webapp.jobs.models import Job


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one answer may rest on: windows, and records in them."""

    windows: int
    records: int


@dataclass(frozen=True, slots=True)
class Basis:
    """The newest ``used`` of a range's ``of`` windows with records: those that start in ``[from_ns, to_ns)``."""

    from_ns: int
    to_ns: int
    used: int
    of: int

    def to_json(self) -> dict[str, int]:
        """As it is stored with an answer."""
        return asdict(self)

    @staticmethod
    def of_json(payload: dict[str, Any]) -> Basis:
        """The inverse of `to_json`."""
        return Basis(**payload)


def _with_records(job: Job, from_ns: int, to_ns: int) -> QuerySet[Window]:
    """The windows that start in ``[from_ns, to_ns)``, without those of silence: nothing can be asked about them."""
    return Window.objects.filter(job=job, start_ns__gte=from_ns, start_ns__lt=to_ns, record_count__gt=0)


def choose(job: Job, from_ns: int, to_ns: int, budget: Budget) -> Basis:
    """The newest windows with records of ``[from_ns, to_ns)`` that fit the budget; at least one if there is any."""
    first = from_ns // job.window_ns * job.window_ns
    rows = _with_records(job, first, to_ns)
    newest = rows.order_by("-start_ns").values_list("start_ns", "record_count")[: budget.windows]
    oldest_ns, last_ns, used, records = to_ns, to_ns, 0, 0
    for start_ns, count in newest:
        records += count
        if used and records > budget.records:
            break
        last_ns = start_ns if not used else last_ns
        oldest_ns, used = start_ns, used + 1
    return Basis(oldest_ns, last_ns + job.window_ns if used else to_ns, used, rows.count())


def around(job: Job, at_ns: int, reach_ns: int, budget: Budget) -> Basis:
    """The windows around a time, no further than the reach and the budget, half of it on either side."""
    half = Budget(max(budget.windows // 2, 1), budget.records // 2)
    middle = at_ns // job.window_ns * job.window_ns
    before = choose(job, at_ns - reach_ns, middle + job.window_ns, half)
    rows = _with_records(job, middle + job.window_ns, at_ns + reach_ns)
    end_ns, used, records = middle + job.window_ns, 0, 0
    for start_ns, count in rows.order_by("start_ns").values_list("start_ns", "record_count")[: half.windows]:
        records += count
        if records > half.records:
            break
        end_ns, used = start_ns + job.window_ns, used + 1
    return Basis(before.from_ns, end_ns, before.used + used, before.of + rows.count())


def version(job: Job, sides: Sequence[Basis]) -> str:
    """Changes whenever a window of these ranges appears, goes, or is analysed again."""
    return " ".join(_version(job, side) for side in sides)


def _version(job: Job, side: Basis) -> str:
    rows = _with_records(job, side.from_ns, side.to_ns)
    found = rows.aggregate(n=Count("start_ns"), newest=Max("run_id"), total=Sum("run_id"))
    return f"{found['n']}.{found['newest'] or 0}.{found['total'] or 0}"


def starts_ns(job: Job, side: Basis) -> list[int]:
    """The starts of the windows, in order."""
    rows = _with_records(job, side.from_ns, side.to_ns)
    return list(rows.order_by("start_ns").values_list("start_ns", flat=True))


_FLOATS = (
    "activity_cp", "activity_conventional", "worker_cp", "worker_conventional", "operator_cp",
    "operator_conventional", "channel_cp", "channel_conventional",
)  # fmt: skip
_INTS = ("worker_ids", "operator_ids", "operator_workers", "channel_src", "channel_dst")
_BYTES = ("operator_types", "channel_types")


def summaries(job: Job, side: Basis) -> list[WindowSummary]:
    """The stored results of the windows, in order, as the analysis gave them."""
    rows = _with_records(job, side.from_ns, side.to_ns)
    return [_summary(row) for row in rows.order_by("start_ns").iterator(chunk_size=500)]


def _summary(row: Window) -> WindowSummary:
    arrays: dict[str, Any] = {
        **{name: np.array(getattr(row, name), np.float64) for name in _FLOATS},
        **{name: np.array(getattr(row, name), np.int32) for name in _INTS},
        **{name: np.array(getattr(row, name), np.uint8) for name in _BYTES},
    }
    return WindowSummary(
        index=row.start_ns // row.width_ns,
        start_ns=row.effective_start_ns,
        end_ns=row.effective_end_ns,
        status=WindowStatus(row.status),
        reason=row.reason,
        log10_paths=row.log10_paths,
        cp_total=row.cp_total,
        record_count=row.record_count,
        **arrays,
    )
