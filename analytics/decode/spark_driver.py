"""What the driver did between the moments at which it launched tasks and took results back.

The log is only nearly in time order, so these moments (stamps) wait in a buffer until a stamp more than the
slack later has been seen. Between two neighbours the driver did what the later one says: it was scheduling
before a launch, waiting before a return, fetching a big result before that result was there.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from enum import IntEnum

from analytics.decode.batch import BatchBuilder
from analytics.decode.json_fields import NS_PER_MS
from analytics.model.activity import ActivityType

SLACK_MS = 1_000


class Stamp(IntEnum):
    """What happened; at one instant an end comes first, then what was received, then what was sent."""

    FETCHED = 0
    RETURNED = 1
    LAUNCHED = 2


_ENDS = {
    Stamp.FETCHED: ActivityType.BUFFER,
    Stamp.RETURNED: ActivityType.WAITING,
    Stamp.LAUNCHED: ActivityType.SCHEDULING,
}


@dataclass
class DriverTimeline:
    """Stamps not yet safe to use, and where the timeline has got to (ms)."""

    waiting: list[tuple[int, int, int, str]] = field(default_factory=list)
    reached_ms: int | None = None
    newest_ms: int = 0

    def add(self, kind: Stamp, at_ms: int, task_id: int, operator: str, batch: BatchBuilder) -> None:
        """Take a stamp, and put into the batch what has become certain."""
        if at_ms < max(self.newest_ms - SLACK_MS, self.reached_ms or 0):
            late_ms = self.newest_ms - at_ms
            batch.oddities.add("late_driver_stamp", f"task {task_id}: {kind.name.lower()} {late_ms} ms late")
            return
        self.newest_ms = max(self.newest_ms, at_ms)
        heapq.heappush(self.waiting, (at_ms, kind, task_id, operator))
        self._emit(self.newest_ms - SLACK_MS, batch)

    def flush(self, batch: BatchBuilder) -> None:
        """Nothing more will come: put everything into the batch."""
        self._emit(self.newest_ms + 1, batch)

    def state(self) -> dict[str, object]:
        """As JSON values."""
        return {"waiting": sorted(self.waiting), "reached_ms": self.reached_ms, "newest_ms": self.newest_ms}

    @classmethod
    def restore(cls, state: dict[str, object]) -> DriverTimeline:
        """From what :meth:`state` gave."""
        waiting, reached_ms, newest_ms = state["waiting"], state["reached_ms"], state["newest_ms"]
        assert isinstance(waiting, list)
        assert reached_ms is None or isinstance(reached_ms, int)
        assert isinstance(newest_ms, int)
        return cls([(item[0], item[1], item[2], item[3]) for item in waiting], reached_ms, newest_ms)

    def _emit(self, before_ms: int, batch: BatchBuilder) -> None:
        while self.waiting and self.waiting[0][0] < before_ms:
            at_ms, kind, _, operator = heapq.heappop(self.waiting)
            if self.reached_ms is not None and self.reached_ms < at_ms:
                batch.activity(
                    _ENDS[Stamp(kind)],
                    batch.worker("driver"),
                    batch.operator(operator),
                    self.reached_ms * NS_PER_MS,
                    at_ms * NS_PER_MS,
                )
            self.reached_ms = at_ms
