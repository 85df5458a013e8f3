"""What everybody should notice at once: that changes are frozen, and that somebody went past the rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.jobs.policies import visible_jobs
from webapp.reconfigurations.models import Freeze, Proposal

LOUD_FOR = timedelta(hours=24)
"""How long a broken glass is shown on pages; in the audit record it stays."""

MOST = 5


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
