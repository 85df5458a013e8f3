"""When headroom will be too little: the trend is robust, and where it says nothing that is said."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.bursts.forecast import Outlook, crossing

HOUR_S = 3600.0
TIMES = np.arange(0, 48) * HOUR_S


def test_a_steady_fall_crosses_when_the_line_does_whatever_single_points_say() -> None:
    values = 1.0 - 0.24 * TIMES / 86_400 + np.random.default_rng(1).normal(0, 0.005, len(TIMES))
    values[[3, 20, 33]] = -2.0  # outages
    found = crossing(TIMES, values, 0.1)
    assert found.outlook is Outlook.CROSSES
    assert found.slope_per_day == pytest.approx(-0.24, rel=0.05)
    assert found.at_s == pytest.approx(0.9 / 0.24 * 86_400, rel=0.05)


@pytest.mark.parametrize(
    ("values", "outlook"),
    [
        (np.full(48, 0.8), Outlook.NO_TREND),
        (0.5 + 0.01 * np.arange(48), Outlook.NO_TREND),
        (0.8 - 0.5 * np.sin(np.arange(48) / 24 * np.pi) ** 2, Outlook.NO_TREND),
        (np.full(48, 0.05), Outlook.BELOW),
        (1.0 - 1e-5 * np.arange(48), Outlook.FAR),
        (np.full(48, np.inf), Outlook.TOO_FEW),
    ],
    ids=["level", "rising", "a day's wave", "below already", "hardly falling", "nothing limits it"],
)
def test_where_nothing_can_be_foretold_the_reason_is_said(values: np.ndarray, outlook: Outlook) -> None:
    found = crossing(TIMES, values, 0.1)
    assert found.outlook is outlook
    assert found.at_s is None


def test_few_points_or_a_short_time_tell_nothing() -> None:
    assert crossing(TIMES[:11], np.linspace(1, 0.5, 11), 0.1).outlook is Outlook.TOO_FEW
    assert crossing(TIMES / 100, np.linspace(1, 0.5, 48), 0.1).outlook is Outlook.TOO_FEW


def test_many_points_are_taken_together_and_tell_the_same() -> None:
    at = np.linspace(0, 7 * 86_400, 5_000)
    found = crossing(at.tolist(), (1.0 - 0.1 * at / 86_400).tolist(), 0.1)
    assert found.at_s == pytest.approx(9 * 86_400, rel=0.01)
