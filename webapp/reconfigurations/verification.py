"""Writing down what became of a prediction, and offering the way back from what made things worse."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from analytics.model.plain import from_plain, to_plain
from analytics.model.reconfigurations import Binding, Observed, Prediction
from analytics.verification.judge import Outcome, Verdict
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import ChangePolicy, EngineKind, Kind, Proposal
from webapp.reconfigurations.selectors import current_binding
from webapp.reconfigurations.services import Draft, propose
from webapp.reconfigurations.steps import locked, move

logger = logging.getLogger(__name__)

PATIENCE = timedelta(minutes=10)
"""How long after settling it is waited for measurements, and for a backlog to be worked off."""

MEASURED_BEFORE = timedelta(minutes=5)
_STATES = {
    Outcome.VERIFIED: State.VERIFIED,
    Outcome.INCONCLUSIVE: State.INCONCLUSIVE,
    Outcome.REGRESSED: State.REGRESSED,
}


def to_verify() -> QuerySet[Proposal]:
    """Applied proposals without a verdict."""
    return Proposal.objects.filter(state=State.APPLIED).select_related("job", "job__change_policy", "attempt")


def changed_again(proposal: Proposal) -> Proposal | None:
    """A later change of the same job, after which the prediction cannot be checked any more."""
    later = Proposal.objects.filter(job_id=proposal.job_id, applied_at__gt=proposal.applied_at)
    return later.exclude(attempt__engine=EngineKind.DRY_RUN).order_by("applied_at").first()


def settle_verdict(proposal_id: int, verdict: Verdict) -> Proposal | None:
    """Write the verdict, and with it the proposal to go back if things got worse; None if it has one already.

    Both are in one transaction, so a worker that dies leaves neither.
    """
    with transaction.atomic():
        # The job's rules first, as everybody does who proposes: the way back is proposed below.
        ChangePolicy.objects.select_for_update(of=("self",)).filter(job__proposals=proposal_id).first()
        proposal = locked(proposal_id)
        if proposal.state != State.APPLIED:
            return None
        plain = to_plain(verdict) | {"judged_at": timezone.now().isoformat()}
        reason = "; ".join(verdict.reasons)
        detail = {"outcome": verdict.outcome.value}
        move(
            proposal, _STATES[verdict.outcome], who="verification", action="verify", reason=reason, detail=detail,
            verdict=plain,
        )  # fmt: skip
        if verdict.outcome is Outcome.REGRESSED and proposal.undoes_id is None:
            _offer_way_back(proposal, verdict)
        return proposal


def way_back(proposal: Proposal, verdict: Verdict | None = None) -> Draft:
    """What takes an applied rescale back: the instances of before, bound to the job as it runs since."""
    bound = from_plain(Binding, proposal.binding)
    wanted: dict[str, int] = proposal.change["parallelism"]
    after = proposal.attempt.after
    if after is not None:
        now = from_plain(Observed, after).running
    else:
        operators = tuple(
            replace(item, parallelism=wanted.get(item.id, item.parallelism)) for item in bound.operators
        )
        now = replace(bound, operators=operators)
    seen = current_binding(proposal.job)
    if seen is not None and (seen.engine_job_id, seen.parallelism) == (now.engine_job_id, now.parallelism):
        now = seen  # it may have been restarted since, by a failure
    findings = () if verdict is None else verdict.findings
    known = {
        what: tuple((item.operator_id, item.before) for item in findings if item.what == what and item.before)
        for what in ("source_rate_per_s", "utilisation")
    }
    lost = sum(
        max(0.0, (f.before or 0) - f.after) for f in findings if f.what == "source_rate_per_s" and f.after
    )
    return Draft(
        kind=Kind.RESCALE,
        change={"parallelism": {key: bound.parallelism[key] for key in wanted}},
        binding=now,
        prediction=Prediction(known["source_rate_per_s"], known["utilisation"]),
        evidence={"undoes": proposal.pk, "reasons": list(verdict.reasons) if verdict else []},
        policy="verification",
        policy_version=1,
        shortfall_per_s=lost,
        undoes=proposal,
    )


def _offer_way_back(proposal: Proposal, verdict: Verdict) -> None:
    if proposal.kind != Kind.RESCALE:
        return
    try:
        propose(None, proposal.job, way_back(proposal, verdict))
    except RefusedError as error:  # it is in the audit record; the verdict stands all the same
        logger.warning("verify.no_way_back proposal=%d %s", proposal.pk, error)


def inconclusive(*reasons: str) -> Verdict:
    """A verdict for what cannot be judged."""
    return Verdict(Outcome.INCONCLUSIVE, reasons, ())


def names_of(proposal: Proposal) -> dict[str, str]:
    """The operators' names by id."""
    operators: list[dict[str, Any]] = proposal.binding.get("operators", [])
    return {item["id"]: item["name"] for item in operators}
