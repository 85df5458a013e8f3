"""The plan for any rates, looked up in the index that a Spark job built beforehand.

It is BARRE's online half: from the nearest points, in microseconds once the index is loaded; where the index has no
plan that carries the rates, or there is none yet, the linear program answers. Every answer says which.
"""

from __future__ import annotations

import math
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
    rates do not fit. ``target`` are the largest inputs the plan handles. ``found`` is ``near``, ``any_side`` or
    ``program`` (``analytics.bursts.index.Found``).
    """

    found: str
    growth: float
    rates: dict[str, float]
    target: dict[str, float]
    plan: dict[str, float]
    fractions: dict[str, float]


def rates_of(text: str) -> dict[str, float]:
    """Inputs written as on the command line: ``app1=0.05,app2=0.05``.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.rpartition("=")
        try:
            rate = float(number)
        except ValueError:
            rate = -1.0
        if not (name and equals and math.isfinite(rate) and rate >= 0):
            raise ValueError(f"expected app1=0.05,app2=0.05, not {part[:60]!r}")
        found[name] = rate
    return found


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
    with live.solver(model) as warm:
        found = planned(warm, _lookup(row.pk, model.version), start)
        shares = fractions(warm.rows, found.plan)
    components = [one.name for _, _, one in model.components()]
    return RatesPlan(
        found=found.found.value,
        growth=found.growth,
        rates=dict(zip(names, start.tolist(), strict=True)),
        target=dict(zip(names, found.target.tolist(), strict=True)),
        plan=dict(zip(components, found.plan.tolist(), strict=True)),
        fractions=dict(zip(components, shares.tolist(), strict=True)),
    )


def _lookup(model_id: int, version: str) -> Lookup | None:
    """The stored index, ready; None if there is none (yet)."""
    found = _loaded(model_id, version)
    if found is None:
        _loaded.cache_clear()  # a worker may be building it
    return found


@lru_cache(maxsize=16)
def _loaded(model_id: int, version: str) -> Lookup | None:
    body = ModelVersion.objects.values_list("index", flat=True).filter(pk=model_id).first()
    if not body:
        return None
    index = unpacked(bytes(body))
    return Lookup(index) if index.version == version else None
