"""From a cluster's plan to a proposal: the shares of one job's components, rounded to whole key groups."""

from __future__ import annotations

from typing import Any

from analytics.model.reconfigurations import Binding
from webapp.accounts.models import User
from webapp.bursts import live, selectors
from webapp.bursts.models import Cluster
from webapp.bursts.policies import jobs_of
from webapp.jobs.models import Job
from webapp.reconfigurations import services
from webapp.reconfigurations.errors import InvalidProposalError
from webapp.reconfigurations.models import EngineKind, Kind, Proposal
from webapp.reconfigurations.policies import rules_of
from webapp.reconfigurations.selectors import current_binding
from webapp.reconfigurations.services import Draft

POLICY_VERSION = 1


def jobs_in(cluster: Cluster) -> dict[str, Job]:
    """The jobs that are applications of the cluster's current model, by name."""
    model = cluster.versions.filter(superseded_at=None).first()
    names = model.applications if model else []
    return {job.name: job for job in jobs_of(cluster).filter(name__in=names)}


def shareable(cluster: Cluster) -> list[str]:
    """Those of them with a stage on several components: of the others nothing can be shared out."""
    row = cluster.versions.filter(superseded_at=None).first()
    jobs = {} if row is None else jobs_in(cluster)
    if row is None or not jobs:
        return []
    split = {
        application.name
        for application, stage, _ in selectors.model_of(row).components()
        if len(stage.components) > 1
    }
    return [name for name in jobs if name in split]


def propose_rebalance(actor: User, cluster: Cluster, job: Job, reason: str = "") -> Proposal:
    """Propose that a job routes by the shares that carry every burst up to the cluster's headroom.

    The shares of all applications make one plan: the headroom holds once all of them route by it.

    Raises
    ------
    RefusedError
        If the cluster has no answers, nothing could be shared out, the job's engine moves no keys, or the actor
        may not propose.
    """
    services.check_may_propose(actor, job)
    rules = rules_of(job)
    if rules.engine == EngineKind.FLINK:
        raise InvalidProposalError(
            "Flink's REST API moves no keys between instances; a signed webhook can hand the shares to who does"
        )
    standing = selectors.standing(cluster)
    answers = standing.answers
    if standing.model is None or answers is None or standing.stale:
        raise InvalidProposalError(f"there are no answers yet for the current model of {cluster.name}")
    model = selectors.model_of(standing.model)
    found, odd = live.routing(model, answers.headroom.rates)
    shares = _shares(model, job.name, found)
    if not shares:
        raise InvalidProposalError(
            f"every stage of {job.name} runs on one node: there is nothing to share out"
        )
    if any(item.example == job.name for item in odd):
        raise InvalidProposalError(f"the shares of {job.name} follow from its edges, and cannot be rounded")
    change = {
        "rebalance": {
            "cluster": cluster.name,
            "model": found.version,
            "groups": found.groups,
            "components": shares,
        }
    }
    others = [one.name for one in model.applications if one.name != job.name]
    headroom = {
        "all_by": answers.headroom.joint, "any_one_by": answers.headroom.single, "exact_all_by": found.joint,
        "exact_any_one_by": found.single, "rounded_all_by": found.rounded_joint,
        "rounded_any_one_by": found.rounded_single,
    }  # fmt: skip
    says = (
        f"rounded to {found.groups} key groups, all inputs of {cluster.name} can grow by"
        f" {found.rounded_joint:.4g} each without a change of routing (exact shares: {found.joint:.4g})"
    )
    return services.propose(
        actor,
        job,
        Draft(
            kind=Kind.REBALANCE,
            change=change,
            binding=current_binding(job) or Binding(job.engine_job_id, None, ()),
            evidence={
                "why": f"with these shares every burst up to the headroom fits: {says}",
                "reason": reason,
                "rates": dict(
                    zip([one.name for one in model.applications], answers.headroom.rates, strict=True)
                ),
                "headroom": {name: _plain(value) for name, value in headroom.items()},
                "burst_headroom": {"says": says},
            },
            policy_version=POLICY_VERSION,
            risks=(f"it holds once {', '.join(others)} route by the same plan",) if others else (),
            reason=reason,
        ),
    )


def _shares(model: Any, name: str, found: Any) -> dict[str, dict[str, Any]]:
    """Share and key groups of each component, of stages with several."""
    return {
        one.name: {
            "stage": stage.name, "node": one.node, "share": found.fractions[k], "key_groups": found.key_groups[k],
        }
        for k, (application, stage, one) in enumerate(model.components())
        if application.name == name and len(stage.components) > 1
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return value if abs(value) < float("inf") else None
