"""What a recommended change is expected to bring, and what it costs.

Whatever the policy, what to expect follows from what each operator needs (DS2's model): a policy's own numbers may
hold reserves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from analytics.model.rates import Observation
from analytics.scaling.ds2 import decide
from analytics.scaling.explain import Prediction, predict
from analytics.scaling.rates import total
from webapp.jobs.models import Job
from webapp.telemetry.models import Annotation

RESCALES = 5
"""Of so many of the last ones the middle length is told."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """Before and after a change of parallelism.

    ``delivered_per_s`` is what the sources were seen to deliver, None if an instance did not report it, and
    ``target_per_s`` what they should, None if that is not known of all. ``slots`` are what a job needs if its
    operators share slots: the largest parallelism. ``lag_records`` wait outside the job, as far as sources tell;
    ``catch_up_s`` is how long they take to be worked off afterwards, None if they never are. ``restart_ns`` is how
    long the last rescales took.
    """

    before: Prediction
    after: Prediction
    delivered_per_s: float | None
    target_per_s: float | None
    instances: tuple[int, int]
    slots: tuple[int, int]
    lag_records: float | None
    catch_up_s: float | None
    restart_ns: float | None


def outlook(job: Job, seen: Observation, changes: Mapping[str, int]) -> Outlook:
    """What is to be expected if the operators in ``changes`` get that parallelism."""
    now = {operator.id: operator.parallelism for operator in seen.topology.operators}
    then = {**now, **changes}
    needs = decide(seen)
    after = predict(needs, then)
    target = _target(seen)
    lag = _lag(seen)
    spare = headroom(after)
    catch_up = lag / (target * spare) if lag and target and spare else None
    return Outlook(
        predict(needs, now), after, _delivered(seen), target,
        (sum(now.values()), sum(then.values())),
        (max(now.values(), default=0), max(then.values(), default=0)),
        lag, catch_up, _restart_ns(job),
    )  # fmt: skip


def headroom(prediction: Prediction) -> float | None:
    """By how much of what it gets now the input may grow; None if it cannot be told of every operator."""
    if not prediction.complete or not prediction.utilisation:
        return None
    if prediction.achieved_ratio < 1:
        return 0.0
    busiest = max(share for _, share in prediction.utilisation)
    return 1 / busiest - 1 if busiest > 0 else None


def _target(seen: Observation) -> float | None:
    known = {item.operator_id: item.rate_per_s for item in seen.targets}
    sources = seen.topology.sources()
    if not sources or any(operator.id not in known for operator in sources):
        return None
    return total(known[operator.id] for operator in sources)


def _delivered(seen: Observation) -> float | None:
    rates = {item.operator_id: item for item in seen.window.operators}
    found: list[float] = []
    for operator in seen.topology.sources():
        known = rates.get(operator.id)
        sent = [item.observed_output_per_s for item in known.instances] if known else []
        numbers = [rate for rate in sent if rate is not None]
        if len(numbers) < operator.parallelism:
            return None
        found += numbers
    return total(found) if found else None


def _lag(seen: Observation) -> float | None:
    known = [item.lag_last for item in seen.window.operators if item.lag_last is not None]
    return total(known) if known else None


def _restart_ns(job: Job) -> float | None:
    rows = Annotation.objects.filter(job=job, kind="rescale").order_by("-start_ns")[:RESCALES]
    lengths = [row.end_ns - row.start_ns for row in rows]
    return median(lengths) if lengths else None
