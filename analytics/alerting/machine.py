"""An alert over a series of values, with hysteresis.

It begins to fire when ``fire_after`` values in a row are past the threshold, and is over when ``clear_after``
values in a row are back past the clear threshold, which lies on the good side of the other. Values between the
two end every row, so that a series that stays between them never changes anything. Where nothing is known
(None), nothing changes: a gap is neither good nor bad.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite


@dataclass(frozen=True, slots=True)
class Terms:
    """When a rule fires and when that is over. ``above``: bad values are high ones."""

    above: bool
    threshold: float
    clear: float
    fire_after: int = 1
    clear_after: int = 1

    def bad(self, value: float) -> bool:
        """Whether a value is past the threshold."""
        return value > self.threshold if self.above else value < self.threshold

    def good(self, value: float) -> bool:
        """Whether a value is back past the clear threshold."""
        return value <= self.clear if self.above else value >= self.clear

    def worse(self, one: float, other: float) -> float:
        """The worse of two values."""
        return max(one, other) if self.above else min(one, other)


@dataclass(frozen=True, slots=True)
class Point:
    """A value at a time (ns since 1970); None where nothing is known."""

    at_ns: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Watch:
    """What must be remembered between values: ``row`` counts those that speak for a change, without a break."""

    firing: bool = False
    row: int = 0


class Turn(StrEnum):
    """What a value can bring."""

    FIRED = "fired"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Change:
    """A turn, and the value that brought it."""

    turn: Turn
    at_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Episode:
    """A time in which the alert fired; ``to_ns`` is None while it does. ``worst`` is the worst value in it."""

    from_ns: int
    to_ns: int | None
    worst: float


def faults(terms: Terms) -> dict[str, str]:
    """What is wrong with the terms, by field; empty if nothing is."""
    found: dict[str, str] = {}
    if not isfinite(terms.threshold):
        found["threshold"] = "a number is needed"
    if not isfinite(terms.clear):
        found["clear"] = "a number is needed"
    elif terms.above and terms.clear > terms.threshold:
        found["clear"] = "it must not be above the value that fires"
    elif not terms.above and terms.clear < terms.threshold:
        found["clear"] = "it must not be below the value that fires"
    for name in ("fire_after", "clear_after"):
        if not 1 <= getattr(terms, name) <= 1_000:
            found[name] = "a whole number from 1 to 1,000 is needed"
    return found


def step(terms: Terms, watch: Watch, value: float | None) -> tuple[Watch, Turn | None]:
    """What one more value makes of a watch, and the turn it brings, if any."""
    if value is None or value != value:
        return watch, None
    speaks = terms.good(value) if watch.firing else terms.bad(value)
    if not speaks:
        return (replace(watch, row=0) if watch.row else watch), None
    row = watch.row + 1
    if row < (terms.clear_after if watch.firing else terms.fire_after):
        return replace(watch, row=row), None
    return Watch(not watch.firing), Turn.RESOLVED if watch.firing else Turn.FIRED


def follow(terms: Terms, watch: Watch, points: Iterable[Point]) -> tuple[Watch, tuple[Change, ...]]:
    """The watch after all points, in their order, and every turn on the way."""
    turns = []
    for point in points:
        watch, turn = step(terms, watch, point.value)
        if turn is not None and point.value is not None:
            turns.append(Change(turn, point.at_ns, point.value))
    return watch, tuple(turns)


def episodes(terms: Terms, points: Sequence[Point]) -> tuple[Episode, ...]:
    """When an alert on these terms would have fired: the machine of :func:`follow`, from the first point on."""
    found: list[Episode] = []
    watch = Watch()
    for point in points:
        watch, turn = step(terms, watch, point.value)
        if point.value is None or not (watch.firing or turn):
            continue
        if turn is Turn.FIRED:
            found.append(Episode(point.at_ns, None, point.value))
        elif turn is Turn.RESOLVED:
            found[-1] = replace(found[-1], to_ns=point.at_ns)
        else:
            found[-1] = replace(found[-1], worst=terms.worse(found[-1].worst, point.value))
    return tuple(found)


class Told(StrEnum):
    """What people were last told about an episode."""

    NOTHING = ""
    FIRED = "fired"
    RESOLVED = "resolved"


def to_tell(told: Told, firing: bool, silenced: bool) -> Told | None:
    """What people are to be told about an episode now; None: nothing.

    A silence only puts it off: when it ends, what still fires is told, and what was told to fire is told to be
    over. What began and ended in silence is told to nobody.
    """
    if silenced:
        return None
    if firing:
        return Told.FIRED if told is Told.NOTHING else None
    return Told.RESOLVED if told is Told.FIRED else None
