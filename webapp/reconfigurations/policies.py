"""Who may do what with proposals, and which rules stand in the way. Services ask under the proposal's lock."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from webapp.accounts.models import User
from webapp.jobs.models import Job, Role
from webapp.jobs.policies import Actor, may, role_on
from webapp.reconfigurations import change_windows
from webapp.reconfigurations.errors import (
    BusyError,
    DecidedError,
    ExpiredError,
    FrozenError,
    NotAllowedError,
    ObserveOnlyError,
    OwnedError,
    ReasonRequiredError,
    StaleViewError,
)
from webapp.reconfigurations.lifecycle import IN_FLIGHT, State
from webapp.reconfigurations.models import ChangePolicy, Freeze, Mode, Proposal

NEEDED = {
    "propose": Role.OPERATOR,
    "approve": Role.APPROVER,
    "reject": Role.APPROVER,
    "break_glass": Role.ADMIN,
    "freeze": Role.ADMIN,
    "configure": Role.ADMIN,
}
"""The least role for each action."""


def rules_of(job: Job) -> ChangePolicy:
    """The job's rules; the defaults (observe) if nobody has set any."""
    return ChangePolicy.objects.filter(job=job).first() or ChangePolicy(job=job)


def freeze_on(job: Job) -> Freeze | None:
    """The freeze that stops changes of this job now, its own or the global one."""
    live = Freeze.objects.filter(lifted_at=None)
    return live.filter(job=job).first() or live.filter(job=None).first()


def require(actor: Actor, job: Job, action: str) -> None:
    """Let through who has the role for this action.

    Raises
    ------
    NotAllowedError
        With the role that is needed.
    """
    if not may(actor, job, NEEDED[action]):
        role = role_on(actor, job)
        raise NotAllowedError(
            f"this needs the role {NEEDED[action].value} on {job.name}; yours is {role.value if role else 'none'}"
        )


def check_open(proposal: Proposal, expected_version: int | None) -> None:
    """Let through what still waits for a decision, and is what the person saw.

    Raises
    ------
    DecidedError, ExpiredError, StaleViewError
        Otherwise.
    """
    if proposal.state != State.PROPOSED:
        said = f": {proposal.state_reason}" if proposal.state_reason else ""
        raise DecidedError(f"nothing is left to decide, it is {State(proposal.state).label}{said}")
    if proposal.expires_at <= timezone.now():
        raise ExpiredError(f"it expired at {proposal.expires_at:%F %T} UTC")
    if expected_version is not None and proposal.version != expected_version:
        raise StaleViewError("it has changed since you looked: look again")


def check_reason(reason: str, needed_because: str) -> None:
    """Let a reason through, or anything if none is needed (``needed_because`` is empty).

    Raises
    ------
    ReasonRequiredError
        If one is missing.
    """
    if needed_because and not reason.strip():
        raise ReasonRequiredError(f"give a reason: {needed_because}")


def why_a_reason(proposal: Proposal, *, approves: bool, break_glass: bool) -> str:
    """Why this decision needs a reason; "" if it does not."""
    if not approves:
        return "a rejection without one helps nobody"
    if break_glass:
        return "you go past the rules"
    return f"this is flagged risky ({'; '.join(proposal.risks)})" if proposal.risks else ""


def check_owner(rules: ChangePolicy) -> None:
    """Let through what no other controller decides about, as far as an admin said so.

    Raises
    ------
    OwnedError
        Otherwise.
    """
    if rules.scaled_by:
        raise OwnedError(f"{rules.scaled_by} scales this job, and Weir does not fight it")


def check_rules(actor: User, proposal: Proposal) -> None:
    """Let an approval through that no rule forbids (break-glass goes past these).

    Raises
    ------
    NotAllowedError, FrozenError, ObserveOnlyError, OwnedError
        Otherwise.
    """
    if proposal.by_hand and proposal.proposed_by_id == actor.pk:
        raise NotAllowedError("you proposed this yourself: somebody else must approve it")
    rules = rules_of(proposal.job)
    check_owner(rules)
    if rules.mode == Mode.OBSERVE:
        raise ObserveOnlyError(f"Weir only observes {proposal.job.name}; an admin can change its mode")
    if (freeze := freeze_on(proposal.job)) is not None:
        what = proposal.job.name if freeze.job_id else "everything"
        raise FrozenError(f"{freeze.by_name} froze {what}: {freeze.reason}")


def check_free(proposal: Proposal, *, break_glass: bool) -> None:
    """Let an approval through if no other change of the job is on its way.

    Breaking the glass sets aside what was approved and only waits, so then that is in nobody's way.

    Raises
    ------
    BusyError
        Otherwise.
    """
    stops = (State.APPLYING,) if break_glass else IN_FLIGHT
    if Proposal.objects.filter(job=proposal.job_id, state__in=stops).exists():
        raise BusyError("another change of this job is on its way")


def votes_for(proposal: Proposal) -> int:
    """How many people approve who may still do so: who left, or lost the role, has no say any more."""
    votes = proposal.votes.filter(approves=True, voter__isnull=False).select_related("voter")
    return sum(may(vote.voter, proposal.job, NEEDED["approve"]) for vote in votes if vote.voter is not None)


def quorum_of(proposal: Proposal) -> int:
    """How many people must approve: the stricter of the rules then and now."""
    return max(int(proposal.rules.get("quorum", 1)), rules_of(proposal.job).quorum)


def why_not_now(proposal: Proposal, at: datetime) -> str:
    """Why an approved proposal must wait before it is applied; "" if it need not."""
    if proposal.break_glass:
        return ""
    rules = rules_of(proposal.job)
    if rules.mode == Mode.OBSERVE:
        return "Weir only observes the job now"
    if (freeze := freeze_on(proposal.job)) is not None:
        return f"frozen by {freeze.by_name}: {freeze.reason}"
    if not change_windows.is_open(change_windows.parse(rules.windows), at):
        return "waits for the next change window"
    return ""


def beyond_limits(proposal: Proposal, rules: ChangePolicy, parallelism: dict[str, int]) -> str:
    """Why a proposal is not approved automatically; "" if it is within the limits.

    ``parallelism`` is what the job runs with now.
    """
    if rules.mode != Mode.AUTOMATIC:
        return f"the job's mode is {Mode(rules.mode).value}"
    if proposal.by_hand or proposal.undoes_id:
        return "a person decides about this"
    if proposal.risks:
        return f"it is flagged risky: {'; '.join(proposal.risks)}"
    if max(int(proposal.rules.get("quorum", 1)), rules.quorum) > 1:
        return f"{rules.quorum} people must agree"
    for operator, wanted in proposal.change.get("parallelism", {}).items():
        now = parallelism[operator]
        if wanted > rules.auto_max_parallelism:
            return f"{wanted} instances are more than {rules.auto_max_parallelism}"
        if max(wanted / now, now / wanted) > rules.auto_max_factor:
            return f"from {now} to {wanted} instances is more than a factor of {rules.auto_max_factor:g}"
    since = timezone.now() - timedelta(days=1)
    done = Proposal.objects.filter(job=proposal.job, automatic=True, decided_at__gt=since).count()
    if done >= rules.auto_max_per_day:
        return f"{done} automatic changes in a day are enough"
    if (freeze := freeze_on(proposal.job)) is not None:
        return f"frozen by {freeze.by_name}"
    return ""
