"""What the apply task writes down: who works on an attempt, how far it got, and how it ended.

Every write names its holder: a worker that was given up (its lease ran out) finds nothing to write to, and stops.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from webapp.reconfigurations import policies
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Attempt, EngineKind, Proposal, Step
from webapp.reconfigurations.steps import locked, move
from webapp.telemetry.models import Annotation

LEASE = timedelta(seconds=45)
"""Longer than any one request may take."""

WORKER = "worker"


class LostLeaseError(RuntimeError):
    """Somebody else works on the attempt now, or it is over."""


def due() -> list[int]:
    """Proposals that somebody must work on now: approved ones, and attempts nobody holds."""
    now = timezone.now()
    approved = Proposal.objects.filter(state=State.APPROVED).values_list("pk", flat=True)
    left = Attempt.objects.filter(finished_at=None, lease_until__lte=now).values_list(
        "proposal_id", flat=True
    )
    return [*approved, *left]


def claim(proposal_id: int, holder: str) -> Attempt | None:
    """Begin to apply an approved proposal, or go on where a worker stopped; None if there is nothing to do now."""
    with transaction.atomic():
        proposal = locked(proposal_id)
        now = timezone.now()
        if proposal.state == State.APPROVED:
            return _begin(proposal, holder, now)
        if proposal.state != State.APPLYING:
            return None
        mine = Attempt.objects.filter(proposal=proposal, finished_at=None, lease_until__lte=now)
        attempt = mine.select_for_update(of=("self",)).first()
        if attempt is None:
            return None
        attempt.proposal = proposal
        attempt.holder, attempt.lease_until = holder, now + LEASE
        attempt.takeovers += 1
        attempt.save(update_fields=["holder", "lease_until", "takeovers"])
        return attempt


def _begin(proposal: Proposal, holder: str, now: datetime) -> Attempt | None:
    rules = policies.rules_of(proposal.job)
    kept_for = timedelta(seconds=rules.expires_after_s)
    too_late = proposal.decided_at is not None and now > proposal.decided_at + kept_for
    wait = policies.why_not_now(proposal, now)
    if wait and not too_late:
        if wait != proposal.state_reason:
            Proposal.objects.filter(pk=proposal.pk).update(state_reason=wait)
        return None
    move(proposal, State.APPLYING, who=WORKER, action="apply", detail={"holder": holder})
    if (undone := _undone(proposal, State.REGRESSED)) is not None:
        why = f"proposal {proposal.pk} takes it back"
        move(undone, State.REVERTING, who=WORKER, action="revert", reason=why)
    attempt = Attempt.objects.create(
        proposal=proposal, engine=rules.engine, holder=holder, lease_until=now + LEASE
    )
    if too_late:
        finish(attempt, False, f"it was approved, but waited too long ({wait or 'no worker was there'})")
        return None
    return attempt


def hold(attempt: Attempt, **changes: Any) -> None:
    """Write how far the attempt got, and keep it.

    Raises
    ------
    LostLeaseError
        If it is not the holder's any more: nothing was written, and nothing more may be sent.
    """
    mine = Attempt.objects.filter(pk=attempt.pk, holder=attempt.holder, finished_at=None)
    if mine.update(lease_until=timezone.now() + LEASE, **changes) != 1:
        raise LostLeaseError(f"attempt {attempt.pk} is somebody else's now")
    for name, value in changes.items():
        setattr(attempt, name, value)


def note(attempt: Attempt, exchange: dict[str, Any]) -> None:
    """Keep a request and its answer. Raises like ``hold``."""
    hold(attempt, exchanges=[*attempt.exchanges, exchange])


def let_go(attempt: Attempt) -> None:
    """Let whoever comes next go on with the attempt."""
    mine = Attempt.objects.filter(pk=attempt.pk, holder=attempt.holder, finished_at=None)
    mine.update(lease_until=timezone.now())


def finish(
    attempt: Attempt, applied: bool, outcome: str, *, after: dict[str, Any] | None = None, rescale: Any = None
) -> None:
    """End the attempt and move the proposal, with the one it undoes, in one transaction.

    Raises
    ------
    LostLeaseError
        If the attempt is somebody else's now.
    """
    with transaction.atomic():
        proposal = locked(attempt.proposal_id)
        now = timezone.now()
        hold(attempt, step=Step.FINISHED, finished_at=now, outcome=outcome, after=after, rescale=rescale)
        detail = {"attempt": attempt.pk, "engine": attempt.engine}
        if applied:
            move(
                proposal, State.APPLIED, who=WORKER, action="applied", reason=outcome, detail=detail, applied_at=now
            )  # fmt: skip
            _annotate(proposal, attempt, now)
        else:
            move(
                proposal, State.APPLY_FAILED, who=WORKER, action="apply_failed", reason=outcome, detail=detail
            )
        if (undone := _undone(proposal, State.REVERTING)) is not None:
            to = State.REVERTED if applied else State.REVERT_FAILED
            move(undone, to, who=WORKER, action=to.value, reason=f"by proposal {proposal.pk}: {outcome}")


def _undone(proposal: Proposal, state: State) -> Proposal | None:
    """The proposal this one takes back, locked, if it is in this state."""
    if proposal.undoes_id is None:
        return None
    undone = locked(proposal.undoes_id)
    return undone if undone.state == state else None


def _annotate(proposal: Proposal, attempt: Attempt, ended: datetime) -> None:
    """Mark the change on every chart of the job; a dry run changes nothing."""
    if attempt.engine == EngineKind.DRY_RUN:
        return
    began = attempt.sent_at or ended
    times = {"start_ns": int(began.timestamp() * 1e9), "end_ns": int(ended.timestamp() * 1e9)}
    done = "Went back" if proposal.undoes_id else "Applied"
    if attempt.engine == EngineKind.WEBHOOK:
        done = "Handed over"  # what its receiver makes of it is not seen
    label = f"{done}: {described(proposal)}"[:500]
    Annotation.objects.update_or_create(
        job=proposal.job, kind="reconfiguration", key=str(proposal.pk), defaults={"label": label, **times}
    )


def described(proposal: Proposal) -> str:
    """What a proposal changes, in a line."""
    bound = {item["id"]: item for item in proposal.binding.get("operators", [])}
    wanted = proposal.change.get("parallelism")
    if not wanted:
        return proposal.get_kind_display()
    parts = [
        f"{bound[key]['name']} {bound[key]['parallelism']} → {count}"
        for key, count in wanted.items()
        if key in bound and bound[key]["parallelism"] != count
    ]
    return ", ".join(parts)
