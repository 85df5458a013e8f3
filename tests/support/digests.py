"""Job groups in which something happened, and people who follow them."""

from __future__ import annotations

from datetime import datetime, timedelta

from analytics.model.activity import ActivityType
from tests.support.changes import make_job, member, proposal
from webapp.accounts.models import User
from webapp.analysis.models import Standing
from webapp.jobs.models import Job, Role
from webapp.notifications.models import HourlyLimiter, Subscription
from webapp.notifications.services import subscribe
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal

HOUR = timedelta(hours=1)


def follower(job: Job, name: str = "ann", role: Role = Role.APPROVER) -> User:
    """A member of the job's group who has a mail address."""
    who = member(job, role, name)
    who.email = f"{who.username}@example.org"
    who.save()
    return who


def due(person: User, job: Job | None, now: datetime, **more: object) -> Subscription:
    """A daily subscription to the job's group whose hour has just begun."""
    at = now.replace(minute=0, second=0, microsecond=0)
    more.setdefault("hour", at.hour)
    return subscribe(person, job.group if job else None, first_due_at=at, **more)  # type: ignore[arg-type]


def limiter_moved(job: Job, now: datetime) -> None:
    """Scheduling limited the job for 20 hours, and now it is processing in count."""
    hour = now.replace(minute=0, second=0, microsecond=0)
    HourlyLimiter.objects.bulk_create(
        HourlyLimiter(
            job=job, hour=hour - back * HOUR, activity=ActivityType.SCHEDULING, operator="", cp=0.48
        )
        for back in range(4, 25)
    )
    stands(job, now)


def stands(job: Job, now: datetime, cp: float = 0.62) -> None:
    """Processing in count limits the job now."""
    values = {
        "computed_at": now, "activity": ActivityType.PROCESSING, "operator": "count", "cp": cp,
        "conventional": 0.2, "sparkline": [None] * 30 + [0.5, 0.6] * 15,
    }  # fmt: skip
    Standing.objects.update_or_create(job=job, defaults=values)
    Job.objects.filter(pk=job.pk).update(last_received_at=now)


def judged(job: Job, now: datetime, state: State) -> Proposal:
    """A change that was applied and came to this an hour ago."""
    row = proposal(job)
    finding = {
        "what": "utilisation", "operator_id": row.binding["operators"][1]["id"], "predicted": 0.9, "before": 1.0,
        "after": 0.88, "agrees": True, "says": "",
    }  # fmt: skip
    Proposal.objects.filter(pk=row.pk).update(
        state=state, changed_at=now - HOUR, applied_at=now - 2 * HOUR, verdict={"findings": [finding]}
    )
    return row


def eventful(now: datetime) -> tuple[Job, Proposal]:
    """A job whose limiter moved, with a change that held and a proposal that waits."""
    job = make_job()
    limiter_moved(job, now)
    judged(job, now, State.VERIFIED)
    return job, proposal(job, shortfall_per_s=702.0)


__all__ = ["due", "eventful", "follower", "judged", "limiter_moved", "make_job", "stands"]
