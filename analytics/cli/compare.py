"""``compare``: two traces, or two time ranges of one, side by side."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np

from analytics.cli.answer_output import (
    answer_json,
    diagnostic_lines,
    document,
    duration_words,
    name_of,
    table,
)
from analytics.cli.arguments import UsageError, time_ns
from analytics.cli.critical_path_output import Names
from analytics.cli.trace_options import TraceInput, add_reading_arguments, read_input
from analytics.critical_path import analyse
from analytics.critical_path.compare import MOST_CHANGES, compare
from analytics.model.answers import Change, Comparison, RangeFacts
from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.results import WindowSummary
from analytics.model.trace import Int32

NAME = "compare"
HELP = "What changed between two traces, or two ranges of one: the differences that matter first."
TABLE_ROWS = 20


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("before", type=Path, metavar="A", help="the trace before")
    parser.add_argument("after", type=Path, metavar="B", help="the trace after; may be the same")
    add_reading_arguments(parser)
    for side in ("before", "after"):
        parser.add_argument(
            f"--{side}-ns",
            nargs=2,
            type=time_ns,
            metavar=("FROM", "UNTIL"),
            help=f"only windows of the trace {side} that lie in this range",
        )


def run(options: Namespace) -> str:
    """Read both, analyse both, and say what differs.

    Raises
    ------
    UsageError
        If a file cannot be read, or a range holds no window.
    """
    first = read_input(options, [options.before])
    second = first if options.after == options.before else read_input(options, [options.after])
    before, odd = _summaries(first, options.before_ns)
    after, more = _summaries(second, options.after_ns)
    names, workers, operators = _join(first.names, second.names)
    answer = compare(before, [_renumbered(window, workers, operators) for window in after])
    sides = [first.diagnostics(*odd)] + ([second.diagnostics(*more)] if second is not first else [])
    diagnostics = merge(item for side in sides for item in side)
    if options.json:
        return document(_json(answer, names), diagnostics)
    return "\n".join([*_lines(answer, names), *diagnostic_lines(diagnostics)]) + "\n"


def _summaries(trace: TraceInput, range_ns: list[int] | None) -> tuple[list[WindowSummary], list[Diagnostic]]:
    summaries, odd = analyse(trace.batch.records, *trace.lives, trace.windows)
    if range_ns is not None:
        low, high = range_ns
        summaries = [window for window in summaries if low <= window.start_ns and window.end_ns <= high]
        if not summaries:
            raise UsageError(f"no window lies between {low} ns and {high} ns")
    return summaries, odd


def _join(before: Names, after: Names) -> tuple[Names, Int32, Int32]:
    """Names of both sides, and the numbers the second side's workers and operators get."""
    workers = list(dict.fromkeys([*before.workers, *after.workers]))
    operators = list(dict.fromkeys([*before.operators, *after.operators]))
    places = [
        np.array([at[name] for name in mine], np.int32)
        for at, mine in (
            ({name: i for i, name in enumerate(workers)}, after.workers),
            ({name: i for i, name in enumerate(operators)}, after.operators),
        )
    ]
    return Names(tuple(workers), tuple(operators)), places[0], places[1]


def _renumbered(window: WindowSummary, workers: Int32, operators: Int32) -> WindowSummary:
    return replace(
        window,
        worker_ids=workers[window.worker_ids],
        operator_ids=operators[window.operator_ids],
        channel_src=workers[window.channel_src],
        channel_dst=workers[window.channel_dst],
    )


def _json(answer: Comparison, names: Names) -> dict[str, object]:
    payload = answer_json(replace(answer, changes=()), names)
    payload["changes"] = [
        {
            "dimension": change.dimension.value,
            "name": name_of(names, change.dimension, change.id, change.peer),
            "cp": {
                "before": change.cp_before,
                "after": change.cp_after,
                "change": change.cp_change,
                "standard_error": change.cp_error,
                "spread_before": change.cp_spread_before,
                "spread_after": change.cp_spread_after,
            },
            "conventional": {
                "before": change.conventional_before,
                "after": change.conventional_after,
                "change": change.conventional_change,
                "standard_error": change.conventional_error,
            },
            "confidence": change.confidence.value,
        }
        for change in answer.changes
    ]
    return payload


def _lines(answer: Comparison, names: Names) -> list[str]:
    lines = [f"before: {_side(answer.before)}", f"after:  {_side(answer.after)}", ""]
    shown = answer.changes[:TABLE_ROWS]
    lines += table(
        ("before", "after", "critical", "± error", "busy", "how sure", "what"),
        [_row(change, names) for change in shown],
    )
    more = len(answer.changes) - len(shown) + answer.left_out
    return [*lines, f"and {more:,} smaller differences (--json lists {MOST_CHANGES})"] if more else lines


def _side(facts: RangeFacts) -> str:
    left_out = f", {facts.windows_left_out:,} without a result" if facts.windows_left_out else ""
    return f"{facts.window_count:,} windows, {duration_words(facts.length_ns)}{left_out}"


def _row(change: Change, names: Names) -> tuple[str, ...]:
    return (
        f"{change.cp_before:.1%}",
        f"{change.cp_after:.1%}",
        f"{change.cp_change:+.1%}",
        f"{change.cp_error:.1%}",
        f"{change.conventional_change:+.1%}",
        change.confidence.value.replace("_", " "),
        f"{change.dimension.value} {name_of(names, change.dimension, change.id, change.peer)}",
    )
