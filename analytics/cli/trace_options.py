"""The options every command on trace files shares, and what they come to: a trace, its windows and its names."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from analytics.cli.arguments import UsageError, duration_ns, time_ns
from analytics.cli.critical_path_output import Names
from analytics.cli.traces import add_limit_arguments, limits_of, read_trace
from analytics.critical_path import covering_windows, default_lifetimes
from analytics.decode.formats import FORMATS
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import Windows
from analytics.model.trace import Int64, TraceBatch

MAX_WINDOWS = 1_000_000


@dataclass(frozen=True, eq=False)
class TraceInput:
    """A trace as read, and the windows asked for."""

    batch: TraceBatch
    alive_from_ns: Int64
    alive_until_ns: Int64
    windows: Windows
    names: Names

    @property
    def lives(self) -> tuple[Int64, Int64]:
        """From and until when every worker was alive."""
        return self.alive_from_ns, self.alive_until_ns

    def diagnostics(self, *more: Diagnostic) -> tuple[Diagnostic, ...]:
        """What was odd about the files, and more, in which workers get their names (files know no numbers)."""
        named = (replace(item, example=self.names.in_words(item.example)) for item in more)
        return merge([*self.batch.diagnostics, *named])


def add_file_arguments(parser: ArgumentParser) -> None:
    """Declare FILE … and what `add_reading_arguments` does."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="all of one trace")
    add_reading_arguments(parser)


def add_reading_arguments(parser: ArgumentParser) -> None:
    """Declare how files are read and cut into windows, and the form of the output."""
    parser.add_argument("--format", required=True, choices=sorted(FORMATS))
    parser.add_argument("--window", required=True, type=duration_ns, help="width, such as 1s or 500ms")
    parser.add_argument(
        "--origin-ns", type=time_ns, default=0, help="a time at which a window begins (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    add_limit_arguments(parser)


def read_input(options: Namespace, files: Sequence[Path] | None = None) -> TraceInput:
    """Read the files named by the options, or these, as one trace.

    Raises
    ------
    UsageError
        If a file cannot be read or there would be too many windows.
    """
    batch = read_trace(options.format, options.files if files is None else files, limits_of(options))
    windows = covering_windows(batch.records, options.window, options.origin_ns)
    if windows.count > MAX_WINDOWS:
        raise UsageError(f"{windows.count:,} windows are too many (at most {MAX_WINDOWS:,}): make them wider")
    names = Names(tuple(worker.name for worker in batch.workers), batch.operators)
    return TraceInput(batch, *_lives(batch), windows, names)


def window_at(windows: Windows, at_ns: int) -> Windows:
    """The one window that holds a time.

    Raises
    ------
    UsageError
        If the trace has nothing at that time.
    """
    index = (at_ns - windows.origin_ns) // windows.width_ns
    if not windows.first <= index < windows.first + windows.count:
        raise UsageError(f"the trace has no window at {at_ns} ns")
    return replace(windows, first=index, count=1)


def number_of(name: str, names: Sequence[str], what: str) -> int:
    """The number of a worker or an operator.

    Raises
    ------
    UsageError
        If there is none of this name; it names some that are near.
    """
    if name in names:
        return names.index(name)
    near = get_close_matches(name, names, 3, 0.0)
    raise UsageError(f"no {what} is named {name!r}" + (f"; there are {', '.join(near)}, …" if near else ""))


def _lives(trace: TraceBatch) -> tuple[Int64, Int64]:
    """As the source reported; the whole trace for a worker it said nothing about."""
    alive_from, alive_until = default_lifetimes(trace.records, len(trace.workers))
    for position, worker in enumerate(trace.workers):
        if worker.alive_from_ns is not None:
            alive_from[position] = worker.alive_from_ns
        if worker.alive_until_ns is not None:
            alive_until[position] = worker.alive_until_ns
    return alive_from, alive_until
