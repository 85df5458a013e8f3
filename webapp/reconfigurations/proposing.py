"""Recommendations become proposals: by themselves where the job's mode says so, or because a person says so.

`follow` looks at what is recommended now and at what was proposed, and makes them agree. It may be run at any time,
as often as one likes: a worker that dies between a recommendation and its proposal leaves nothing to repair.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.utils import timezone

from analytics.model.decisions import Move
from analytics.model.plain import to_plain
from webapp.accounts.models import User
from webapp.analysis import advice
from webapp.analysis.models import Recommendation
from webapp.analysis.recommendations import FRESH_NS
from webapp.audit.services import storable
from webapp.jobs.models import Job
from webapp.jobs.policies import visible_jobs
from webapp.reconfigurations import drafts
from webapp.reconfigurations.errors import DecidedError, NoSuchProposalError, OutdatedError, RefusedError
from webapp.reconfigurations.lifecycle import IN_FLIGHT, State
from webapp.reconfigurations.models import Kind, Mode, Proposal
from webapp.reconfigurations.services import check_may_propose, propose, refuse_proposal, withdraw
from webapp.reconfigurations.steps import refused
from webapp.reconfigurations.verification import changed_again, way_back

logger = logging.getLogger(__name__)

ASKS = (Move.RESCALE, Move.ROLL_BACK)
CAN_GO_BACK = (State.APPLIED, State.VERIFIED, State.INCONCLUSIVE, State.REGRESSED)
UNANSWERED = (State.EXPIRED, State.SUPERSEDED, State.STALE)
"""However often it was proposed before: nobody said anything about it."""


@dataclass(frozen=True, slots=True)
class Followed:
    """How many proposals were made, and how many were withdrawn."""

    proposed: int
    withdrawn: int


def propose_by_hand(actor: User, job: Job, parallelism: Mapping[str, int], reason: str = "") -> Proposal:
    """Propose what a person thought of: instances by operator id. What is to be expected is worked out and said.

    Raises
    ------
    RefusedError
        If the actor may not, or it makes no sense.
    """
    told = {"kind": Kind.RESCALE.value, "change": {"parallelism": dict(parallelism)}}
    try:
        check_may_propose(actor, job)
        draft = drafts.by_hand(job, parallelism, reason)
    except RefusedError as error:
        refuse_proposal(actor, job, error, told)
        raise
    return propose(actor, job, draft)


def propose_recommended(actor: User, job: Job, reason: str = "") -> Proposal:
    """Propose what is recommended now, in a person's name: whatever the job's mode, somebody else must approve it.

    Raises
    ------
    RefusedError
        If the actor may not, or nothing is recommended that could be done now.
    """
    told = {"kind": Kind.RESCALE.value, "change": "as recommended"}
    try:
        check_may_propose(actor, job)
        recommendation = advice.current(job)
        if recommendation is None:
            raise OutdatedError("nothing is recommended: its rates were never looked at")
        draft = drafts.recommended(recommendation, reason)
    except RefusedError as error:
        refuse_proposal(actor, job, error, told)
        raise
    return propose(actor, job, draft)


def propose_way_back(actor: User, proposal_id: int, reason: str = "") -> Proposal:
    """Propose to take an applied rescale back, in a person's name; the way back that waits already, if one does.

    Raises
    ------
    RefusedError
        If the actor may not, or there is nothing to take back.
    """
    row = Proposal.objects.select_related("job", "attempt").filter(pk=proposal_id).first()
    try:
        if row is None or not visible_jobs(actor).filter(pk=row.job_id).exists():
            raise NoSuchProposalError("there is no such proposal")
        check_may_propose(actor, row.job)
        waiting = row.ways_back.filter(state=State.PROPOSED, expires_at__gt=timezone.now()).first()
        if waiting is not None:
            return waiting
        if row.state not in CAN_GO_BACK or row.kind != Kind.RESCALE:
            raise DecidedError(f"there is nothing to take back, it is {State(row.state).label}")
        if (later := changed_again(row)) is not None:
            raise DecidedError(f"proposal {later.pk} changed the job since: take that one back first")
        back = way_back(row)
        evidence = back.evidence | {"reason": storable(reason)}
        draft = replace(back, policy="", policy_version=0, evidence=evidence, reason=reason)
    except RefusedError as error:
        refused(proposal_id, actor, "revert", str(error), reason)
        raise
    return propose(actor, row.job, draft)


def follow() -> Followed:
    """Propose what is recommended about jobs whose mode allows it, and withdraw what no policy stands by any more.

    One job's trouble holds up no other.
    """
    since = timezone.now() - timedelta(microseconds=FRESH_NS / 1_000)
    current = list(
        Recommendation.objects.filter(superseded_at=None, confirmed_at__gte=since, job__finished=False)
        .filter(
            job__change_policy__mode__in=(Mode.RECOMMEND, Mode.AUTOMATIC), job__change_policy__scaled_by=""
        )
        .select_related("job", "job__change_policy")
        .defer("payload")
        .order_by("job_id")
    )
    live, answered = _proposals(current)
    proposed = withdrawn = 0
    for item in current:
        try:
            if _withdraw(item, live[item.job_id]):
                withdrawn += 1
            elif _should_propose(item, live[item.job_id], answered.get(item.pk)):
                proposed += _propose(item, answered.get(item.pk), _open(live[item.job_id]))
        except Exception:  # such as evidence of another release
            logger.exception("follow.failed job=%d recommendation=%d", item.job_id, item.pk)
    return Followed(proposed, withdrawn)


def _proposals(current: Sequence[Recommendation]) -> tuple[dict[int, list[Proposal]], dict[int, Proposal]]:
    """What is under way with each job, and the last answer to each recommendation."""
    rows = Proposal.objects.filter(kind=Kind.RESCALE).defer("payload", "evidence", "verdict").order_by("id")
    live: dict[int, list[Proposal]] = defaultdict(list)
    jobs = [item.job_id for item in current]
    for row in rows.filter(job_id__in=jobs, state__in=(State.PROPOSED, *IN_FLIGHT, State.APPLIED)):
        live[row.job_id].append(row)
    made = rows.filter(recommendation__in=current).exclude(state__in=(State.PROPOSED, *UNANSWERED))
    return live, {row.recommendation_id: row for row in made if row.recommendation_id is not None}


def _open(live: Sequence[Proposal]) -> Proposal | None:
    return next((row for row in live if row.state == State.PROPOSED), None)


def _withdraw(item: Recommendation, live: Sequence[Proposal]) -> bool:
    """A policy that now finds nothing to change withdraws what it proposed; one that cannot decide does not."""
    mine = _open(live)
    if mine is None or item.move != Move.KEEP or item.undecided or mine.by_hand or mine.undoes_id:
        return False
    return withdraw(mine.pk, f"policy {item.policy}", f"{item.policy} finds nothing to change any more")


def _should_propose(item: Recommendation, live: Sequence[Proposal], answer: Proposal | None) -> bool:
    if item.move not in ASKS or not item.changes:
        return False
    if any(row.state != State.PROPOSED for row in live):
        return False  # what the last change brings is to be known before the next one is proposed
    if answer is not None and answer.state != State.APPLY_FAILED:
        return False  # people had their say about it
    mine = _open(live)
    if mine is None:
        return True
    if mine.by_hand or mine.undoes_id:
        return False  # theirs goes first
    same = mine.recommendation_id == item.pk and mine.expires_at > timezone.now()
    return not same or item.job.change_policy.mode == Mode.AUTOMATIC


def _propose(item: Recommendation, answer: Proposal | None, mine: Proposal | None) -> int:
    """How many proposals this made."""
    try:
        draft = drafts.recommended(item)
    except OutdatedError:
        return 0  # the next rates will bring a newer recommendation
    if answer is not None and answer.binding == to_plain(draft.binding):
        return 0  # it failed, and nothing is otherwise now
    try:
        row = propose(None, item.job, draft)
    except RefusedError as error:  # it is in the audit record
        logger.info("follow.refused job=%d %s", item.job_id, error)
        return 0
    return int(mine is None or row.pk != mine.pk)
