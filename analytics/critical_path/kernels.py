"""Having the compiled kernels at hand before the first real trace.

Compiling takes the better part of a minute, once a machine and version; loading what was compiled, a fraction
of a second. ``python -m analytics.critical_path.kernels`` compiles and does nothing else.
"""

import numpy as np

from analytics.critical_path.participation import analyse
from analytics.critical_path.path import window_edges
from analytics.critical_path.retiming import moments, prepare
from analytics.critical_path.what_if import rank
from analytics.critical_path.windows import covering_windows, default_lifetimes
from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, Records


def load_kernels() -> None:
    """Compile or load everything, by analysing a trace of three records."""
    processing, message = int(ActivityType.PROCESSING), int(ActivityType.DATA_MESSAGE)
    records = Records.of(
        [(processing, 0, NONE, 0, 0, 5), (message, 0, 1, NONE, 2, 3), (processing, 1, NONE, 0, 3, 5)]
    )
    windows = covering_windows((0, 5), 5)
    lives = default_lifetimes(records, 2)
    analyse(records, *lives, windows, horizon_ns=10)
    summary, edges, _ = window_edges(records, *lives, windows, horizon_ns=10)
    rank([(summary, edges)])
    moments(prepare(edges, 0, 5), np.ones(len(edges.src)))


if __name__ == "__main__":
    load_kernels()
