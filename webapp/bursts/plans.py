"""The plan for any rates, looked up in the index that a Spark job built beforehand.

It is BARRE's online half: from the nearest points, in microseconds once the index is loaded; where the index has no
plan that carries the rates, or there is none yet, the linear program answers. Every answer says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from analytics.bursts.assignment import fractions
from analytics.bursts.index import Lookup, planned, unpacked
from webapp.bursts import live
from webapp.bursts.models import ModelVersion
from webapp.bursts.selectors import model_of


@dataclass(frozen=True)
class RatesPlan:
    """What each component handles, by name.

    ``growth`` is by how much every input can grow at once without another plan, in the model's unit; below 0 the
    rates do not fit. No plan lets them grow by more than ``growth_at_most``, which cached cuts certify (None:
    nothing limits them). ``target`` are the largest inputs the plan handles. ``found`` is ``near``, ``any_side`` or
    ``program`` (``analytics.bursts.index.Found``).
    """

    found: str
    growth: float
    growth_at_most: float | None
    rates: dict[str, float]
    target: dict[str, float]
    plan: dict[str, float]
    fractions: dict[str, float]


def plan_for(row: ModelVersion, rates: Mapping[str, float]) -> RatesPlan:
    """The plan of a stored model for these inputs; applications that are not named have none.

    Raises
    ------
    ValueError
        If an application is not the model's, or a rate is no finite number of at least 0.
    """
    model = model_of(row)
    names = [one.name for one in model.applications]
    if strange := sorted(set(rates) - set(names)):
        raise ValueError(f"the model has no application {', '.join(strange)}")
    start = np.array([rates.get(name, 0.0) for name in names])
    lookup = _lookup(row.pk, model.version, row.index_points)
    with live.solver_and_cuts(model) as (warm, cuts):
        found = planned(warm, lookup, start)
        at_most = max(cuts.answer(start).upper, found.growth)
        shares = fractions(warm.rows, found.plan)
    components = [one.name for _, _, one in model.components()]
    return RatesPlan(
        found=found.found.value,
        growth=found.growth,
        growth_at_most=at_most if np.isfinite(at_most) else None,
        rates=dict(zip(names, start.tolist(), strict=True)),
        target=dict(zip(names, found.target.tolist(), strict=True)),
        plan=dict(zip(components, found.plan.tolist(), strict=True)),
        fractions=dict(zip(components, shares.tolist(), strict=True)),
    )


@lru_cache(maxsize=16)
def _lookup(model_id: int, version: str, points: int | None) -> Lookup | None:
    """The stored index with so many points, ready; None if there is none (yet)."""
    if not points:
        return None
    body = ModelVersion.objects.values_list("index", flat=True).get(pk=model_id)
    index = unpacked(bytes(body or b""))
    return Lookup(index) if index.version == version else None
