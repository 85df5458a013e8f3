"""What a rescale would change, with all that speaks for and against it: from a recommendation, or by hand."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

from analytics.model.plain import to_plain
from analytics.model.rates import Observation
from analytics.model.reconfigurations import Binding, Prediction, binding_of, drift
from analytics.scaling.rates import source_targets
from webapp.analysis import advice
from webapp.analysis.models import Recommendation
from webapp.analysis.outlook import Outlook, outlook
from webapp.analysis.recommendations import FRESH_NS
from webapp.analysis.scaling_setup import setup_of
from webapp.audit.services import storable
from webapp.jobs import reports
from webapp.jobs.models import Job
from webapp.reconfigurations.errors import InvalidProposalError, OutdatedError
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Kind, Proposal
from webapp.reconfigurations.selectors import current_binding
from webapp.reconfigurations.services import Draft

MADE_IT_WORSE = (State.REGRESSED, State.REVERTING, State.REVERTED, State.REVERT_FAILED)
NOTICEABLY = 0.01
"""Less of a target than this is rounding."""


def recommended(recommendation: Recommendation, reason: str = "") -> Draft:
    """The rescale that a recommendation advises, bound to the job as its policy saw it.

    ``reason`` is that of the person who wants it proposed, if one does.

    Raises
    ------
    OutdatedError
        If the job is not that any more, or the recommendation asks for nothing.
    KeyError, TypeError, ValueError, AttributeError
        If it was written by a release that wrote otherwise.
    """
    job, wanted = recommendation.job, changes_of(recommendation)
    if not wanted:
        raise OutdatedError(f"{recommendation.policy} recommends no change: {recommendation.why}")
    told = advice.tell(recommendation)
    bound, now = binding_of(told.seen.topology), current_binding(job)
    if now is not None and (moved := drift(bound, now)):
        raise OutdatedError(f"the recommendation is about the job as it was: {moved}")
    evidence = {
        "recommendation": recommendation.pk,
        "why": recommendation.why,
        "sentences": list(told.sentences),
        "window_ns": [recommendation.window_start_ns, recommendation.window_end_ns],
        "targets": to_plain(told.seen.targets),
        "undecided": recommendation.undecided,
        "reason": storable(reason),
    }
    return _foreseen(
        job, bound, told.seen, wanted, evidence, policy=recommendation.policy,
        policy_version=recommendation.version, recommendation=recommendation, payload=bytes(recommendation.payload),
        reason=reason,
    )  # fmt: skip


def by_hand(job: Job, parallelism: Mapping[str, int], reason: str = "") -> Draft:
    """The rescale that a person thought of, bound to the job as it runs now.

    Raises
    ------
    InvalidProposalError
        If nothing is known of how the job runs.
    """
    bound = current_binding(job)
    if bound is None:
        raise InvalidProposalError("how the job runs is unknown: its engine was never asked")
    wanted, known = dict(parallelism), bound.parallelism
    possible = wanted and all(key in known and type(n) is int and n > 0 for key, n in wanted.items())
    seen = _newest(job, bound) if possible else None
    if seen is None:
        risks = ("nothing is known of its rates in the last five minutes, so nothing can be predicted",)
        change, told = {"parallelism": wanted}, {"reason": storable(reason)}
        return Draft(Kind.RESCALE, change, bound, evidence=told, risks=risks, reason=reason)
    evidence = {"reason": storable(reason), "window_ns": [seen.window.start_ns, seen.window.end_ns]}
    return _foreseen(job, bound, seen, wanted, evidence, reason=reason)


def changes_of(recommendation: Recommendation) -> dict[str, int]:
    """The instances that a recommendation asks for, by operator id."""
    return {item["operator_id"]: item["proposed"] for item in recommendation.changes}


def _newest(job: Job, bound: Binding) -> Observation | None:
    """What the job's operators did last, if that is recent and of the job as it runs."""
    measured = reports.newest_rates(job)
    if measured is None or measured.window.end_ns < time.time_ns() - FRESH_NS:
        return None
    if drift(binding_of(measured.topology), bound):
        return None
    rates, topology = setup_of(job).targets_per_s, measured.topology
    configured = {item.id: float(rates[item.name]) for item in topology.sources() if item.name in rates}
    return Observation(topology, measured.window, source_targets(topology, measured.window, configured))


def _foreseen(
    job: Job, bound: Binding, seen: Observation, wanted: dict[str, int], evidence: dict[str, Any], **more: Any
) -> Draft:
    """A draft with what the change is expected to bring (DS2's model, whoever thought of it)."""
    found = outlook(job, seen, wanted)
    missed = _missed_per_s(found)
    return Draft(
        kind=Kind.RESCALE,
        change={"parallelism": wanted},
        binding=bound,
        prediction=_prediction(found, seen),
        evidence=evidence | {"outlook": to_plain(found)},
        risks=tuple(_risks(job, found, seen, wanted)),
        shortfall_per_s=missed if math.isfinite(missed) else 0.0,
        **more,
    )


def _prediction(found: Outlook, seen: Observation) -> Prediction:
    ratio = found.after.achieved_ratio
    targets = tuple((item.operator_id, item.rate_per_s) for item in seen.targets)
    backlog = None
    if found.lag_records is not None and found.target_per_s is not None:
        backlog = found.target_per_s * (1 - ratio)
    rates = tuple((key, rate * ratio) for key, rate in targets)
    return Prediction(rates, found.after.utilisation, backlog, targets)


def _missed_per_s(found: Outlook) -> float:
    """By how many records a second the job stays behind its target now."""
    if found.target_per_s is None:
        return 0.0
    if found.delivered_per_s is None:
        return found.target_per_s * (1 - found.before.achieved_ratio)
    return max(0.0, found.target_per_s - found.delivered_per_s)


def _risks(job: Job, found: Outlook, seen: Observation, wanted: dict[str, int]) -> list[str]:
    risks = []
    if not seen.targets:
        risks.append("what its sources should deliver is not known, so nothing can be predicted")
    elif not found.after.complete:
        known = dict(found.after.utilisation)
        sources = {item.id for item in seen.topology.sources()}
        names = [item.name for item in seen.topology.operators if item.id not in known.keys() | sources]
        who = ", ".join(names) or "its operators"
        risks.append(f"what {who} can do is not known, so the prediction may be too good")
    before, after = found.before.achieved_ratio, found.after.achieved_ratio
    if after < before - NOTICEABLY:
        risks.append(f"the job is expected to do {after:.0%} of what it should, now it can do {before:.0%}")
    worse = Proposal.objects.filter(
        job=job, kind=Kind.RESCALE, state__in=MADE_IT_WORSE, change={"parallelism": wanted}
    )
    if (earlier := worse.order_by("-id").first()) is not None:
        risks.append(f"proposal {earlier.pk} asked for the same, and the job did worse")
    return risks
