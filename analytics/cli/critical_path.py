"""``critical-path``: which part of a job limits it, window by window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

import orjson

from analytics.cli.arguments import UsageError, duration_ns, time_ns
from analytics.cli.critical_path_output import Names, as_json, as_table, diagnostics_json, edges_json
from analytics.cli.traces import FORMATS, read_trace
from analytics.critical_path import analyse, covering_windows, default_lifetimes, window_edges
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import Windows
from analytics.model.trace import Int64, TraceBatch

NAME = "critical-path"
HELP = "Share of each activity type, worker, operator and channel in the critical paths of every window."
MAX_WINDOWS = 1_000_000


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="all of one trace")
    parser.add_argument("--format", required=True, choices=sorted(FORMATS))
    parser.add_argument("--window", required=True, type=duration_ns, help="width, such as 1s or 500ms")
    parser.add_argument(
        "--origin-ns", type=time_ns, default=0, help="a time at which a window begins (default: 0)"
    )
    parser.add_argument("--edges", action="store_true", help="every edge of every window's graph (JSON only)")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")


def run(options: Namespace) -> str:
    """Read, analyse, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read or there would be too many windows.
    """
    trace = read_trace(options.format, options.files)
    windows = covering_windows(trace.records, options.window, options.origin_ns)
    if windows.count > MAX_WINDOWS:
        raise UsageError(f"{windows.count:,} windows are too many (at most {MAX_WINDOWS:,}): make them wider")
    lives = _lives(trace)
    summaries, odd = analyse(trace.records, *lives, windows)
    names = Names(tuple(worker.name for worker in trace.workers), trace.operators)
    diagnostics = _named(merge([*trace.diagnostics, *odd]), names)
    if not options.json:
        return as_table(summaries, names, diagnostics)
    output = [as_json(summary, names) for summary in summaries]
    if options.edges:
        for window, summary in zip(output, summaries, strict=True):
            one = Windows(windows.width_ns, summary.index, 1, windows.origin_ns)
            _, edges, _ = window_edges(trace.records, *lives, one)
            window["edges"] = edges_json(edges, names)
    document = {"windows": output, "diagnostics": diagnostics_json(diagnostics)}
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE).decode()


def _lives(trace: TraceBatch) -> tuple[Int64, Int64]:
    """As the source reported; the whole trace for a worker it said nothing about."""
    alive_from, alive_until = default_lifetimes(trace.records, len(trace.workers))
    for position, worker in enumerate(trace.workers):
        if worker.alive_from_ns is not None:
            alive_from[position] = worker.alive_from_ns
        if worker.alive_until_ns is not None:
            alive_until[position] = worker.alive_until_ns
    return alive_from, alive_until


def _named(diagnostics: tuple[Diagnostic, ...], names: Names) -> tuple[Diagnostic, ...]:
    return tuple(replace(item, example=names.in_words(item.example)) for item in diagnostics)
