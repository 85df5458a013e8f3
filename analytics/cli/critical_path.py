"""``critical-path``: which part of a job limits it, window by window."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

import orjson

from analytics.cli.arguments import UsageError
from analytics.cli.critical_path_output import as_json, as_table, diagnostics_json, edges_json
from analytics.cli.trace_options import TraceInput, add_file_arguments, read_input
from analytics.critical_path import analyse, every_window_edges
from analytics.decode.chrome_out import chrome_trace

NAME = "critical-path"
HELP = "Share of each activity type, worker, operator and channel in the critical paths of every window."


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_arguments(parser)
    parser.add_argument(
        "--edges", action="store_true", help="every edge of every window's graph (needs --json)"
    )
    parser.add_argument(
        "--chrome-out",
        type=Path,
        metavar="FILE",
        help="also write the windows as a Chrome trace, for Perfetto",
    )


def run(options: Namespace) -> str:
    """Read, analyse, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read or written, there would be too many windows, or options do not go together.
    """
    if options.edges and not options.json:
        raise UsageError("--edges needs --json: a table has no room for every edge")
    trace = read_input(options)
    records, names = trace.batch.records, trace.names
    summaries, odd = analyse(records, *trace.lives, trace.windows)
    diagnostics = trace.diagnostics(*odd)
    if options.chrome_out:
        _write_chrome(options.chrome_out, trace)
    if not options.json:
        return as_table(summaries, names, diagnostics)
    output = [as_json(summary, names) for summary in summaries]
    if options.edges:
        found, _ = every_window_edges(records, *trace.lives, trace.windows)
        for window, (_, edges) in zip(output, found, strict=True):
            window["edges"] = edges_json(edges, names)
    document = {"windows": output, "diagnostics": diagnostics_json(diagnostics)}
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE).decode()


def _write_chrome(path: Path, trace: TraceInput) -> None:
    found, _ = every_window_edges(trace.batch.records, *trace.lives, trace.windows)
    try:
        with path.open("wb") as file:
            pieces = chrome_trace((edges for _, edges in found), trace.names.workers, trace.names.operators)
            file.writelines(pieces)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
