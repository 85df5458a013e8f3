"""Critical participation: the program activity graph of a trace, and each part's share of its critical paths.

A trace is laid out as one timeline a worker (`timeline`), cut into windows without copying (`cutting`), the
paths from a window's start to its end are counted (`counts`) and the shares added up (`sweep`, `totals`).
`participation` is the entrance; `path` gives every edge of one window with its representative path.

On edges stand answers to what people ask: `why` something waited, `what_if` something were faster (by `retiming`),
whether the trace deserves `trust`. On summaries: what changed (`compare`), which workers belong together
(`collocation`).

Source: Hoffmann et al., SnailTrail, NSDI 2018.
"""

from analytics.critical_path.participation import analyse
from analytics.critical_path.path import every_window_edges, window_edges
from analytics.critical_path.windows import covering_windows, default_lifetimes, trace_bounds

__all__ = [
    "analyse",
    "covering_windows",
    "default_lifetimes",
    "every_window_edges",
    "trace_bounds",
    "window_edges",
]
