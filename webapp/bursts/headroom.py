"""The burst headroom that a change of a job leaves: shown with every rescale, and a reason to refuse a scale-down.

If a cluster has the job among its applications, it is the cluster's headroom that counts; else the job's own, as
its newest rates tell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils import timezone

from analytics.bursts.constraints import constraints
from analytics.bursts.derive import MeasuredJob, derive, input_rate, stage_names
from analytics.bursts.headroom import proportional_headroom
from analytics.bursts.highs import SolverError
from analytics.bursts.solver import Solver
from analytics.model.bursts import SLOTS, BurstModel, with_parallelism
from analytics.model.bursts_json import burst_model
from webapp.bursts import selectors
from webapp.bursts.deriving import measured_job
from webapp.bursts.models import Cluster
from webapp.jobs.models import Job
from webapp.reconfigurations.errors import RefusedError


class TooLittleHeadroomError(RefusedError):
    """A scale-down would leave less than the configured burst."""

    code = "too_little_headroom"


@dataclass(frozen=True, slots=True)
class Effect:
    """By how much all inputs can grow before and after a change (None: nothing limits it).

    ``configured`` is the burst that must fit, None if nobody says. ``cluster`` is "" for the job alone, ``version``
    that of the model it was computed from. ``untold`` are operators that change, without the model telling how
    their instances limit them: it has neither a cap nor slots for them. ``uncounted`` are clusters that have the
    job but no answer for the applications of their current model.
    """

    before: float | None
    after: float | None
    configured: float | None
    cluster: str
    version: str
    untold: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As it stands in a proposal's evidence under ``burst_headroom``."""
        return asdict(self) | {"says": self.says}

    @property
    def says(self) -> str:
        """In words."""
        of = f"all inputs of the cluster {self.cluster}" if self.cluster else "the job's input"
        told = f"{of} can grow by {_words(self.after)} after the change, {_words(self.before)} before"
        if self.after is None and self.before is None:
            told = f"nothing that is known limits {of}"
        if self.configured is not None:
            told += f"; the configured burst is {_words(self.configured)}"
        if self.untold:
            told += f"; the model does not tell how instances limit {', '.join(self.untold)}"
        if self.uncounted:
            told += (
                f"; not counted, since there is no answer for its current model: {', '.join(self.uncounted)}"
            )
        return told


def _words(ratio: float | None) -> str:
    return "any amount" if ratio is None else f"{ratio * 100:.3g} %"


def checked_effect(
    job: Job, before: Mapping[str, int], wanted: Mapping[str, int], guard: bool = True
) -> Effect | None:
    """What a change of parallelism (instances by operator id) does to headroom; None if that cannot be told.

    Raises
    ------
    TooLittleHeadroomError
        If ``guard``, an operator would shrink, and less than the configured burst of a cluster would be left.
    """
    factors = {key: wanted[key] / count for key, count in before.items() if key in wanted and count}
    measured = measured_job(job, int(timezone.now().timestamp() * 1e9))
    if measured is None:
        return None
    tried = {cluster.name: _in_cluster(cluster, measured, factors) for cluster in _clusters(job)}
    effects = [found for found in tried.values() if found is not None]
    uncounted = tuple(sorted(name for name, found in tried.items() if found is None))
    if not effects:
        alone = _alone(measured, factors)
        return None if alone is None else replace(alone, uncounted=uncounted)
    effects.sort(key=lambda found: math.inf if found.after is None else found.after)
    shrinks = any(factor < 1 for factor in factors.values())
    refused = next(filter(_too_little, effects), None)  # each cluster has a configured burst of its own
    if guard and shrinks and refused is not None:
        raise TooLittleHeadroomError(f"too little would be left for bursts: {refused.says}")
    return replace(effects[0], uncounted=uncounted)


def _too_little(effect: Effect) -> bool:
    if effect.after is None or effect.configured is None:
        return False
    lower = effect.before is None or effect.after < effect.before - 1e-9
    return lower and effect.after < effect.configured


def _clusters(job: Job) -> list[Cluster]:
    """Clusters of the job's group, by people who may change its jobs, with this job among their applications."""
    rows = Cluster.objects.filter(group_id=job.group_id, guards=True)
    return list(rows.filter(versions__superseded_at=None, versions__applications__contains=[job.name]))


def _in_cluster(cluster: Cluster, measured: MeasuredJob, factors: Mapping[str, float]) -> Effect | None:
    standing = selectors.standing(cluster)
    answers = standing.answers
    if standing.model is None or answers is None or not standing.comparable:
        return None  # the rates of another model's applications tell nothing about these
    model = selectors.model_of(standing.model)
    return _effect(model, answers.headroom.rates, measured, factors, cluster.name, cluster.burst_ratio)


def _alone(measured: MeasuredJob, factors: Mapping[str, float]) -> Effect | None:
    rate = input_rate(measured.topology, measured.windows[-1])
    document, _ = derive([measured])
    if not rate or not document["applications"]:
        return None
    try:
        model, _ = burst_model(document)
    except ValueError:  # rates that make no sense make no model
        return None
    return _effect(model, (rate,), measured, factors, "", None)


def _effect(
    model: BurstModel,
    rates: tuple[float, ...],
    measured: MeasuredJob,
    factors: Mapping[str, float],
    cluster: str,
    configured: float | None,
) -> Effect | None:
    names = stage_names(measured.topology)
    stages = {names[key]: factor for key, factor in factors.items() if key in names}
    try:
        before, after = (
            proportional_headroom(Solver(constraints(one)), rates) - 1
            for one in (model, with_parallelism(model, measured.name, stages))
        )
    except (ValueError, SolverError):
        return None
    untold = _untold(model, measured.name, stages)
    return Effect(_finite(before), _finite(after), configured, cluster, model.version, untold)


def _untold(model: BurstModel, name: str, factors: Mapping[str, float]) -> tuple[str, ...]:
    """Stages that change and have, as the model knows them, nothing that instances bring."""
    limited = {
        stage.name
        for application, stage, component in model.components()
        if application.name == name and (component.cap is not None or SLOTS in component.cost)
    }
    return tuple(sorted(stage for stage, factor in factors.items() if factor != 1 and stage not in limited))


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None
