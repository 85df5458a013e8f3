"""What everybody should notice at once: that changes are frozen, and that somebody went past the rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.jobs.policies import visible_jobs
from webapp.reconfigurations.models import Freeze, Proposal
from webapp.telemetry.models import Annotation

LOUD_FOR = timedelta(hours=24)
"""How long a broken glass is shown on pages; in the audit record it stays."""

MOST = 5
RECONFIGURATION = "reconfiguration"
"""The kind of the annotations that ``execution`` writes."""


@dataclass(frozen=True)
class Alarms:
    """Freezes that hold now, the global one first, and proposals approved by breaking the glass lately."""

    freezes: tuple[Freeze, ...]
    broken: tuple[Proposal, ...]


def alarms(actor: User, job: Job | None, now: datetime) -> Alarms:
    """What concerns this job, or without one everything that this person may see."""
    which = Q(job=None) | (Q(job=job) if job is not None else Q(pk=None))
    freezes = Freeze.objects.filter(which, lifted_at=None).select_related("job").order_by("-job_id")
    broken = Proposal.objects.filter(
        break_glass=True, decided_at__gt=now - LOUD_FOR, job__in=visible_jobs(actor)
    ).select_related("job")
    if job is not None:
        broken = broken.filter(job=job)
    ordered = sorted(freezes, key=lambda item: item.job_id is not None)
    return Alarms(tuple(ordered), tuple(broken.order_by("-decided_at")[:MOST]))


@dataclass(frozen=True)
class AppliedChange:
    """A change as charts mark it. ``state`` is the proposal's, "" if it is gone; ``reason`` is the approver's."""

    proposal_id: int
    at_ns: int
    label: str
    state: str
    decided_by: str
    reason: str


def applied_changes(job: Job, from_ns: int, to_ns: int) -> list[AppliedChange]:
    """What Weir changed of a job within this time (both ends included), the oldest first."""
    notes = Annotation.objects.filter(job=job, kind=RECONFIGURATION, start_ns__range=(from_ns, to_ns))
    found = [(int(note.key), note.start_ns, note.label) for note in notes.order_by("start_ns", "key")]
    rows = Proposal.objects.filter(job=job).prefetch_related("votes").in_bulk([key for key, _, _ in found])
    return [_change(key, at_ns, label, rows.get(key)) for key, at_ns, label in found]


def _change(key: int, at_ns: int, label: str, row: Proposal | None) -> AppliedChange:
    votes = [vote for vote in row.votes.all() if vote.approves] if row is not None else []
    by = ", ".join(vote.voter_name for vote in votes) or ("the job's limits" if row and row.automatic else "")
    reason = next((vote.reason for vote in reversed(votes) if vote.reason), "")
    return AppliedChange(key, at_ns, label, row.state if row is not None else "", by, reason)
