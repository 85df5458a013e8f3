"""What each instance of a Flink job did between polls: differences of its counters on its own clock.

Answers carry no time of their own and may be old, so the polls' clock is not divided by: an instance's own clock
is the time it was busy, idle and back-pressured, which grows by a second a second while the task lives.

- Counters that fall, or another start of the attempt, are a **reset**: nothing is subtracted across it.
- For 6 to 10 s after a restart or rescale Flink serves the counters of the **old attempt**. They give themselves
  away: their clock is older than the attempt that is said to run. The page of the job is kept for 3 s, so the new
  counters may also come with the old page; then they fall.
- An answer is as old as the last time Flink refreshed it, which after a pause is long ago: a clock that moved
  much **more or less than the polls'** begins anew.
- A clock that stands still while the job is said to run is **frozen** (its TaskManager is gone, and Flink has not
  noticed yet): unknown, not zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from analytics.decode.batch import Oddities
from analytics.model.diagnostics import Diagnostic
from analytics.model.topology import InstanceCounters, InstanceWindow, JobPoll, Operator, Unknown

REFRESH_MS = 10_000
"""Flink's ``metrics.fetcher.update-interval`` unless configured."""

LEAST_OBSERVED_MS = 15_000
"""Differences over less are too coarse to divide by."""

_MISSED_REFRESHES = 3
_SLACK_MS = 1_000
_NS_PER_MS = 1_000_000
_AMOUNTS = ("records_in", "records_out", "bytes_out", "idle_ms", "backpressured_ms")


def instance_windows(
    polls: Sequence[JobPoll], refresh_ms: int = REFRESH_MS
) -> tuple[tuple[InstanceWindow, ...], tuple[Diagnostic, ...]]:
    """What every instance did from the first to the last poll, or why that is unknown.

    Parameters
    ----------
    polls
        Answers of one job, in the order of their time; more than one is needed to know anything.
    refresh_ms
        How often Flink refreshes its metrics. A clock that stood still for three times as long is frozen.

    Returns
    -------
    tuple
        One window for each instance that the last poll says there is, by operator (in the topology's order) and
        number. Only the time since the last reset is in it. Resets, old attempts and clocks that jumped or froze
        are counted under ``counter_reset``, ``old_attempt``, ``clock_gap`` and ``frozen``.
    """
    if not polls:
        return (), ()
    oddities = Oddities()
    told = [{(item.operator_id, item.instance): item for item in poll.counters} for poll in polls]
    windows = []
    for operator in polls[-1].topology.operators:
        attempts = [_attempt(poll, operator.id) for poll in polls]
        for instance in range(operator.parallelism):
            life = _Life(operator, instance, polls[0].at_ns, refresh_ms, oddities)
            for attempt, counters in zip(attempts, told, strict=True):
                life.see(attempt, counters.get((operator.id, instance)))
            windows.append(life.window(polls[-1]))
    return tuple(windows), oddities.diagnostics()


@dataclass
class _Life:
    """One instance's counters since its last reset, poll after poll."""

    operator: Operator
    instance: int
    from_ns: int
    refresh_ms: int
    oddities: Oddities
    seen: list[InstanceCounters] = field(default_factory=list)
    attempt: object = None
    missing: Unknown = Unknown.NO_METRICS

    def see(self, attempt: object, counters: InstanceCounters | None) -> None:
        """Take in what one poll says; forget what was before a reset."""
        if attempt != self.attempt:
            self._forget("counter_reset", "another attempt runs")
            self.attempt = attempt
        clock_ms = counters.clock_ms if counters else None
        if counters is None or clock_ms is None:
            silent = counters is None or not _said_anything(counters)
            self.missing = Unknown.NO_METRICS if silent else Unknown.NO_CLOCK
            return
        if counters.attempt_age_ms is not None and clock_ms > counters.attempt_age_ms + _SLACK_MS:
            self._forget(
                "old_attempt", f"has run for {clock_ms:.0f} ms, its attempt for {counters.attempt_age_ms} ms"
            )
            self.missing = Unknown.OLD_ATTEMPT
            return
        if self.seen:
            self._compare(self.seen[-1], counters)
        self.seen.append(counters)
        self.missing = Unknown.NO_METRICS

    def window(self, last: JobPoll) -> InstanceWindow:
        """What is known at the last poll."""
        unknown = self._unknown(last)
        if unknown is not None:
            return InstanceWindow(self.operator.id, self.instance, self.from_ns, last.at_ns, unknown=unknown)
        first, final = self.seen[0], self._first_with_the_last_clock()
        return InstanceWindow(
            self.operator.id,
            self.instance,
            first.at_ns,
            final.at_ns,
            observed_ms=_clock(final) - _clock(first),
            records_in=_difference(first.records_in, final.records_in),
            records_out=_difference(first.records_out, final.records_out),
            busy_ms=_difference(first.busy_ms, final.busy_ms),
            idle_ms=_difference(first.idle_ms, final.idle_ms),
            backpressured_ms=_difference(first.backpressured_ms, final.backpressured_ms),
            queued=_mean([item.queued for item in self.seen]),
            bytes_out=_difference(first.bytes_out, final.bytes_out),
        )

    def _unknown(self, last: JobPoll) -> Unknown | None:
        if last.topology.state != "RUNNING" or self.operator.state not in ("RUNNING", ""):
            return Unknown.NOT_RUNNING
        patience_ms = _MISSED_REFRESHES * self.refresh_ms
        if not self.seen or (last.at_ns - self.seen[-1].at_ns) / _NS_PER_MS >= patience_ms:
            return self.missing
        final = self._first_with_the_last_clock()
        still_ms = (last.at_ns - final.at_ns) / _NS_PER_MS
        if still_ms >= patience_ms:
            self._note("frozen", f"has not moved for {still_ms:.0f} ms")
            return Unknown.FROZEN
        return Unknown.TOO_SHORT if _clock(final) - _clock(self.seen[0]) < LEAST_OBSERVED_MS else None

    def _compare(self, before: InstanceCounters, now: InstanceCounters) -> None:
        moved_ms = _clock(now) - _clock(before)
        apart_ms = moved_ms - (now.at_ns - before.at_ns) / _NS_PER_MS
        begun = (before.attempt, before.attempt_started_at_ms) != (now.attempt, now.attempt_started_at_ms)
        if begun or moved_ms < -_SLACK_MS or any(_fell(before, now, name) for name in _AMOUNTS):
            self._forget("counter_reset", "its counters began anew")
        elif abs(apart_ms) > _MISSED_REFRESHES * self.refresh_ms:
            self._forget("clock_gap", f"its clock moved {apart_ms:+.0f} ms more than the polls' clock")

    def _first_with_the_last_clock(self) -> InstanceCounters:
        clock_ms = _clock(self.seen[-1])
        return next(item for item in self.seen if _clock(item) == clock_ms)

    def _forget(self, code: str, why: str) -> None:
        if self.seen:
            self._note(code, why)
        self.seen.clear()

    def _note(self, code: str, why: str) -> None:
        self.oddities.add(code, f"{self.operator.name:.60} {self.instance}: {why}")


def _attempt(poll: JobPoll, operator_id: str) -> object:
    """What changes with every restart and rescale, as far as the job's page knows."""
    topology = poll.topology
    operator = next((item for item in topology.operators if item.id == operator_id), None)
    if operator is None:
        return None
    return topology.job_id, topology.running_since_ms, operator.started_at_ms, operator.parallelism


def _said_anything(counters: InstanceCounters) -> bool:
    return any(getattr(counters, name) is not None for name in (*_AMOUNTS, "busy_ms"))


def _clock(counters: InstanceCounters) -> float:
    """The clock of counters that were kept because they have one."""
    return counters.clock_ms or 0.0


def _fell(before: InstanceCounters, now: InstanceCounters, name: str) -> bool:
    was, is_now = getattr(before, name), getattr(now, name)
    return was is not None and is_now is not None and is_now < was


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def _difference(was: float | None, is_now: float | None) -> float | None:
    """How much a counter grew. Busy time may shrink by a little, because Flink gets it by subtraction."""
    return None if was is None or is_now is None else max(is_now - was, 0.0)
