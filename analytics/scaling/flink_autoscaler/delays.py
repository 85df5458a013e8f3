"""Scale-downs that wait: the largest one recommended in the interval is taken (``DelayedScaleDown``).

Together with a scale-down it is remembered whether the vertex was outside its band then: that decides whether the
job acts when the wait is over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from analytics.model.decisions import OperatorDecision

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Recommended:
    """A scale-down that was recommended, and whether the vertex was outside its band."""

    at_ns: int
    parallelism: int
    outside: bool


@dataclass(frozen=True, slots=True)
class DelayedDown:
    """A vertex that should be scaled down: since when, and what was recommended, falling from the largest on."""

    operator_id: str
    since_ns: int
    recommended: tuple[Recommended, ...] = ()

    def and_then(self, found: Recommended) -> DelayedDown:
        """With one recommendation more; those that it exceeds can never be the largest again."""
        larger = tuple(item for item in self.recommended if item.parallelism > found.parallelism)
        return replace(self, recommended=(*larger, found))

    def largest_since(self, from_ns: int) -> Recommended:
        """The largest recommendation of those from a time on; there must be one."""
        return next(item for item in self.recommended if item.at_ns >= from_ns)


class Delays:
    """What waits, vertex by vertex, while one window is decided."""

    def __init__(self, waiting: Iterable[DelayedDown], now_ns: int, interval_s: float) -> None:
        self._waiting = {item.operator_id: item for item in waiting}
        self._now_ns = now_ns
        self._interval_ns = round(interval_s * _SECOND_NS)

    @property
    def waiting(self) -> tuple[DelayedDown, ...]:
        """What waits now."""
        return tuple(self._waiting.values())

    def hold(self, item: OperatorDecision, outside: bool) -> tuple[OperatorDecision, bool]:
        """The vertex with the parallelism it may have now, and whether it makes the job act."""
        if item.proposed >= item.current or self._interval_ns <= 0:
            self._waiting.pop(item.operator_id, None)
            return item, outside
        first = self._waiting.get(item.operator_id, DelayedDown(item.operator_id, self._now_ns))
        first = first.and_then(Recommended(self._now_ns, item.proposed, outside))
        self._waiting[item.operator_id] = first
        left_ns = first.since_ns + self._interval_ns - self._now_ns
        if left_ns > 0:
            note = f"{item.note}; {item.proposed} in {left_ns / _SECOND_NS:.0f} s at the earliest"
            return replace(item, parallelism=item.current, note=note), False
        largest = first.largest_since(self._now_ns - self._interval_ns)
        return replace(item, parallelism=largest.parallelism), largest.outside
