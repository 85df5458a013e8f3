"""The policy lab: what every policy would have made of a job's stored history, or of a published dataflow.

A replay takes longer than a page may, so a worker computes it (`workers.tasks.policy_lab`); it is kept until what
it rests on has changed. A range that moves with the clock is replayed anew at most every `REFRESH`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from analytics.model.plain import from_plain, to_plain
from analytics.model.rates import Observation
from analytics.scaling import lab
from analytics.scaling.lab import Lab, NexmarkRow
from analytics.scaling.policies import POLICIES
from analytics.scaling.rates import source_targets
from analytics.scaling.settings import settings_of
from webapp.analysis.models import Replay, TimelineState
from webapp.analysis.scaling_setup import setup_of
from webapp.jobs import reports
from webapp.jobs.models import Job, Rates
from webapp.jobs.policies import Actor, visible_jobs
from webapp.jobs.reports import Measured
from webapp.queue import enqueue

TASK = "workers.tasks.policy_lab.compute"
LAB_VERSION = 1
"""Rises whenever the same history may give another answer, or answers are written differently."""

REFRESH = timedelta(seconds=30)
LOST = timedelta(seconds=90)
"""A replay that waits for so long has been lost on its way, and is asked for again."""

KEPT = timedelta(days=1)
FEWEST_WINDOWS = 5
"""Fewer windows than these say nothing about a policy."""

MOST_WINDOWS = 720
"""What a replay may rest on, the newest of the range: they take some seconds on one core."""

MOST_INSTANCE_WINDOWS = 300_000
"""Instances times windows: a job with very many of them is replayed over a shorter time."""

RESTARTS_S = (0.0, 10.0, 30.0, 120.0)
MOST_LISTED = 200
NEXMARK_KEY = "nexmark"


@dataclass(frozen=True, slots=True)
class LabRange:
    """A range of a job's history (ns). ``moving`` names one that follows the clock, such as ``15m``."""

    from_ns: int
    to_ns: int
    moving: str = ""


def jobs_with_history(actor: Actor) -> tuple[list[Job], int]:
    """The jobs of this person that have rates, newest data first, and how many there are in all."""
    found = visible_jobs(actor).filter(Exists(Rates.objects.filter(job=OuterRef("pk"))))
    listed = list(found.order_by("-last_received_at", "name")[: MOST_LISTED + 1])
    return listed[:MOST_LISTED], len(listed) if len(listed) <= MOST_LISTED else found.count()


def has_rates(job: Job) -> bool:
    """Whether any rates of the job are stored."""
    return Rates.objects.filter(job=job).exists()


def ask_history(job: Job, span: LabRange, restart_s: float) -> Replay | None:
    """The replay of a job's history, asked for now if there is none or it is outdated; None without rates.

    One under way comes back with state ``queued``, and the answer of before if there is one: ask again shortly.
    """
    newest_ns = _newest_ns(job, span)
    if newest_ns is None:
        return None
    where = span.moving or f"{span.from_ns}-{span.to_ns}"
    params = {"from_ns": span.from_ns, "to_ns": span.to_ns, "restart_s": restart_s}
    fresh = {"job": job, "params": params, "version": _history_version(job), "newest_ns": newest_ns}
    return _ask(f"job {job.pk} {where} {restart_s:g}", fresh)


def ask_published(key: str, start: int) -> Replay:
    """The replay of a published dataflow from one of its starts.

    Raises
    ------
    KeyError, IndexError
        If there is no such dataflow or start.
    """
    lab.MODELS[key].starts[start]
    return _ask(f"model {key} {start}", _fixed({"model": key, "start": start}))


def ask_nexmark() -> Replay:
    """The paper's table of Nexmark decisions, beside those on the model."""
    return _ask(f"model {NEXMARK_KEY}", _fixed({"table": NEXMARK_KEY}))


def _fixed(params: dict[str, Any]) -> dict[str, Any]:
    return {"job": None, "params": params, "version": _code_version(), "newest_ns": None}


def retry(key: str) -> None:
    """Ask again for what could not be computed."""
    if Replay.objects.filter(key=key, state=TimelineState.FAILED).update(
        state=TimelineState.QUEUED, requested_at=timezone.now(), error=""
    ):
        enqueue(TASK, key, queue="interactive")


def lab_of(row: Replay) -> Lab | None:
    """What was replayed, if anything was yet."""
    return None if row.payload is None else from_plain(Lab, row.payload)


def table_of(row: Replay) -> tuple[NexmarkRow, ...] | None:
    """The answer of `ask_nexmark`, if it is there yet."""
    return None if row.payload is None else from_plain(tuple[NexmarkRow, ...], row.payload)


def compute(row: Replay) -> Any:
    """The payload of a replay; for the worker."""
    params = row.params
    if "table" in params:
        return to_plain(lab.nexmark_table())
    if "model" in params:
        return to_plain(lab.of_published(params["model"], params["start"]))
    if row.job is None:
        raise LookupError("the job is gone")
    return to_plain(_of_history(row.job, params["from_ns"], params["to_ns"], params["restart_s"]))


def store(key: str, asked_at: datetime, payload: Any) -> None:
    """Keep an answer, unless it was asked for anew meanwhile."""
    rows = Replay.objects.filter(key=key, requested_at=asked_at)
    rows.update(state=TimelineState.READY, payload=payload, answered_at=timezone.now(), error="")


def fail(key: str, asked_at: datetime, error: str) -> None:
    """Keep why there is no answer, unless it was asked for anew meanwhile."""
    Replay.objects.filter(key=key, requested_at=asked_at).update(
        state=TimelineState.FAILED, error=error[:2000]
    )


def history(job: Job, from_ns: int, to_ns: int) -> list[Measured]:
    """The newest rates of a range whose windows do not overlap, in the order of time.

    Rates are kept more often than their windows are long; replaying all would live through the same time twice.
    """
    chosen: list[Measured] = []
    rows = Rates.objects.filter(job=job, at_ns__range=(from_ns, to_ns)).order_by("-at_ns")
    for row in rows.iterator(chunk_size=200):
        if chosen and row.at_ns > chosen[-1].window.start_ns:
            continue
        chosen.append(reports.unpack(Measured, row.payload))
        instances = sum(operator.parallelism for operator in chosen[0].topology.operators)
        most = max(FEWEST_WINDOWS, min(MOST_WINDOWS, MOST_INSTANCE_WINDOWS // max(instances, 1)))
        if len(chosen) == most:
            break
    return chosen[::-1]


def _of_history(job: Job, from_ns: int, to_ns: int, restart_s: float) -> Lab:
    setup = setup_of(job)
    seen = [_seen(measured, setup.targets_per_s) for measured in history(job, from_ns, to_ns)]
    if not seen:
        raise LookupError("the rates of this range are gone")
    chosen = {name: settings_of(name, setup.settings if name == setup.policy else {}) for name in POLICIES}
    return lab.of_history(seen, chosen, restart_s)


def _seen(measured: Measured, targets_per_s: dict[str, float]) -> Observation:
    topology, window = measured.topology, measured.window
    configured = {
        item.id: targets_per_s[item.name] for item in topology.sources() if item.name in targets_per_s
    }
    return Observation(topology, window, source_targets(topology, window, configured))


def _newest_ns(job: Job, span: LabRange) -> int | None:
    newest = Rates.objects.filter(job=job, at_ns__range=(span.from_ns, span.to_ns)).order_by("-at_ns")
    return newest.values_list("at_ns", flat=True).first()


def _history_version(job: Job) -> str:
    setup = setup_of(job)
    said = json.dumps([setup.policy, setup.settings, setup.targets_per_s], sort_keys=True)
    return f"{_code_version()} {said}"


def _code_version() -> str:
    return f"{LAB_VERSION} {' '.join(f'{item.name}={item.version}' for item in POLICIES.values())}"


def _ask(key: str, fresh: dict[str, Any]) -> Replay:
    """The row, asked for with ``fresh`` if there is none or it does not stand."""
    known = Replay.objects.filter(key=key).first()
    if known is not None and _stands(known, fresh):
        return known
    fresh |= {"state": TimelineState.QUEUED, "requested_at": timezone.now(), "error": ""}
    with transaction.atomic():
        row, created = Replay.objects.select_for_update().get_or_create(key=key, defaults=fresh)
        if not created and not _stands(row, fresh):
            for name, value in fresh.items():
                setattr(row, name, value)
            row.save()
            created = True
        if created:
            Replay.objects.filter(requested_at__lt=timezone.now() - KEPT).delete()
            transaction.on_commit(lambda: enqueue(TASK, key, queue="interactive"))
    return row


def _stands(row: Replay, wanted: dict[str, Any]) -> bool:
    """Whether there is no reason to ask again now."""
    age = timezone.now() - row.requested_at
    if row.version != wanted["version"]:
        return False
    if row.state == TimelineState.QUEUED:
        return age < LOST
    return row.newest_ns == wanted["newest_ns"] or age < REFRESH
