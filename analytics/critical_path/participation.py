"""The entrance: critical participation and conventional profile of every window, by group.

For an edge e of duration w in c of a window's N transient critical paths, CP(e) = c·w / (N·(te − ts))
(SnailTrail, equation 3). Waiting is on no path. Summed over all edges it is 1.
"""

from analytics.critical_path.summaries import summarise
from analytics.critical_path.trace_graph import build, number_channels
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import Windows, WindowSummary
from analytics.model.trace import Int64, Records


def analyse(
    records: Records,
    alive_from_ns: Int64,
    alive_until_ns: Int64,
    windows: Windows,
    *,
    bounds_ns: tuple[int, int] | None = None,
    horizon_ns: int | None = None,
) -> tuple[list[WindowSummary], list[Diagnostic]]:
    """Critical participation of each window (SnailTrail sections 3 and 4), one summary a window, in order.

    Parameters
    ----------
    records
        Activities and complete messages in any order; ``worker`` and ``peer`` index the arrays of lives.
        With a horizon, those that overlap ``[start - horizon, end + horizon]`` of the windows are enough.
        A skewed message overlaps what lies between its two times, whichever is first.
    alive_from_ns, alive_until_ns
        ``(workers,)``: the reported life of every worker; from > until means that none was reported, and the
        worker then lives from its first to its last record. Lives are extended to cover records.
    windows
        Which windows.
    bounds_ns
        First and last time of the whole job, to which its first and last window shrink; by default of ``records``.
    horizon_ns
        A gap longer than this is Unknown, never Waiting; None: no limit.

    Returns
    -------
    The summaries, and what was odd about the records. If a status forbids CP, ``log10_paths``, ``cp_total``
    and the CP arrays are 0; the conventional profile is there all the same. A message received before it was
    sent is in neither: it has no duration.

    Raises
    ------
    ValueError
        If the lives are not one a worker, a window has no width or the horizon is negative.
    """
    graph = build(records, alive_from_ns, alive_until_ns, windows, bounds_ns, horizon_ns)
    channels = number_channels(graph.grouped, len(graph.born_ns))
    summaries = summarise(graph, channels, graph.sweep(channels))
    return summaries, list(merge(graph.diagnostics))
