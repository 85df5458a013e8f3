"""Records whose times cannot be true: one of them would make millions of windows, or close all live ones."""

import numpy as np

from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import Records

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
