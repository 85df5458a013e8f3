"""The parts of a Chrome trace while it is read, and how begins find their ends.

Threads get their names from events that may come last, so parts are kept by (pid, tid) until the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from analytics.decode.batch import BatchBuilder, Oddities, clean_name
from analytics.model.activity import ActivityType
from analytics.model.trace import TraceBatch

PATH_CATEGORY = "weir_critical_path"
"""Category of events that only repeat what is critical."""

Thread = tuple[str, str]
_TURN = {"s": 0, "b": 0, "t": 1, "f": 2, "e": 2}


@dataclass(frozen=True, slots=True)
class Bracket:
    """A B or an E. An E may be silent about what it ends: then ``kind`` is None."""

    at_ns: int
    is_end: bool
    kind: ActivityType | None
    operator: str | None


@dataclass(frozen=True, slots=True)
class FlowEnd:
    """One event of a flow (s, t, f) or of an asynchronous span (b, e)."""

    at_ns: int
    phase: str
    thread: Thread
    kind: ActivityType
    operator: str | None


class TraceParts:
    """Collects parts; ``finish`` makes a batch of them."""

    def __init__(self, oddities: Oddities) -> None:
        self.processes: dict[str, str] = {}
        self.threads: dict[Thread, str] = {}
        self._oddities = oddities
        self._activities: list[tuple[Thread, ActivityType, str | None, int, int]] = []
        self._brackets: dict[Thread, list[Bracket]] = {}
        self._flows: dict[str, list[FlowEnd]] = {}
        self._bounds: list[int] = []

    def activity(
        self, thread: Thread, kind: ActivityType, operator: str | None, start_ns: int, end_ns: int
    ) -> None:
        """Add an activity whose two ends are known."""
        self._activities.append((thread, kind, operator, start_ns, end_ns))
        self._bound(start_ns, end_ns)

    def bracket(self, thread: Thread, bracket: Bracket) -> None:
        """Add a B or an E."""
        self._brackets.setdefault(thread, []).append(bracket)
        self._bound(bracket.at_ns, bracket.at_ns)

    def end(self, identity: str, end: FlowEnd) -> None:
        """Add one event of a flow or asynchronous span."""
        self._flows.setdefault(identity, []).append(end)
        self._bound(end.at_ns, end.at_ns)

    def finish(self) -> TraceBatch:
        """Everything as one batch, without diagnostics: they are in the oddities."""
        for thread, brackets in self._brackets.items():
            self._match(thread, brackets)
        batch = BatchBuilder()
        worker = _Names(self.processes, self.threads, self._used()).position(batch)
        for thread, kind, operator, start_ns, end_ns in self._activities:
            batch.activity(kind, worker[thread], batch.operator(operator), start_ns, end_ns)
        for ends in self._flows.values():
            for start, end in self._hops(ends):
                operator = start.operator or end.operator
                batch.message(
                    start.kind,
                    worker[start.thread],
                    worker[end.thread],
                    batch.operator(operator),
                    start.at_ns,
                    end.at_ns,
                )
        return batch.build()

    def _used(self) -> list[Thread]:
        threads = dict.fromkeys(part[0] for part in self._activities)
        threads |= dict.fromkeys(end.thread for ends in self._flows.values() for end in ends)
        return list(threads)

    def _bound(self, first_ns: int, last_ns: int) -> None:
        if not self._bounds:
            self._bounds = [first_ns, last_ns]
        self._bounds = [min(self._bounds[0], first_ns), max(self._bounds[1], last_ns)]

    def _match(self, thread: Thread, brackets: list[Bracket]) -> None:
        """E ends the latest open B, or the latest of its own name; what is left reaches to the trace's bounds."""
        open_: list[Bracket] = []
        for item in sorted(
            brackets, key=lambda bracket: bracket.at_ns
        ):  # stable: file order within an instant
            if not item.is_end:
                open_.append(item)
                continue
            place = _last_like(open_, item)
            if place is None:
                self._oddities.add("unmatched_end", f"an E at {item.at_ns} ns ends nothing")
                kind = item.kind or ActivityType.UNKNOWN
                self._activities.append((thread, kind, item.operator, self._bounds[0], item.at_ns))
                continue
            begun = open_.pop(place)
            kind = begun.kind or ActivityType.PROCESSING
            self._activities.append((thread, kind, begun.operator, begun.at_ns, item.at_ns))
        for begun in open_:
            self._oddities.add("unmatched_begin", f"a B at {begun.at_ns} ns has no E")
            kind = begun.kind or ActivityType.PROCESSING
            self._activities.append((thread, kind, begun.operator, begun.at_ns, self._bounds[1]))

    def _hops(self, ends: list[FlowEnd]) -> list[tuple[FlowEnd, FlowEnd]]:
        """The messages of one flow id, which may be used again later."""
        if Counter(end.phase in "sb" for end in ends) == Counter((True, False)):
            # two ends belong together whatever their clocks say
            pair = sorted(ends, key=lambda end: _TURN[end.phase])
            return self._across([(pair[0], pair[1])])
        hops: list[tuple[FlowEnd, FlowEnd]] = []
        origin: FlowEnd | None = None
        used = True
        for end in sorted(ends, key=lambda end: (end.at_ns, _TURN[end.phase])):
            if end.phase in "sb":
                self._unmatched(None if used else origin)
                origin, used = end, False
            elif origin is None:
                self._unmatched(end)
            else:
                hops.append((origin, end))
                origin, used = (end, False) if end.phase == "t" else (origin, True)
        self._unmatched(None if used or (origin and origin.phase == "t") else origin)
        return self._across(hops)

    def _across(self, hops: list[tuple[FlowEnd, FlowEnd]]) -> list[tuple[FlowEnd, FlowEnd]]:
        """Without asynchronous spans on one thread: they are no activity, for they overlap what it does."""
        kept = [hop for hop in hops if hop[0].phase != "b" or hop[0].thread != hop[1].thread]
        if len(kept) < len(hops):
            example = f"an asynchronous span at {hops[0][0].at_ns} ns stays on its thread"
            self._oddities.add("async_on_one_thread", example, len(hops) - len(kept))
        return kept

    def _unmatched(self, end: FlowEnd | None) -> None:
        if end is not None:
            self._oddities.add("unmatched_flow", f"phase {end.phase!r} at {end.at_ns} ns has no other end")


def _last_like(open_: list[Bracket], end: Bracket) -> int | None:
    if end.kind is None:
        return len(open_) - 1 if open_ else None
    for place in range(len(open_) - 1, -1, -1):
        if open_[place].operator == end.operator:
            return place
    return None


class _Names:
    """What threads are called: as short as it stays unambiguous."""

    def __init__(self, processes: dict[str, str], threads: dict[Thread, str], used: list[Thread]) -> None:
        self._used = used
        self._short = {thread: threads.get(thread) for thread in used}
        self._process = {pid: processes.get(pid, f"process {pid}") for pid, _ in used}
        self._long = {
            thread: f"{self._process[thread[0]]}/{name or f'thread {thread[1]}'}"
            for thread, name in self._short.items()
        }

    def position(self, batch: BatchBuilder) -> dict[Thread, int]:
        """Numbers of the threads in the batch."""
        short, long = Counter(self._short.values()), Counter(self._long.values())
        positions = {}
        for thread in self._used:
            name = self._short[thread]
            if name is None or short[name] > 1:
                name = self._long[thread]
                if long[name] > 1:
                    name += f" ({thread[0]}:{thread[1]})"
            positions[thread] = batch.worker(clean_name(name) or "unknown")
        return positions
