"""Records whose times cannot be true: one of them would make millions of windows, or close all live ones."""

from dataclasses import replace

import numpy as np

from analytics.model.diagnostics import Diagnostic
from analytics.model.rates import RateWindow
from analytics.model.topology import Topology
from analytics.model.trace import Records

EARLIEST_NS = 946_684_800_000_000_000
"""The year 2000: a log from before has another unit, or times since its job's start."""

Rates = tuple[tuple[Topology, RateWindow], ...]

HOUR_NS = 3_600_000_000_000
LONGEST_NS = 24 * HOUR_NS
"""No activity or message of a streaming job lasts a day."""

AHEAD_NS = HOUR_NS
"""How far a job's clock may be ahead of ours."""


def split(records: Records, now_ns: int) -> tuple[Records, tuple[Diagnostic, ...]]:
    """The records that can be true, and what was wrong with the others."""
    # Clocks disagree, so a message may end before it starts; float64 has room for what int64 would wrap around.
    lengths = np.abs(records.end_ns.astype(np.float64) - records.start_ns)
    latest = np.maximum(records.start_ns, records.end_ns)
    found = []
    future, long = latest > now_ns + AHEAD_NS, lengths > LONGEST_NS
    for code, wrong in (("time_in_the_future", future), ("longer_than_a_day", long & ~future)):
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            example = f"a record from {records.start_ns[at]} to {records.end_ns[at]} ns"
            found.append(Diagnostic(code, int(wrong.sum()), example))
    return (records.take(~(future | long)), tuple(found)) if found else (records, ())


def moved(rates: Rates, now_ns: int) -> tuple[Rates, tuple[Diagnostic, ...]]:
    """Rates in the order of time; if their times cannot be true, as if the last had been measured now."""
    if not rates or (rates[0][1].start_ns >= EARLIEST_NS and rates[-1][1].end_ns <= now_ns + AHEAD_NS):
        return rates, ()
    last_ns = rates[-1][1].end_ns
    by_ns = now_ns - last_ns
    there = tuple(
        (topology, replace(window, start_ns=window.start_ns + by_ns, end_ns=window.end_ns + by_ns))
        for topology, window in rates
    )
    example = f"the last rates are of {last_ns} ns: all are stored as if they had ended when the file came"
    return there, (Diagnostic("times_moved", len(rates), example),)
