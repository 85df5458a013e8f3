"""Proposing and deciding. Everything takes the actor, is checked again under the proposal's lock, and is audited.

Whatever is refused raises a `RefusedError` after the refusal was written to the audit record.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.utils import timezone

from analytics.model.plain import from_plain, to_plain
from analytics.model.reconfigurations import Binding, Prediction, drift
from webapp.accounts.models import User
from webapp.analysis.models import Recommendation
from webapp.audit.selectors import refused_lately
from webapp.audit.services import Entry, record, record_refused, storable
from webapp.bursts.headroom import checked_effect
from webapp.jobs.models import Job
from webapp.jobs.policies import role_on, visible_jobs
from webapp.queue import enqueue
from webapp.reconfigurations import policies
from webapp.reconfigurations.errors import (
    AlreadyVotedError,
    BusyError,
    ExpiredError,
    InvalidProposalError,
    NoSuchProposalError,
    ObserveOnlyError,
    RefusedError,
)
from webapp.reconfigurations.lifecycle import IN_FLIGHT, State
from webapp.reconfigurations.models import ChangePolicy, Kind, Mode, Proposal, Vote
from webapp.reconfigurations.steps import entry, locked, move, refused

logger = logging.getLogger(__name__)

APPLY_TASK = "workers.tasks.apply.apply_proposal"
REFUSED_AGAIN = timedelta(hours=1)
"""How soon the same attempt of a policy is written down again."""


@dataclass(frozen=True)
class Draft:
    """What is proposed, and all that speaks for it (see ``Proposal``).

    ``policy`` is whose advice it is, empty if a person thought of it; ``reason`` is that person's.
    """

    kind: Kind
    change: dict[str, Any]
    binding: Binding
    prediction: Prediction = field(default_factory=Prediction)
    evidence: dict[str, Any] = field(default_factory=dict)
    policy: str = ""
    policy_version: int = 0
    risks: tuple[str, ...] = ()
    shortfall_per_s: float = 0.0
    undoes: Proposal | None = None
    recommendation: Recommendation | None = None
    payload: bytes | None = None
    reason: str = ""


def propose(actor: User | None, job: Job, draft: Draft) -> Proposal:
    """Put a change up for decision. ``actor`` is the person who made it by hand, None for a policy.

    It supersedes the open proposal of the same kind, except that a policy neither supersedes what a person or a
    verification proposed nor proposes the same again. Within the limits of an automatic job it is approved at once.
    About a job that is only observed people may propose, and an admin has to change its mode before it is approved.

    Raises
    ------
    RefusedError
        If the actor may not, the job is only observed, or what is proposed makes no sense.
    """
    try:
        with transaction.atomic():
            return _propose(actor, job, draft)
    except RefusedError as error:
        told = {"kind": draft.kind.value, "change": draft.change}
        refuse_proposal(actor or f"policy {draft.policy}", job, error, told)
        raise


def refuse_proposal(who: User | str, job: Job, error: RefusedError, told: dict[str, Any]) -> None:
    """Write down that somebody tried to propose in vain; of a policy, which tries on and on, once an hour."""
    attempt = Entry(who, "proposal.propose", "job", job.pk, job.pk, job.name, str(error), told)
    if isinstance(who, User) or not refused_lately(attempt, timezone.now() - REFUSED_AGAIN):
        record_refused(attempt)


def withdraw(proposal_id: int, who: str, why: str) -> bool:
    """Take a policy's proposal off the table that it does not stand by any more; False if it was decided."""
    with transaction.atomic():
        proposal = locked(proposal_id)
        if proposal.state != State.PROPOSED or proposal.by_hand or proposal.undoes_id:
            return False
        move(proposal, State.SUPERSEDED, who=who, action="withdraw", reason=why)
        return True


def _propose(actor: User | None, job: Job, draft: Draft) -> Proposal:
    if actor is not None:
        check_may_propose(actor, job)
    ChangePolicy.objects.get_or_create(job=job)
    rules = ChangePolicy.objects.select_for_update().get(job=job)  # one proposes at a time
    if rules.mode == Mode.OBSERVE and actor is None:
        raise ObserveOnlyError(f"Weir only observes {job.name}; an admin can change its mode")
    policies.check_owner(rules)
    _check_change(draft)
    older = (
        Proposal.objects.select_for_update(no_key=True)
        .filter(job=job, kind=draft.kind, state=State.PROPOSED)
        .first()
    )
    kept = None if older is None else _yields_to(actor, draft, older)
    proposal = kept or _create(actor, job, _with_headroom(job, draft), rules, older)
    if actor is None and not policies.beyond_limits(proposal, rules, draft.binding.parallelism):
        _approve_automatically(proposal)
    return proposal


def check_may_propose(actor: User, job: Job) -> None:
    """Let through who may propose changes of this job by hand.

    Raises
    ------
    NoSuchProposalError, NotAllowedError
        Otherwise.
    """
    if not visible_jobs(actor).filter(pk=job.pk).exists():
        raise NoSuchProposalError("there is no such job")
    policies.require(actor, job, "propose")


def _yields_to(actor: User | None, draft: Draft, older: Proposal) -> Proposal | None:
    """The open proposal if it stays as it is; None if the new one supersedes it."""
    fresh = older.expires_at > timezone.now()
    said = (older.change, older.binding, older.risks)
    same = said == (draft.change, to_plain(draft.binding), list(draft.risks))
    if actor is None and draft.undoes is None and fresh:
        if same:
            return older
        if older.by_hand or older.undoes_id:
            raise BusyError("a person's proposal, or a way back, waits for a decision")
    return None


def _create(
    actor: User | None, job: Job, draft: Draft, rules: ChangePolicy, older: Proposal | None
) -> Proposal:
    who: User | str = actor or f"policy {draft.policy}"
    if older is not None:
        older.job = job
        move(older, State.SUPERSEDED, who=who, action="supersede", reason="a newer proposal took its place")
    proposal = Proposal.objects.create(
        job=job, kind=draft.kind, change=draft.change, binding=to_plain(draft.binding),
        prediction=to_plain(draft.prediction), evidence=draft.evidence, policy=draft.policy,
        policy_version=draft.policy_version, risks=list(draft.risks), shortfall_per_s=draft.shortfall_per_s,
        undoes=draft.undoes, supersedes=older, by_hand=actor is not None, proposed_by=actor,
        proposed_by_name=actor.get_username() if actor else f"policy {draft.policy}",
        recommendation=draft.recommendation, payload=draft.payload, rules=_snapshot(rules),
        expires_at=timezone.now() + timedelta(seconds=rules.expires_after_s),
    )  # fmt: skip
    record(
        entry(
            proposal, who, "propose", draft.reason, detail={"kind": proposal.kind, "change": proposal.change}
        )
    )
    return proposal


def _with_headroom(job: Job, draft: Draft) -> Draft:
    """The draft with the burst headroom before and after it; a scale-down that leaves too little is refused.

    A way back is not: whoever takes it has worse to fear.
    """
    if draft.kind is not Kind.RESCALE:
        return draft
    wanted = draft.change["parallelism"]
    found = checked_effect(job, draft.binding.parallelism, wanted, guard=draft.undoes is None)
    if found is None:
        return draft
    return replace(draft, evidence=draft.evidence | {"burst_headroom": found.to_json()})


def _snapshot(rules: ChangePolicy) -> dict[str, Any]:
    hidden = ("id", "job", "webhook_secret")
    named = (item.name for item in ChangePolicy._meta.concrete_fields)
    return {name: getattr(rules, name) for name in named if name not in hidden}


def _check_change(draft: Draft) -> None:
    if draft.kind is not Kind.RESCALE:
        return
    known = {item.id: item for item in draft.binding.operators}
    wanted = draft.change.get("parallelism")
    if not isinstance(wanted, dict) or not wanted:
        raise InvalidProposalError("a rescale names operators and how many instances each should have")
    for operator, count in wanted.items():
        if operator not in known:
            raise InvalidProposalError(f"the job has no operator {operator:.60}")
        most = known[operator].max_parallelism
        if not isinstance(count, int) or isinstance(count, bool) or count < 1 or (most and count > most):
            upper = f" to {most}" if most else " up"
            raise InvalidProposalError(f"{known[operator].name} can have 1{upper} instances, not {count}")
    if all(known[operator].parallelism == count for operator, count in wanted.items()):
        raise InvalidProposalError("it would change nothing")


def _approve_automatically(proposal: Proposal) -> None:
    if Proposal.objects.filter(job=proposal.job, state__in=IN_FLIGHT).exists():
        return
    move(
        proposal, State.APPROVED, who=proposal.proposed_by_name, action="approve",
        reason="within the limits of automatic changes", decided_at=timezone.now(), automatic=True,
    )  # fmt: skip
    _apply_after_commit(proposal)


def approve(
    actor: User,
    proposal_id: int,
    *,
    expected_version: int | None,
    reason: str = "",
    break_glass: bool = False,
) -> Proposal:
    """Vote for a proposal; with enough votes it is approved, and applied after the commit.

    ``expected_version`` is the version the person saw, None to take whatever it is now. ``break_glass`` (admins
    only) goes past freeze, change window, quorum and the rule against approving one's own, and is loud in the audit
    record.

    Raises
    ------
    RefusedError
        If there is nothing to decide any more, or the actor may not. Nothing has changed then.
    """
    reason = storable(reason)
    act = partial(_approve, actor, reason=reason, break_glass=break_glass)
    action = "break_glass" if break_glass else "approve"
    return _decide(actor, proposal_id, action, expected_version, reason, act)


def reject(actor: User, proposal_id: int, *, expected_version: int | None, reason: str) -> Proposal:
    """End a proposal; one person is enough, and must say why.

    Raises
    ------
    RefusedError
        If there is nothing to decide any more, or the actor may not. Nothing has changed then.
    """
    reason = storable(reason)
    act = partial(_reject, actor, reason=reason)
    return _decide(actor, proposal_id, "reject", expected_version, reason, act)


def _decide(
    actor: User, proposal_id: int, action: str, expected_version: int | None, reason: str,
    act: Callable[[Proposal], None],
) -> Proposal:  # fmt: skip
    try:
        with transaction.atomic():
            proposal = _visible(actor, proposal_id)
            policies.require(actor, proposal.job, action)
            policies.check_open(proposal, expected_version)
            act(proposal)
            return proposal
    except RefusedError as error:
        if isinstance(error, ExpiredError):
            expire(proposal_id)
        refused(proposal_id, actor, action, str(error), reason)
        raise


def _visible(actor: User, proposal_id: int) -> Proposal:
    """The proposal, locked, if the actor may see its job."""
    try:
        proposal = locked(proposal_id)
    except Proposal.DoesNotExist:
        raise NoSuchProposalError("there is no such proposal") from None
    if role_on(actor, proposal.job) is None:
        raise NoSuchProposalError("there is no such proposal")
    return proposal


def _approve(actor: User, proposal: Proposal, *, reason: str, break_glass: bool) -> None:
    needed = policies.why_a_reason(proposal, approves=True, break_glass=break_glass)
    policies.check_reason(reason, needed)
    if not break_glass:
        policies.check_rules(actor, proposal)
    policies.check_free(proposal, break_glass=break_glass)
    if proposal.votes.filter(voter=actor).exists() and not break_glass:
        raise AlreadyVotedError("you have voted for it already; somebody else must agree too")
    _vote(actor, proposal, approves=True, reason=reason)
    votes, quorum = policies.votes_for(proposal), policies.quorum_of(proposal)
    if votes < quorum and not break_glass:
        told = {"votes": votes, "quorum": quorum, "given_reason": reason}
        record(entry(proposal, actor, "vote", reason, detail=told))
        return
    if break_glass:
        _set_aside_what_waits(actor, proposal)
    detail = {"votes": votes, "quorum": quorum, "break_glass": break_glass}
    move(
        proposal, State.APPROVED, who=actor, action="break_glass" if break_glass else "approve", reason=reason,
        loud=break_glass, detail=detail, decided_at=timezone.now(), break_glass=break_glass,
    )  # fmt: skip
    if break_glass:
        said = (proposal.pk, proposal.job.name, actor.get_username(), reason)
        warn = partial(logger.warning, "proposal.break_glass proposal=%d job=%s by=%s reason=%s", *said)
        transaction.on_commit(warn, robust=True)
    _apply_after_commit(proposal)


def _set_aside_what_waits(actor: User, proposal: Proposal) -> None:
    """An outage does not wait for what waits for a change window. What a worker began meanwhile is left alone."""
    waiting = Proposal.objects.filter(job=proposal.job, state=State.APPROVED).values_list("pk", flat=True)
    for pk in waiting:
        other = locked(pk)
        if other.state == State.APPROVED:
            why = f"the glass was broken for proposal {proposal.pk}"
            move(other, State.SUPERSEDED, who=actor, action="set_aside", reason=why, loud=True)


def _reject(actor: User, proposal: Proposal, *, reason: str) -> None:
    policies.check_reason(reason, policies.why_a_reason(proposal, approves=False, break_glass=False))
    _vote(actor, proposal, approves=False, reason=reason)
    move(proposal, State.REJECTED, who=actor, action="reject", reason=reason, decided_at=timezone.now())


def _vote(actor: User, proposal: Proposal, *, approves: bool, reason: str) -> None:
    word = {"voter_name": actor.get_username(), "approves": approves, "reason": reason}
    Vote.objects.update_or_create(proposal=proposal, voter=actor, defaults=word)


def _apply_after_commit(proposal: Proposal) -> None:
    """Robust: if the broker is down the decision stands, and the next sweep finds it."""
    transaction.on_commit(partial(enqueue, APPLY_TASK, proposal.pk, queue="default"), robust=True)


def expire(proposal_id: int) -> bool:
    """Write down that a proposal's time is over; False if it is not, or it has been decided."""
    with transaction.atomic():
        proposal = locked(proposal_id)
        if proposal.state != State.PROPOSED or proposal.expires_at > timezone.now():
            return False
        move(proposal, State.EXPIRED, who="weir", action="expire", reason="nobody decided in time")
        return True


def expire_due() -> int:
    """Expire what nobody decided in time; how many that were."""
    due = Proposal.objects.filter(state=State.PROPOSED, expires_at__lte=timezone.now())
    return sum(expire(pk) for pk in due.values_list("pk", flat=True))


def mark_stale(proposal_id: int, now: Binding) -> bool:
    """Take a proposal off the table if the job is no longer the one it was computed for."""
    with transaction.atomic():
        proposal = locked(proposal_id)
        moved = drift(from_plain(Binding, proposal.binding), now)
        if proposal.state != State.PROPOSED or not moved:
            return False
        move(proposal, State.STALE, who="weir", action="stale", reason=moved)
        return True
