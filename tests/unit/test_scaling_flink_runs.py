"""From the counters of recorded Flink runs DS2 asks for what really fixed them.

In each run a source that could deliver more was held back by `split` (5 ms a record, 3 out) and, next, by `count`
(0.5 ms a record). What was then asked of Flink, and the rate afterwards, is known.
"""

from dataclasses import replace

import pytest

from analytics.decode.flink_windows import instance_windows
from analytics.model.decisions import Decision
from analytics.model.rates import Observation, RateWindow, TargetMethod
from analytics.scaling import dhalion, flink_autoscaler
from analytics.scaling.ds2 import decide
from analytics.scaling.explain import explain, predict
from analytics.scaling.rates import rate_window, source_targets
from tests.support.dataflows import chain, rates
from tests.support.flink import polls

# The run, the rate its source was configured for, what was asked for: source, split, count and sink.
RUNS = [
    ("two_stage_ds2", 1000.0, [1, 6, 2, 1]),
    ("ci_smoke", 900.0, [1, 5, 2, 1]),
    ("middle_only", 1000.0, [1, 6, 2, 1]),
]


def seen(series: str, target_per_s: float | None, settled_s: int = 0) -> Observation:
    """The job over a recorded series, without its first ``settled_s`` seconds."""
    found = polls(series)
    found = [poll for poll in found if poll.at_ns >= found[0].at_ns + settled_s * 1_000_000_000]
    windows, _ = instance_windows(found, refresh_ms=2_000)
    topology = found[-1].topology
    window = rate_window(topology, windows)
    configured = {} if target_per_s is None else {topology.sources()[0].id: target_per_s}
    return Observation(topology, window, source_targets(topology, window, configured))


def asked(decision: Decision) -> list[int | None]:
    return [item.parallelism for item in decision.operators]


@pytest.mark.parametrize(("run", "target", "fixed"), RUNS)
def test_one_decision_from_the_counters_before_asks_for_the_fix(
    run: str, target: float, fixed: list[int]
) -> None:
    decision = decide(seen(f"{run}_series_before", target))
    assert [item.current for item in decision.operators] == [1, 1, 1, 1]
    assert asked(decision) == fixed
    assert not decision.undecided


@pytest.mark.parametrize(("run", "target", "fixed"), RUNS)
def test_after_the_fix_it_asks_for_the_same(run: str, target: float, fixed: list[int]) -> None:
    assert asked(decide(seen(f"{run}_series_after", target))) == fixed


def test_raising_split_alone_leaves_count_as_the_limit_at_the_predicted_rate() -> None:
    before = decide(seen("middle_only_series_before", 1000.0))
    split, count = before.operators[1:3]
    prediction = predict(before, {split.operator_id: 6, count.operator_id: 1})
    assert prediction.limiter == count.operator_id
    after = seen("middle_only_series_after", 1000.0, settled_s=40)
    assert after.topology.operators[1].parallelism == 6
    split_after = after.window.operators[1].instances
    observed = sum(item.observed_processing_per_s or 0.0 for item in split_after)
    assert 1000.0 * prediction.achieved_ratio == pytest.approx(observed, rel=0.03)


def test_the_predicted_utilisation_is_the_one_seen_afterwards() -> None:
    before = decide(seen("two_stage_ds2_series_before", 1000.0))
    predicted = dict(predict(before).utilisation)[before.operators[1].operator_id]
    after = seen("two_stage_ds2_series_after", 1000.0, settled_s=40).window.operators[1].instances
    busy = [item.useful_ratio for item in after if item.useful_ratio is not None]
    assert sum(busy) / len(busy) == pytest.approx(predicted, rel=0.01)
    assert len(busy) == 6


def test_a_source_that_is_held_back_does_not_tell_what_it_should_deliver() -> None:
    assert seen("two_stage_ds2_series_before", None).targets == ()
    free = seen("two_stage_ds2_series_after", None)
    assert [(item.method, round(item.rate_per_s, -1)) for item in free.targets] == [
        (TargetMethod.UNTHROTTLED_OUTPUT, 1000.0)
    ]


def test_the_decision_is_told_with_its_numbers() -> None:
    observation = seen("ci_smoke_series_before", 900.0)
    source, split, count, sink = explain(observation, decide(observation))
    assert source == "Source: events: no change: it should deliver 900.0/s, as configured."
    assert split.startswith("split: 1 → 5. Target input 900.0/s ÷ (true rate 199.")
    assert split.endswith("rounded up 5.")
    assert count.startswith("count: 1 → 2. Target input 2,70")
    assert sink.startswith("out: Writer: no change. Target input 2,70")


def test_the_other_policies_tell_their_numbers_too() -> None:
    observation = seen("ci_smoke_series_before", 900.0)
    decision = flink_autoscaler.decide(observation)
    split = explain(observation, decision)[1]
    assert split.startswith("split: 1 → 8: capacity 1,436/s at 70% utilisation ÷ true rate 199.")
    told = explain(observation, dhalion.decide(observation))[1]
    assert told.startswith("split: 1 → 5: it causes 99")
    assert told.endswith(" ms/s of back-pressure: 1 × (1 + 4).")


def test_a_source_that_stands_still_before_a_growing_backlog_is_not_said_to_have_nothing_to_do() -> None:
    still = replace(rates("s", 0.0, 0.0, observed=(0.0, 0.0)), lag_first=1_000.0, lag_last=61_000.0)
    window = RateWindow(0, 60_000_000_000, (still,))
    assert source_targets(chain(s=1, a=1), window, {}) == ()
    idle = RateWindow(0, 60_000_000_000, (replace(still, lag_last=1_000.0),))
    assert [target.rate_per_s for target in source_targets(chain(s=1, a=1), idle, {})] == [0.0]
