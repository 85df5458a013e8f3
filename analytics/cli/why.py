"""``why``: what the waits of a trace waited for."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from itertools import groupby

from analytics.cli.answer_output import (
    answer_json,
    diagnostic_lines,
    document,
    duration_words,
    operator_name,
    table,
)
from analytics.cli.arguments import UsageError, time_ns
from analytics.cli.critical_path_output import Names
from analytics.cli.trace_options import TraceInput, add_file_arguments, number_of, read_input, window_at
from analytics.critical_path import every_window_edges, trace_bounds
from analytics.critical_path.why import HOPS, MOST_HOPS, combined, why, why_at
from analytics.model.activity import ActivityType
from analytics.model.answers import WhyAnswer, WhyGroup
from analytics.model.diagnostics import Diagnostic

NAME = "why"
HELP = "What the waits waited for, hop by hop: of one worker at one time, of a window, or of the whole trace."
TABLE_ROWS = 6


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_arguments(parser)
    parser.add_argument("--worker", metavar="NAME", help="only waits of this worker")
    parser.add_argument(
        "--at-ns",
        type=time_ns,
        metavar="T",
        help="only the window at this time; with --worker only the wait, uncut",
    )
    parser.add_argument("--hops", type=int, default=HOPS, help=f"1 to {MOST_HOPS} (default: {HOPS})")


def run(options: Namespace) -> str:
    """Read, walk back, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read, or the trace has no such worker or time.
    """
    if not 1 <= options.hops <= MOST_HOPS:
        raise UsageError(f"--hops must be 1 to {MOST_HOPS}")
    trace = read_input(options)
    worker = None if options.worker is None else number_of(options.worker, trace.names.workers, "worker")
    answer, odd = _answer(trace, worker, options)
    diagnostics = trace.diagnostics(*odd)
    if options.json:
        return document(answer_json(answer, trace.names), diagnostics)
    return "\n".join([*_lines(answer, trace.names), *diagnostic_lines(diagnostics)]) + "\n"


def _answer(trace: TraceInput, worker: int | None, options: Namespace) -> tuple[WhyAnswer, list[Diagnostic]]:
    records, windows = trace.batch.records, trace.windows
    if options.at_ns is not None:
        windows = window_at(windows, options.at_ns)
    if options.at_ns is not None and worker is not None:
        answer = why_at(records, *trace.lives, worker, options.at_ns, options.window, hops=options.hops)
        return answer, every_window_edges(records, *trace.lives, windows)[1]
    found, odd = every_window_edges(records, *trace.lives, windows)
    _, last_ns = trace_bounds(records) or (0, 0)
    answers = [
        why(summary, edges, hops=options.hops, worker=worker, trace_end_ns=last_ns)
        for summary, edges in found
    ]
    if not answers:
        raise UsageError("the trace has no activities")
    return (answers[0] if len(answers) == 1 else combined(answers)), odd


def _lines(answer: WhyAnswer, names: Names) -> list[str]:
    lines = [
        f"{answer.wait_count:,} waits of {duration_words(answer.wait_ns)} between {answer.start_ns} ns"
        f" and {answer.end_ns} ns"
    ]
    if answer.cut_count:
        cut = duration_words(answer.cut_ns)
        lines.append(
            f"{answer.cut_count:,} more ({cut}) go on after their window and are explained where they end"
        )
    if answer.uncaused_count:
        uncaused = duration_words(answer.uncaused_ns)
        lines.append(f"{answer.uncaused_count:,} more ({uncaused}) ended without a recorded message")
    for hop, found in groupby(answer.groups, lambda group: group.hop):
        groups = list(found)
        lines += ["", f"hop {hop}", *_table(groups[:TABLE_ROWS], names)]
        if len(groups) > TABLE_ROWS:
            lines.append(f"  and {len(groups) - TABLE_ROWS:,} more")
    if answer.stopped_at_hop:
        lines.append(f"Hop {answer.stopped_at_hop} is too wide to follow.")
    return lines


def _table(groups: list[WhyGroup], names: Names) -> list[str]:
    rows = [
        (
            f"{group.count:,}",
            duration_words(group.duration_ns),
            duration_words(group.during_ns),
            _what(group, names),
        )
        for group in groups
    ]
    return table(("count", "duration", "while waiting", "what"), rows)


def _what(group: WhyGroup, names: Names) -> str:
    kind = ActivityType(group.type)
    place = f"{'from' if kind.is_message else 'on'} {names.workers[group.worker]}"
    return " ".join(filter(None, [kind.label, operator_name(names, group.operator), place]))
