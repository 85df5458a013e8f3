"""What changed: means, errors and order, derived by hand."""

import pytest

from analytics.critical_path.compare import compare
from analytics.model.answers import Dimension
from analytics.model.results import WindowStatus
from analytics.model.trace import NONE
from tests.support.summaries import summary


def one(comparison, dimension=Dimension.WORKER, number=0):
    (found,) = [c for c in comparison.changes if (c.dimension, c.id) == (dimension, number)]
    return found


def series(*values, length=10, **more):
    """Windows in which worker 0 has these participations."""
    return [summary(k * length, (k + 1) * length, worker={0: v}, **more) for k, v in enumerate(values)]


def test_windows_weigh_as_much_as_they_are_long():
    # Weights 10 and 30: mean (0.4·10 + 0.8·30)/40 = 0.7. Weighted variance 0.25·0.09 + 0.75·0.01 = 0.03; effective
    # number 40²/(10² + 30²) = 1.6; 0.03·1.6/0.6 = 0.08. Spread √0.08, error √(0.08/1.6).
    before = [summary(0, 10, worker={0: 0.4}), summary(10, 40, worker={0: 0.8})]
    change = one(compare(before, [summary(40, 50, worker={0: 0.2})]))
    assert change.cp_before == pytest.approx(0.7)
    assert change.cp_change == pytest.approx(-0.5)
    assert change.cp_spread_before == pytest.approx(0.08**0.5)
    assert change.cp_error == pytest.approx(0.05**0.5)
    assert change.confidence == "too_few_windows"


def test_windows_that_resemble_their_neighbours_count_for_less():
    # Residuals ±0.5; variance 0.25·6/5 = 0.3. Neighbours: (4·0.25 - 0.25)/(6·0.25) = 0.5, so 6·0.5/1.5 = 2 count.
    blocks = compare(series(0, 0, 0, 1, 1, 1), series(*[0.5] * 6))
    assert one(blocks).cp_error == pytest.approx((0.3 / 2) ** 0.5)
    # The same values in turn resemble nothing: all 6 count.
    turns = compare(series(0, 1, 0, 1, 0, 1), series(*[0.5] * 6))
    assert one(turns).cp_error == pytest.approx((0.3 / 6) ** 0.5)


def test_a_group_that_a_window_lacks_is_zero_there():
    before = [summary(0, 10, operator={3: 0.6}), summary(10, 20)]
    change = one(compare(before, [summary(20, 30)]), Dimension.OPERATOR, 3)
    assert (change.cp_before, change.cp_after) == (pytest.approx(0.3), 0.0)


def test_a_difference_names_the_window_of_each_side_in_which_the_group_had_most():
    change = one(compare(series(0.1, 0.4, 0.4, 0.2), [summary(40, 50)]))
    assert (change.peak_before_ns, change.peak_after_ns) == (20, None)  # of equal ones the last
    only_profile = [summary(0, 10, worker={0: 0.0})]
    assert all(c.peak_before_ns is None for c in compare(only_profile, only_profile).changes)


def test_sure_differences_come_first_then_the_larger():
    def window(k, *, steady, noisy, small):
        return summary(k * 10, k * 10 + 10, worker={1: steady, 2: noisy, 3: small})

    before = [window(k, steady=0.1, noisy=0.1 + 0.6 * (k % 2), small=0.1) for k in range(6)]
    after = [window(k, steady=0.3, noisy=0.3 + 0.6 * ((k + 1) % 2), small=0.15) for k in range(6, 12)]
    found = compare(before, after).changes
    assert [(change.id, change.confidence) for change in found] == [(1, "sure"), (3, "sure"), (2, "unsure")]
    # Worker 2: change 0.2; each side has variance 0.09·6/5 = 0.108 and error √(0.108/6) = 0.134.
    assert found[2].cp_error == pytest.approx((2 * 0.108 / 6) ** 0.5)


def test_every_dimension_is_compared_and_a_channel_has_two_ends():
    before = [summary(k, k + 1, activity={4: 0.5}, busy=0.25) for k in range(5)]
    after = [summary(k, k + 1, operator={7: 0.2}, channel={(1, 2): 0.3}, busy=0.5) for k in range(5)]
    found = {(c.dimension, c.id, c.peer): c for c in compare(before, after).changes}
    assert set(found) == {("activity", 4, NONE), ("operator", 7, NONE), ("channel", 1, 2)}
    activity = found["activity", 4, NONE]
    assert (activity.cp_change, activity.conventional_change) == (pytest.approx(-0.5), pytest.approx(-0.25))
    assert found["channel", 1, 2].conventional_after == pytest.approx(0.5)


def test_types_of_one_channel_add_up():
    twice = summary(channel={(1, 2): 0.3}, worker={0: 0.1})
    both = type(twice)(**{
        **{name: getattr(twice, name) for name in twice.__dataclass_fields__},
        "channel_src": twice.channel_src.repeat(2), "channel_dst": twice.channel_dst.repeat(2),
        "channel_types": twice.channel_types.repeat(2), "channel_cp": twice.channel_cp.repeat(2),
        "channel_conventional": twice.channel_conventional.repeat(2),
    })  # fmt: skip
    change = one(compare([twice], [both]), Dimension.CHANNEL, 1)
    assert (change.cp_before, change.cp_after) == (pytest.approx(0.3), pytest.approx(0.6))


def test_windows_without_a_result_are_left_out_and_counted():
    bad = summary(10, 20, worker={0: 0.9}, status=WindowStatus.CLOCK_SKEW)
    found = compare([summary(0, 10, worker={0: 0.5}), bad], [bad])
    assert (found.before.window_count, found.before.windows_left_out, found.before.length_ns) == (1, 1, 10)
    assert (found.before.start_ns, found.before.end_ns) == (0, 20)
    assert (found.after.window_count, found.after.windows_left_out) == (0, 1)
    assert (one(found).cp_before, one(found).cp_after) == (0.5, 0.0)


def test_nothing_differs_from_itself():
    side = series(0.2, 0.4, 0.3, 0.5, 0.6, busy=0.5)
    found = compare(side, side)
    assert [(c.cp_change, c.conventional_change, c.confidence) for c in found.changes] == [
        (0.0, 0.0, "unsure")
    ]
    assert compare([], []).changes == ()


def test_what_matters_least_is_left_out_and_counted():
    before = [summary(worker={w: 0.01 * w for w in range(1, 9)})]
    found = compare(before, [summary()], most=3)
    assert [change.id for change in found.changes] == [8, 7, 6]
    assert found.left_out == 5


def test_more_groups_than_candidates_are_counted_too(monkeypatch):
    monkeypatch.setattr("analytics.critical_path.compare.MOST_CANDIDATES", 4)
    found = compare([summary(worker={w: 0.01 * w for w in range(1, 9)})], [summary()], most=3)
    assert [change.id for change in found.changes] == [8, 7, 6]
    assert found.left_out == 5
