"""Counting what a check of a trace finds: how many were tested, how many failed, and the first few that did."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from analytics.model.answers import Check, CheckExample, CheckState
from analytics.model.trace import NONE, Int64


class Tally:
    """One check, counted over any number of windows."""

    MOST_EXAMPLES: ClassVar[int] = 5

    def __init__(self) -> None:
        self.count = 0
        self.tested = 0
        self.worst_ns = 0
        self.examples: list[CheckExample] = []

    def add(
        self,
        failed: NDArray[np.bool_],
        worker: NDArray[np.integer],
        from_ns: Int64,
        to_ns: Int64,
        *,
        peer: NDArray[np.integer] | None = None,
        operator: NDArray[np.integer] | None = None,
        among: NDArray[np.bool_] | None = None,
    ) -> None:
        """Count those that failed among all, or among those marked; arrays are parallel."""
        self.tested += len(failed) if among is None else int(among.sum())
        self.count += int(failed.sum())
        at = np.flatnonzero(failed)
        if len(at):
            self.worst_ns = max(self.worst_ns, int(np.abs(to_ns[at] - from_ns[at]).max()))
        for i in at[: self.MOST_EXAMPLES - len(self.examples)].tolist():
            self.examples.append(
                CheckExample(
                    int(worker[i]),
                    NONE if peer is None else int(peer[i]),
                    NONE if operator is None else int(operator[i]),
                    int(from_ns[i]),
                    int(to_ns[i]),
                )
            )

    def add_durations(
        self,
        limit_ns: int | None,
        worker: NDArray[np.integer],
        from_ns: Int64,
        to_ns: Int64,
        *,
        peer: NDArray[np.integer] | None = None,
        operator: NDArray[np.integer] | None = None,
    ) -> None:
        """Count the durations above the limit. Without one the longest is kept as the only example."""
        duration = to_ns - from_ns
        if limit_ns is not None:
            self.add(duration > limit_ns, worker, from_ns, to_ns, peer=peer, operator=operator)
        else:
            self.tested += len(duration)
            if not len(duration) or int(duration.max()) <= self.worst_ns:
                return
            longest = np.zeros(len(duration), np.bool_)
            longest[np.argmax(duration)] = True
            self.examples.clear()
            self.add(longest, worker, from_ns, to_ns, peer=peer, operator=operator, among=longest[:0])
            self.count = 0
        self.worst_ns = max(self.worst_ns, int(duration.max(initial=0)))

    def check(self, code: str) -> Check:
        """The check, failed if anything was counted."""
        state = CheckState.FAILED if self.count else CheckState.PASSED
        return Check(code, state, self.count, self.tested, self.worst_ns, 0, tuple(self.examples))

    def check_limit(self, code: str, limit_ns: int | None) -> Check:
        """The check of durations, only measured without a limit."""
        state = CheckState.FAILED if self.count else CheckState.PASSED
        if limit_ns is None:
            state = CheckState.MEASURED
        return Check(code, state, self.count, self.tested, self.worst_ns, limit_ns or 0, tuple(self.examples))
