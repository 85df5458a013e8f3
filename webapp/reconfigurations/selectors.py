"""What pages and the API ask about proposals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from analytics.model.reconfigurations import Binding, binding_of
from webapp.accounts.models import User
from webapp.jobs import reports
from webapp.jobs.models import Job, Role
from webapp.jobs.policies import jobs_with_role, visible_jobs
from webapp.reconfigurations import policies
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal, Vote

MOST_JUDGED = 2_000
HEAVY = ("payload", "evidence", "verdict")


@dataclass(frozen=True, slots=True)
class Calibration:
    """One number that a policy predicted, and what was measured. ``agrees`` is None where nobody could tell."""

    proposal_id: int
    policy: str
    what: str
    operator_id: str
    predicted: float | None
    before: float | None
    after: float | None
    agrees: bool | None


def proposals(actor: User, job: Job | None = None, states: Sequence[str] = ()) -> QuerySet[Proposal]:
    """The proposals about jobs this person may see, newest first, their copies of evidence not loaded."""
    found = Proposal.objects.filter(job__in=visible_jobs(actor)).select_related("job").defer("payload")
    if job is not None:
        found = found.filter(job=job)
    if states:
        found = found.filter(state__in=states)
    return found.order_by("-id")


def proposal(actor: User, proposal_id: int) -> Proposal | None:
    """One of them; None if there is none for this person to see."""
    found = proposals(actor).select_related("attempt").filter(pk=proposal_id)
    return found.prefetch_related("votes").first()


def listed(actor: User, job: Job | None = None, states: Sequence[str] = ()) -> QuerySet[Proposal]:
    """``proposals`` for lists that are drawn again and again: evidence and verdict are loaded only if asked for."""
    return proposals(actor, job, states).defer(*HEAVY)


def inbox(actor: User) -> QuerySet[Proposal]:
    """What waits for this person's decision, what costs most to let wait first, then what expires first."""
    voted = Vote.objects.filter(proposal=OuterRef("pk"), voter=actor)
    mine = Q(by_hand=True, proposed_by=actor)
    waiting = Proposal.objects.filter(state=State.PROPOSED, job__in=jobs_with_role(actor, Role.APPROVER))
    waiting = waiting.exclude(mine).exclude(Exists(voted)).select_related("job").defer(*HEAVY)
    return waiting.order_by("-shortfall_per_s", "expires_at", "id")


def why_not(actor: User, shown: Proposal, action: str = "approve") -> str:
    """Why ``approve``, ``reject`` or ``break_glass`` would be refused now; "" if it would not be.

    The service checks again, under the lock: this is only for what a page shows.
    """
    try:
        policies.require(actor, shown.job, action)
        policies.check_open(shown, None)
        if action == "approve":
            policies.check_rules(actor, shown)
        if action != "reject":
            policies.check_free(shown, break_glass=action == "break_glass")
    except RefusedError as error:
        return str(error)
    return ""


def current_binding(job: Job) -> Binding | None:
    """What a proposal made by hand now would be bound to; None if the job's engine was never asked."""
    report = reports.newest_report(job)
    return None if report is None else binding_of(report.topology)


def calibration(actor: User, policy: str = "") -> list[Calibration]:
    """Predicted beside observed, over the newest ``MOST_JUDGED`` verdicts this person may see, oldest first."""
    found = Proposal.objects.filter(job__in=visible_jobs(actor)).exclude(verdict=None)
    found = found.exclude(verdict__findings=[]).order_by("-applied_at", "-id")
    if policy:
        found = found.filter(policy=policy)
    fields = ("what", "operator_id", "predicted", "before", "after", "agrees")
    return [
        Calibration(pk, made_by or "by hand", *(finding[name] for name in fields))
        for pk, made_by, verdict in reversed(found.values_list("pk", "policy", "verdict")[:MOST_JUDGED])
        for finding in (verdict or {}).get("findings", [])
    ]
