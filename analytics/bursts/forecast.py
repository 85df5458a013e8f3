"""When headroom will have fallen below a threshold, by a robust trend; or why that cannot be told.

The trend is Theil and Sen's: the median of the slopes between all pairs of points, which a burst or an outage does
not bend. It counts only if its confidence interval is below zero and both halves of the time agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from analytics.bursts.highs import Floats

FEWEST_POINTS = 12
LEAST_SPAN_S = 3600.0
MOST_POINTS = 240
"""Neighbours are taken together (their median) beyond that."""

MOST_AHEAD = 10
"""A crossing further away than so many times the span seen is not foretold."""

_Z95 = 1.96


class Outlook(StrEnum):
    """What can be said about the crossing."""

    CROSSES = "crosses"
    BELOW = "below"
    TOO_FEW = "too few points"
    NO_TREND = "no trend"
    FAR = "far away"


@dataclass(frozen=True, slots=True)
class Forecast:
    """``at_s`` is when the threshold is crossed, ``slope_per_day`` the trend (None: too few points)."""

    outlook: Outlook
    slope_per_day: float | None = None
    at_s: float | None = None


def crossing(times_s: Sequence[float], values: Sequence[float], threshold: float) -> Forecast:
    """When values (T,) at times (T,) in seconds will be below a threshold. Infinite values are left out."""
    at, seen = np.asarray(times_s, dtype=float), np.asarray(values, dtype=float)
    known = np.isfinite(seen)
    at, seen = at[known], seen[known]
    if len(at) < FEWEST_POINTS or at.max() - at.min() < LEAST_SPAN_S:
        return Forecast(Outlook.TOO_FEW)
    order = np.argsort(at, kind="stable")
    at, seen = _thinned(at[order]), _thinned(seen[order])
    slope, highest = _slope(at, seen)
    now = float(np.median(seen[-3:]))
    per_day = slope * 86_400
    if now < threshold:
        return Forecast(Outlook.BELOW, per_day)
    half = len(at) // 2
    agree = _slope(at[:half], seen[:half])[0] < 0 and _slope(at[half:], seen[half:])[0] < 0
    if highest >= 0 or not agree:
        return Forecast(Outlook.NO_TREND, per_day)
    level = float(np.median(seen - slope * at))
    found = (threshold - level) / slope
    if found > at[-1] + MOST_AHEAD * (at[-1] - at[0]):
        return Forecast(Outlook.FAR, per_day)
    return Forecast(Outlook.CROSSES, per_day, max(float(found), float(at[-1])))


def _thinned(values: Floats) -> Floats:
    if len(values) <= MOST_POINTS:
        return values
    return np.array([np.median(part) for part in np.array_split(values, MOST_POINTS)])


def _slope(at: Floats, seen: Floats) -> tuple[float, float]:
    """The median slope and the upper end of its 95 % interval (Sen 1968)."""
    count = len(at)
    first, second = np.triu_indices(count, 1)
    apart = at[second] - at[first]
    used = apart > 0
    slopes = np.sort((seen[second] - seen[first])[used] / apart[used])
    if not len(slopes):
        return 0.0, 0.0
    spread = _Z95 * np.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    upper = min(int((len(slopes) + spread) / 2) + 1, len(slopes) - 1)
    return float(np.median(slopes)), float(slopes[upper])
