"""When a prediction has come true, when not, and when nobody can tell."""

from __future__ import annotations

from itertools import pairwise

import pytest

from analytics.model.rates import InstanceRates, OperatorRates, RateWindow
from analytics.model.reconfigurations import Prediction
from analytics.model.topology import Edge, Operator, Topology
from analytics.verification.judge import Measured, Measurements, Outcome, judge, slope_per_s
from analytics.verification.measure import measurements

PREDICTED = Prediction((("src", 900.0),), (("map", 0.90),))
NAMES = {"src": "events", "map": "split"}


def over_time(before: float | None, after: float, first_s: int = 90, count: int = 4) -> Measured:
    """A value every 30 s: two minutes before the change, and from ``first_s`` on."""
    earlier = [] if before is None else [(-30.0 * i, before) for i in range(1, 5)]
    return Measured((*earlier, *((first_s + 30.0 * i, after) for i in range(count))))


def seen(rate: Measured, busy: Measured | None = None, backlog: Measured | None = None) -> Measurements:
    return Measurements({"src": rate}, {"map": busy or over_time(1.0, 0.92)}, backlog)


def test_what_came_true_is_verified_with_the_numbers() -> None:
    verdict = judge(PREDICTED, seen(over_time(198, 900.7)), names=NAMES)
    assert verdict.outcome is Outcome.VERIFIED
    assert verdict.reasons == (
        "events delivers 901 records/s (predicted: 900)",
        "split is busy 92 % of the time (predicted: 90 %)",
    )
    assert (verdict.findings[0].before, verdict.findings[0].after) == (198, 900.7)


@pytest.mark.parametrize(("after", "outcome"), [(873.0, Outcome.VERIFIED), (872.9, Outcome.INCONCLUSIVE)])
def test_three_percent_less_than_predicted_is_still_true(after: float, outcome: Outcome) -> None:
    assert judge(PREDICTED, seen(over_time(198, after))).outcome is outcome


def test_more_than_predicted_is_no_disappointment() -> None:
    assert judge(PREDICTED, seen(over_time(198, 1200))).outcome is Outcome.VERIFIED


def test_a_load_that_is_not_as_predicted_leaves_doubts() -> None:
    verdict = judge(PREDICTED, seen(over_time(198, 900), over_time(1.0, 0.5)), names=NAMES)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reasons == ("split is busy 50 % of the time (predicted: 90 %)",)


def test_what_is_younger_than_eighty_seconds_is_not_listened_to() -> None:
    young = over_time(198, 900, first_s=0, count=3)  # 0, 30 and 60 s
    verdict = judge(PREDICTED, seen(young, over_time(1.0, 0.9, first_s=0, count=3)), names=NAMES)
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reasons[0] == "too little was measured to judge events's rate"
    slow_start = Measured((*over_time(198, 5, first_s=0, count=3).samples, *over_time(None, 900).samples))
    assert judge(PREDICTED, seen(slow_start)).outcome is Outcome.VERIFIED


def test_delivering_less_than_before_is_a_regression_whatever_else_came_true() -> None:
    verdict = judge(PREDICTED, seen(over_time(880, 600)), names=NAMES)
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.reasons == ("events delivers 600 records/s, before the change it was 880",)


def test_a_decline_that_was_meant_is_no_regression() -> None:
    meant = Prediction((("src", 500.0),), ())
    assert judge(meant, seen(over_time(880, 500))).outcome is Outcome.VERIFIED


def test_a_backlog_that_only_grows_since_the_change_is_a_regression() -> None:
    growing = Measured(((-60.0, 100.0), (-30.0, 100.0), (90.0, 1_000.0), (120.0, 4_000.0), (150.0, 7_000.0)))
    verdict = judge(PREDICTED, seen(over_time(900, 900), backlog=growing))
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.reasons == ("the backlog grows by 100.0 records/s, which it did not before",)
    grew_before = Measured(((-60.0, 0.0), (-30.0, 6_000.0), *growing.samples[2:]))
    assert judge(PREDICTED, seen(over_time(900, 900), backlog=grew_before)).outcome is Outcome.INCONCLUSIVE
    standing = Measured(((-60.0, 100.0), (-30.0, 100.0), (90.0, 100.0), (120.0, 130.0), (150.0, 90.0)))
    assert judge(PREDICTED, seen(over_time(900, 900), backlog=standing)).outcome is Outcome.VERIFIED


def growing(before_per_s: float, after_per_s: float) -> Measured:
    then = [(at_s, 10_000 + before_per_s * at_s) for at_s in (-60.0, -30.0, -1.0)]
    now = [(at_s, 90_000 + after_per_s * at_s) for at_s in (90.0, 120.0, 150.0)]
    return Measured((*then, *now))


@pytest.mark.parametrize("predicted", [PREDICTED, Prediction()])
def test_a_backlog_that_grows_on_as_before_has_not_got_worse(predicted: Prediction) -> None:
    verdict = judge(predicted, seen(over_time(900, 900), backlog=growing(700, 701)))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reasons[-1] == "the backlog grows by 701.0 records/s"


def test_a_backlog_that_grows_clearly_faster_than_before_is_a_regression_and_the_words_say_so() -> None:
    verdict = judge(PREDICTED, seen(over_time(900, 900), backlog=growing(700, 800)))
    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.reasons == ("the backlog grows by 800.0 records/s, faster than before (700/s)",)


def test_without_a_prediction_there_is_no_verdict() -> None:
    verdict = judge(Prediction(), seen(over_time(198, 900)))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reasons == ("nothing was predicted that could be compared",)


def test_a_slope_is_that_of_least_squares() -> None:
    assert slope_per_s([(0, 1), (10, 21), (20, 41)]) == pytest.approx(2)
    assert slope_per_s([(5, 1), (5, 9)]) is None


def window(start_s: int, maps: int, out: float | None, job: str = "j", reporting: int | None = None):
    topology = Topology(
        job, job, "RUNNING", None, (Operator("src", "events", 1), Operator("map", "split", maps)),
        (Edge("src", "map"),),
    )  # fmt: skip
    alive = maps if reporting is None else reporting
    busy = tuple(InstanceRates(i, 1.0, 1.0, 1.0, 1.0, busy_ratio=0.5) for i in range(alive))
    rates = (
        OperatorRates("src", 1, (InstanceRates(0, None, None, None, out),), lag_last=10.0 * start_s),
        OperatorRates("map", maps, busy),
    )
    return topology, RateWindow(start_s * 10**9, (start_s + 60) * 10**9, rates)


def test_windows_over_the_change_of_other_runs_and_of_other_changes_say_nothing() -> None:
    found = measurements(
        [
            window(-30, 2, 300),  # before somebody scaled it down
            window(0, 1, 198),
            window(30, 1, 198),
            window(70, 1, 400),  # over the change at 100 to 110 s
            window(110, 5, 890),
            window(140, 5, 900),
            window(170, 5, 900, job="another run"),
            window(200, 6, 900),  # somebody scaled again
            window(230, 5, None),  # the source did not tell
            window(260, 5, 910, reporting=4),  # one instance is silent
        ],
        (100 * 10**9, 110 * 10**9), "j", {"src": 1, "map": 1}, {"map": 5},
    )  # fmt: skip
    assert found.source_rates_per_s["src"].samples == (
        (-40.0, 198), (-10.0, 198), (60.0, 890), (90.0, 900), (210.0, 910),
    )  # fmt: skip
    assert [at_s for at_s, _ in found.utilisation["map"].samples] == [-40.0, -10.0, 60.0, 90.0, 180.0]
    assert found.backlog is not None
    assert all(a[1] < b[1] for a, b in pairwise(found.backlog.samples))


def test_a_decline_is_a_regression_even_if_foreseen_unless_there_is_less_to_deliver() -> None:
    slower = Measurements({"s": over_time(900, 400)})
    too_few = Prediction((("s", 400.0),), targets_per_s=(("s", 900.0),))
    assert judge(too_few, slower).outcome is Outcome.REGRESSED
    quieter = Prediction((("s", 400.0),), targets_per_s=(("s", 400.0),))
    assert judge(quieter, slower).outcome is Outcome.VERIFIED


@pytest.mark.parametrize(
    ("held_back", "outcome"),
    [(None, Outcome.REGRESSED), (0.6, Outcome.REGRESSED), (0.02, Outcome.INCONCLUSIVE)],
)
def test_a_source_that_delivers_less_since_less_comes_has_not_regressed(
    held_back: float | None, outcome: Outcome
) -> None:
    told = {} if held_back is None else {"src": over_time(0.7, held_back)}
    slower = Measurements({"src": over_time(900, 400)}, {"map": over_time(1.0, 0.9)}, held_back=told)
    assert judge(PREDICTED, slower).outcome is outcome
