"""Dhalion scales the one operator that holds up the job, by Heron's published factor."""

from dataclasses import replace

import pytest

from analytics.model.decisions import Decision, Move
from analytics.model.rates import Observation, OperatorRates
from analytics.scaling.dhalion import (
    OVER,
    UNDER,
    DhalionSettings,
    DhalionState,
    DhalionTiming,
    decide,
    scaled_up,
    step,
)
from analytics.scaling.skew import Diagnosis, diagnose, is_skewed
from tests.support.dataflows import chain, observation, rates


# ScaleUpResolverTest: instances, their back-pressure in ms/s, instances afterwards.
@pytest.mark.parametrize(
    ("instances", "backpressure_ms", "new"),
    [(2, [500.0], 4), (2, [750.0], 8), (3, [400.0, 100.0], 6), (2, [5000.0], 10), (1, [900.0], 5)],
)
def test_the_published_factor(instances: int, backpressure_ms: list[float], new: int) -> None:
    assert scaled_up(instances, backpressure_ms) == new


# The tests of Heron's detectors: the largest value, the smallest, the ratio, whether that is skew.
@pytest.mark.parametrize(
    ("values", "ratio", "skewed"),
    [
        ([1000.0, 200.0], 2.5, True),
        ([1000.0, 500.0], 2.5, False),
        ([1501.0, 100.0], 15.0, True),
        ([1500.0, 110.0], 15.0, False),
        ([7.0], 1.5, False),
        ([0.0, 0.0], 20.0, False),
    ],
)
def test_the_published_detectors_of_skew(values: list[float], ratio: float, skewed: bool) -> None:
    assert is_skewed(values, ratio) is skewed


def differing(speeds: list[float], queues: list[float | None]) -> OperatorRates:
    """An operator whose instances process and queue so much."""
    found = tuple(
        replace(item, observed_processing_per_s=speed, queued=queue)
        for item, speed, queue in zip(
            rates("a", 1e4, 1e4, instances=len(speeds)).instances, speeds, queues, strict=True
        )
    )
    return OperatorRates("a", len(speeds), found)


# The tests of Heron's diagnosers: executed and queued by instance, and what comes of it.
@pytest.mark.parametrize(
    ("speeds", "queues", "found"),
    [
        ([2000.0], [10_000.0], (Diagnosis.UNDER_PROVISIONED, ())),
        ([2000.0] * 3, [500.0] * 3, (Diagnosis.UNDER_PROVISIONED, ())),
        ([2000.0] * 3, [1000.0, 20.0, 20.0], (Diagnosis.SLOW_INSTANCE, (0,))),
        ([5000.0, 2000.0, 2000.0], [10_000.0, 500.0, 499.0], (Diagnosis.DATA_SKEW, (0,))),
        ([5000.0, 2000.0, 2000.0], [1.0, 500.0, 500.0], (Diagnosis.UNCLEAR, ())),
        ([100.0, 2000.0, 2000.0], [10_000.0, 499.0, 499.0], (Diagnosis.UNCLEAR, ())),
        ([5000.0, 2000.0, 2000.0], [500.0] * 3, (Diagnosis.UNCLEAR, ())),
        ([5000.0, 2000.0, 2000.0], [None, 500.0, 500.0], (Diagnosis.UNDER_PROVISIONED, ())),
    ],
)
def test_the_published_diagnoses(
    speeds: list[float], queues: list[float | None], found: tuple[Diagnosis, tuple[int, ...]]
) -> None:
    assert diagnose(differing(speeds, queues)) == found


@pytest.mark.parametrize(
    ("queues", "why"),
    [
        ([40.0, 1.0], "a holds up the job, by data skew, which more instances do not cure: too much goes to 0"),
        ([15.0, 15.0], "a holds up the job, but its instances differ, and no diagnosis fits"),
    ],
)  # fmt: skip
def test_more_instances_are_not_asked_for_where_they_would_not_help(queues: list[float], why: str) -> None:
    seen = job(50.0)
    uneven = tuple(
        replace(item, observed_processing_per_s=speed, queued=queue)
        for item, speed, queue in zip(seen.window.operators[1].instances, (40.0, 10.0), queues, strict=True)
    )
    operators = (seen.window.operators[0], replace(seen.window.operators[1], instances=uneven),
                 seen.window.operators[2])  # fmt: skip
    decision = decide(replace(seen, window=replace(seen.window, operators=operators)))
    assert decision.changes == {}
    assert decision.note == why


def job(delivered: float, *, a_busy: float = 1.0, b_busy: float = 0.2, a: int = 2) -> Observation:
    return observation(
        chain(s=1, a=a, b=2),
        rates("s", 0.0, 100.0, observed=(0.0, delivered)),
        rates("a", 25.0, 25.0, instances=a, observed=(25 * a_busy, 25 * a_busy)),
        rates("b", 100.0, 0.0, instances=2, observed=(100 * b_busy, 0.0)),
        s=100.0,
    )


def asked(decision: Decision) -> dict[str, int | None]:
    return {item.operator_id: item.parallelism for item in decision.operators}


def test_the_saturated_operator_is_scaled_by_what_the_sources_miss() -> None:
    assert asked(decide(job(50.0))) == {"s": 1, "a": 4, "b": 2}
    assert asked(decide(job(25.0))) == {"s": 1, "a": 8, "b": 2}


def test_of_two_saturated_operators_the_last_holds_up_the_other() -> None:
    assert asked(decide(job(50.0, b_busy=1.0))) == {"s": 1, "a": 2, "b": 4}


def test_reported_back_pressure_is_believed_over_the_sources_targets() -> None:
    seen = job(100.0)
    held = rates("s", 0.0, 100.0, backpressured=0.5)
    window = replace(seen.window, operators=(held, *seen.window.operators[1:]))
    assert asked(decide(replace(seen, window=window, targets=()))) == {"s": 1, "a": 4, "b": 2}


def test_without_back_pressure_nothing_is_scaled_unless_idleness_is_asked_for() -> None:
    assert decide(job(100.0, a_busy=0.4)).changes == {}
    assert decide(job(99.0)).changes == {}
    down = DhalionSettings(scale_down_ratio=0.6)
    assert asked(decide(job(100.0, a_busy=0.9, b_busy=0.2), down)) == {"s": 1, "a": 2, "b": 1}


def test_what_did_not_help_is_not_tried_again() -> None:
    assert decide(job(50.0), blacklist=[("a", UNDER)]).changes == {}
    timing = DhalionTiming(wait_intervals=0)
    first, state = step(timing, DhalionState(), job(50.0))
    assert first.changes == (("a", 4),)
    second, state = step(timing, state, job(50.0, a=4, a_busy=0.5))
    assert second.move is Move.KEEP
    assert state.blacklist == (("a", UNDER),)


def test_scaling_down_into_back_pressure_is_reverted() -> None:
    timing = DhalionTiming(DhalionSettings(scale_down_ratio=0.6), wait_intervals=0)
    first, state = step(timing, DhalionState(), job(100.0, a_busy=0.9))
    assert first.changes == (("b", 1),)
    second, state = step(timing, state, job(80.0, b_busy=1.0))
    assert (second.move, second.changes) == (Move.ROLL_BACK, (("b", 2),))
    assert ("b", OVER) in state.blacklist


def test_after_an_action_it_waits() -> None:
    _, state = step(DhalionTiming(), DhalionState(), job(50.0))
    for _ in range(3):
        action, state = step(DhalionTiming(), state, job(50.0))
        assert action.move is Move.WAIT
    assert step(DhalionTiming(), state, job(60.0, a=4))[0].move is Move.RESCALE


def test_without_the_rates_of_every_operator_there_is_no_diagnosis() -> None:
    seen = job(50.0)
    missing = replace(seen.window, operators=seen.window.operators[:2])
    decision = decide(replace(seen, window=missing))
    assert decision.changes == {}
    assert decision.operators[2].parallelism is None
