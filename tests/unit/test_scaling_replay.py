"""The policy lab: one history, several policies, and what each would have cost."""

from dataclasses import replace
from itertools import repeat

import pytest

from analytics.model.rates import Observation
from analytics.scaling.dhalion import DhalionTiming
from analytics.scaling.ds2_manager import ManagerSettings
from analytics.scaling.flink_autoscaler import AutoscalerOptions
from analytics.scaling.replay import AS_IT_WAS, replay
from tests.support.dataflows import chain, observation, rates

MINUTES = 60
SETTINGS = {
    "ds2": ManagerSettings(warm_up_intervals=1),
    "flink-autoscaler": AutoscalerOptions(),
    "dhalion": DhalionTiming(),
}


def minute(number: int, rate: float, *, a: int = 2, b: int = 2) -> Observation:
    """A job of which an instance does 25 records a second, with two of each operator."""
    done = min(rate, 25.0 * a, 25.0 * b)
    seen = observation(
        chain(s=1, a=a, b=b),
        rates("s", 0.0, rate, observed=(0.0, done)),
        rates("a", 25.0, 25.0, instances=a, observed=(done / a, done / a)),
        rates("b", 25.0, 0.0, instances=b, observed=(done / b, 0.0)),
        s=rate,
    )
    start_ns = number * 60_000_000_000
    return replace(seen, window=replace(seen.window, start_ns=start_ns, end_ns=start_ns + 60_000_000_000))


def history() -> list[Observation]:
    """Half an hour of what two instances can do, half an hour of twice as much."""
    return [minute(number, 40.0 if number < MINUTES / 2 else 90.0) for number in range(MINUTES)]


def test_policies_are_compared_on_the_same_history() -> None:
    runs, odd = replay(history(), SETTINGS, restart_s=10.0)
    found = {run.policy: run for run in runs}
    assert list(found) == [AS_IT_WAS, *SETTINGS]
    assert odd == ()
    was, ds2, autoscaler, dhalion = found.values()
    assert (was.under_target_s, was.instance_hours, len(was.steps)) == (1800.0, 5.0, 0)
    assert (dict(ds2.final), len(ds2.steps)) == ({"a": 4, "b": 4}, 1)
    assert ds2.under_target_s == pytest.approx(60 + 10 + 60, abs=60)
    assert ds2.instance_hours > was.instance_hours
    assert all(count >= 4 for count in dict(autoscaler.final).values())
    assert all(count >= 4 for count in dict(dhalion.final).values())
    assert dhalion.under_target_s > ds2.under_target_s
    assert len(dhalion.steps) > 1


def test_a_history_that_was_rescaled_is_told_as_it_was() -> None:
    seen = [minute(0, 90.0), minute(1, 90.0), minute(2, 90.0, a=4, b=4)]
    runs, _ = replay(seen, {})
    assert [step.action.changes for step in runs[0].steps] == [(("a", 4), ("b", 4))]
    assert runs[0].under_target_s == 120.0


def test_missing_numbers_are_carried_over_and_counted() -> None:
    seen = history()
    silent = replace(seen[5].window.operators[1], instances=())
    operators = (seen[5].window.operators[0], silent, seen[5].window.operators[2])
    seen[5] = replace(seen[5], window=replace(seen[5].window, operators=operators))
    runs, odd = replay(seen, {"ds2": SETTINGS["ds2"]})
    assert [(item.code, item.count) for item in odd] == [("carried_over", 1)]
    assert runs[1] == replay(history(), {"ds2": SETTINGS["ds2"]})[0][1]


def test_an_operator_that_was_never_measured_is_not_made_up() -> None:
    seen = minute(0, 40.0)
    without = replace(seen, window=replace(seen.window, operators=seen.window.operators[:2]))
    runs, odd = replay(list(repeat(without, 3)), SETTINGS)
    assert [run.policy for run in runs] == [AS_IT_WAS]
    assert [(item.code, item.example) for item in odd] == [("never_measured", "b")]


def test_windows_with_other_operators_are_left_out() -> None:
    other = observation(chain(s=1, a=2), rates("s", 0, 1), rates("a", 1, 1, instances=2), s=1.0)
    runs, odd = replay([*history(), other], {})
    assert (len(runs[0].intervals), odd[0].code) == (MINUTES, "other_graph")
    assert replay([], SETTINGS) == ((), ())
