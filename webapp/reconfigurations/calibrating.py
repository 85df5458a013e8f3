"""How far predictions may be trusted: the errors of all that were judged, by policy and by what was predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from webapp.reconfigurations.selectors import Calibration

RATE, BUSY = "source_rate_per_s", "utilisation"


@dataclass(frozen=True)
class Spread:
    """The errors of one policy for one quantity: rates by a ratio of the prediction, load by a share (0 to 1).

    ``median`` is of the errors with their sign (positive: more than predicted), ``half`` and ``most`` are the sizes
    below which half and nine tenths of the errors are, ``worst`` is the point that is off most. ``agreed`` of
    ``count`` came true.
    """

    policy: str
    what: str
    count: int
    agreed: int
    median: float
    half: float
    most: float
    worst: Calibration


def error(point: Calibration) -> float | None:
    """How far off: a ratio for rates, a difference for shares; None if it was not measured or predicted."""
    if point.predicted is None or point.after is None:
        return None
    if point.what == RATE:
        return point.after / point.predicted - 1 if point.predicted else None
    return point.after - point.predicted if point.what == BUSY else None


def spreads(points: Sequence[Calibration]) -> list[Spread]:
    """One for each policy and quantity that has a point, in the order of their names."""
    groups: dict[tuple[str, str], list[tuple[float, Calibration]]] = {}
    for point in points:
        off = error(point)
        if off is not None:
            groups.setdefault((point.policy, point.what), []).append((off, point))
    return [_spread(*key, found) for key, found in sorted(groups.items())]


def _spread(policy: str, what: str, found: list[tuple[float, Calibration]]) -> Spread:
    sizes = sorted(abs(off) for off, _ in found)
    worst = max(found, key=lambda item: abs(item[0]))[1]
    agreed = sum(point.agrees is True for _, point in found)
    return Spread(
        policy,
        what,
        len(found),
        agreed,
        median(off for off, _ in found),
        median(sizes),
        _at(sizes, 0.9),
        worst,
    )


def _at(ordered: Sequence[float], share: float) -> float:
    """The least value that at least this share of the values does not exceed."""
    place = -(-int(share * 1000) * len(ordered) // 1000) - 1
    return ordered[max(0, place)]
