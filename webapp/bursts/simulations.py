"""Simulated bursts of a cluster under five ways to route; a worker plays them, since that takes seconds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from analytics.bursts.simulate import Scenario, compare
from analytics.model.burst_answers import SimulatedBursts
from analytics.model.plain import from_plain, to_plain
from webapp.bursts.models import ModelVersion, Simulation, SimulationState
from webapp.bursts.selectors import model_of
from webapp.queue import enqueue

TASK = "workers.tasks.bursts.simulate"
INTENSITY_RATIOS = (0.2, 0.5, 0.8, 1.2, 2.0)
MOST_APPLICATIONS = 24
MOST_COMPONENTS = 400
SEED = 7
LENGTH = 200
LOST = timedelta(minutes=3)
"""A simulation that waits for so long has been lost on its way, and is asked for again."""

MEANING = 2
"""Changed whenever the simulator's numbers mean something else: those kept from before are played anew."""

KEPT = 20
"""Simulations of a model; older ones are forgotten when another is asked for."""


def too_large(version: ModelVersion) -> str:
    """Why a cluster is not simulated; "" if it is."""
    count = sum(1 for _ in model_of(version).components())
    if len(version.applications) > MOST_APPLICATIONS or count > MOST_COMPONENTS:
        return f"only up to {MOST_APPLICATIONS} applications and {MOST_COMPONENTS} components are simulated"
    return ""


def ask(version: ModelVersion, rates: Sequence[float]) -> Simulation:
    """The simulation of a model from these normal rates, asked for now if there is none."""
    rounded = [float(f"{rate:.2g}") for rate in rates]  # or every new rate would ask for another one
    key = f"{MEANING};{','.join(f'{rate:g}' for rate in rounded)}"[:200]
    params = {"rates": rounded, "intensity_ratios": list(INTENSITY_RATIOS), "seed": SEED, "length": LENGTH}
    now = timezone.now()
    row, made = Simulation.objects.get_or_create(
        model=version, key=key, defaults={"params": params, "requested_at": now}
    )
    lost = row.state == SimulationState.QUEUED and now - row.requested_at > LOST
    if made or lost:
        Simulation.objects.filter(pk=row.pk).update(requested_at=now)
        transaction.on_commit(lambda: enqueue(TASK, row.pk, queue="interactive"))
        old = Simulation.objects.filter(model=version).order_by("-pk").values_list("pk", flat=True)[KEPT:]
        Simulation.objects.filter(pk__in=list(old)).delete()
    return row


def compute(simulation_id: int) -> None:
    """Play it and keep what came of it, or why nothing did."""
    row = Simulation.objects.select_related("model").filter(pk=simulation_id).first()
    if row is None or row.state == SimulationState.READY:
        return
    scenario = Scenario(length=row.params["length"], seed=row.params["seed"])
    try:
        found = compare(model_of(row.model), row.params["rates"], row.params["intensity_ratios"], scenario)
    except ValueError as error:
        _store(row, SimulationState.FAILED, error=str(error))
        return
    _store(row, SimulationState.READY, payload=[to_plain(one) for one in found])


def _store(row: Simulation, state: SimulationState, **more: Any) -> None:
    Simulation.objects.filter(pk=row.pk).update(state=state, **more)


def results(row: Simulation) -> list[SimulatedBursts]:
    """What came of it; empty while it is under way."""
    return [from_plain(SimulatedBursts, one) for one in row.payload or ()]
