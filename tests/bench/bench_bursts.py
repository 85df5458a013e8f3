"""How long burst feasibility takes: exact answers cold and warm, the index, the cache, the maps, and large models.

Run it with ``python -m tests.bench.bench_bursts``; it prints JSON.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

from analytics.bursts.constraints import constraints
from analytics.bursts.cuts import CutCache
from analytics.bursts.headroom import headroom, joint_headroom, node_losses
from analytics.bursts.index import Lookup, point_index
from analytics.bursts.region import pair_region
from analytics.bursts.simulate import Scenario, compare
from analytics.bursts.solver import Solver
from analytics.model.burst_answers import Strategy
from analytics.model.bursts import BurstModel
from tests.support.burst_models import random_model

INTENSITIES = (0.2, 0.5, 0.8)


def measure() -> dict[str, float]:
    """Milliseconds; the worse of one and two resources."""
    both = [_papers_size(random_model(3, applications=12, nodes=10, resources=j)) for j in (1, 2)]
    found = {name: max(one[name] for one in both) for name in both[0]}
    return found | _large(random_model(3, applications=100, nodes=200, resources=2, services=200)) | _bursts()


def _papers_size(model: BurstModel) -> dict[str, float]:
    count = len(model.applications)
    solver = Solver(constraints(model))
    rates = 0.5 * np.full(count, joint_headroom(solver, np.zeros(count)).value)
    walk = _walk(rates, 1000)
    cold = [_ms(lambda: joint_headroom(Solver(constraints(model)), rates)) for _ in range(30)]
    warm = [_ms(lambda p=p: joint_headroom(solver, p)) for p in walk]
    cache = CutCache(solver)
    solved, looked = 0, []
    for p in walk:
        begin = time.perf_counter()
        was_solved = cache.answer(p).solved
        solved += was_solved
        if not was_solved:
            looked.append(1e3 * (time.perf_counter() - begin))
    axes = [_ms(lambda: point_index(solver, tolerance=np.inf)) for _ in range(5)]
    index = point_index(solver, tolerance=np.inf)
    assert index is not None
    lookup = Lookup(index)
    served = [_ms(lambda p=p: lookup.plan(p, index.version)) for p in walk]
    pairs = list(combinations(range(count), 2))
    return {
        "cold_ms": float(np.median(cold)),
        "warm_p95_ms": float(np.percentile(warm, 95)),
        "cached_us": 1e3 * float(np.median(looked)),
        "cached_p95_us": 1e3 * float(np.percentile(looked, 95)),
        "cache_misses_ratio": solved / len(walk),
        "index_ms": float(np.median(axes)),
        "index_lookup_us": 1e3 * float(np.median(served)),
        "every_answer_ms": min(_ms(lambda: headroom(solver, rates)) for _ in range(3)),
        "losses_ms": min(_ms(lambda: node_losses(solver, rates)) for _ in range(3)),
        "maps_ms": min(_ms(lambda: [pair_region(solver, rates, i, j) for i, j in pairs]) for _ in range(2)),
    }


def _large(model: BurstModel) -> dict[str, float]:
    none = np.zeros(len(model.applications))
    begin = time.perf_counter()
    solver = Solver(constraints(model))
    most = joint_headroom(solver, none).value
    first = 1e3 * (time.perf_counter() - begin)
    drift = [_ms(lambda p=p: joint_headroom(solver, p)) for p in _walk(none + 0.5 * most, 50)]
    return {"large_first_ms": first, "large_drift_p95_ms": float(np.percentile(drift, 95))}


def _bursts() -> dict[str, float]:
    """Missed share of what was offered, by strategy and intensity; 80 % more of everything just fits."""
    missed: dict[str, float] = {}
    seeds = range(3)
    for seed in seeds:
        model = random_model(seed, applications=6, nodes=10, resources=1 + seed % 2)
        shape = np.random.default_rng(seed).uniform(0.5, 1, 6)
        rates = shape * Solver(constraints(model)).along(np.zeros(6), shape).value / 1.8
        for one in compare(model, rates, INTENSITIES, Scenario(seed=seed)):
            name = missed_name(one.strategy, one.intensity_ratio)
            missed[name] = missed.get(name, 0.0) + one.missed / one.offered / len(seeds)
    return missed


def missed_name(strategy: Strategy, intensity_ratio: float) -> str:
    """The key of a simulated figure."""
    return f"missed {strategy} {intensity_ratio:g}"


def _walk(rates: np.ndarray, steps: int) -> list[np.ndarray]:
    """Rates that drift by up to two per cent a step."""
    rng = np.random.default_rng(7)
    walk = [rates]
    for _ in range(steps - 1):
        walk.append(np.clip(walk[-1] * rng.uniform(0.98, 1.02, len(rates)), 0.2 * rates, 1.8 * rates))
    return walk


def _ms(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begin)


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
