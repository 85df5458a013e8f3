"""Moving a proposal along its life: every step is checked against the table and written to the audit record."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import User
from webapp.audit.services import Entry, record, record_refused
from webapp.reconfigurations import lifecycle
from webapp.reconfigurations.errors import BusyError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal


def locked(proposal_id: int) -> Proposal:
    """The proposal, its row locked until the transaction ends; others may still refer to it.

    Raises
    ------
    Proposal.DoesNotExist
        If there is none.
    """
    rows = (
        Proposal.objects.select_for_update(of=("self",), no_key=True).select_related("job").defer("payload")
    )
    return rows.get(pk=proposal_id)


def move(
    proposal: Proposal, to: State, *, who: User | str, action: str, reason: str = "", loud: bool = False,
    detail: dict[str, Any] | None = None, **changes: Any,
) -> None:  # fmt: skip
    """Take a step; the caller holds the row's lock. ``changes`` are other columns that change with it.

    Raises
    ------
    BusyError
        If another change of the job is on its way.
    """
    lifecycle.check(proposal.state, to)
    before = proposal.state
    for name, value in changes.items():
        setattr(proposal, name, value)
    proposal.state, proposal.state_reason = to, reason
    proposal.version, proposal.changed_at = proposal.version + 1, timezone.now()
    try:
        with transaction.atomic():
            proposal.save()
    except IntegrityError as error:
        if "one_in_flight" not in str(error):
            raise
        raise BusyError("another change of this job is on its way") from error
    told = {
        "from": before,
        "to": to.value,
        "kind": proposal.kind,
        "change": proposal.change,
        **(detail or {}),
    }
    record(entry(proposal, who, action, reason, loud=loud, detail=told))


def entry(
    proposal: Proposal, who: User | str, action: str, reason: str, *, loud: bool = False,
    detail: dict[str, Any] | None = None,
) -> Entry:  # fmt: skip
    """A line of the audit record about a proposal."""
    job = proposal.job
    return Entry(
        who, f"proposal.{action}", "proposal", proposal.pk, job.pk, job.name, reason, detail or {}, loud
    )


def refused(proposal_id: int, who: User, action: str, why: str, given_reason: str) -> None:
    """Write down that somebody tried in vain, whether or not there is such a proposal."""
    proposal = Proposal.objects.select_related("job").filter(pk=proposal_id).first()
    detail = {"given_reason": given_reason} if given_reason else {}
    if proposal is None:
        record_refused(Entry(who, f"proposal.{action}", "proposal", proposal_id, reason=why, detail=detail))
    else:
        record_refused(entry(proposal, who, action, why, detail={**detail, "state": proposal.state}))
