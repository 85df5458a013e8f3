"""``what-if``: how much time a faster operator, worker or activity would save, and which is worth optimising."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from analytics.cli.answer_output import (
    answer_json,
    diagnostic_lines,
    document,
    duration_words,
    factor_words,
    name_of,
    operator_name,
    table,
)
from analytics.cli.arguments import UsageError, time_ns
from analytics.cli.critical_path_output import Names
from analytics.cli.trace_options import add_file_arguments, number_of, read_input, window_at
from analytics.critical_path import every_window_edges
from analytics.critical_path.what_if import rank, what_if
from analytics.model.activity import BY_LABEL, ActivityType
from analytics.model.answers import PathPart, Target, TargetKind, WhatIfAnswer, WhatIfRanking
from analytics.model.results import WindowStatus

NAME = "what-if"
HELP = "Time saved in every window if something were faster, or what is worth optimising (--rank)."
TABLE_ROWS = 30


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_arguments(parser)
    faster = parser.add_mutually_exclusive_group(required=True)
    faster.add_argument("--operator", metavar="NAME", help="this operator on all workers")
    faster.add_argument("--worker", metavar="NAME", help="everything this worker does")
    faster.add_argument("--activity", metavar="TYPE", help="an activity type such as serialization")
    faster.add_argument("--rank", action="store_true", help="all of them at 1.5×, 2× and ∞, best first")
    parser.add_argument(
        "--factor", type=_factor, default=2.0, metavar="K", help="how many times faster; inf (default: 2)"
    )
    parser.add_argument(
        "--at-ns", type=time_ns, metavar="T", help="only the window at this time, with its path"
    )


def run(options: Namespace) -> str:
    """Read, re-time, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read, or the trace has no such operator, worker, activity or time.
    """
    trace = read_input(options)
    windows = trace.windows if options.at_ns is None else window_at(trace.windows, options.at_ns)
    target = None if options.rank else _target(options, trace.names)
    found, odd = every_window_edges(trace.batch.records, *trace.lives, windows)
    answer: WhatIfAnswer | WhatIfRanking
    if target is None:
        answer = rank(found)
    else:
        answer = what_if(found, target, options.factor, most_steps=0 if options.at_ns is None else 10_000)
    diagnostics = trace.diagnostics(*odd)
    if options.json:
        return document(answer_json(answer, trace.names), diagnostics)
    lines = (
        _ranking(answer, trace.names) if isinstance(answer, WhatIfRanking) else _windows(answer, trace.names)
    )
    return "\n".join([*lines, *diagnostic_lines(diagnostics)]) + "\n"


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = math.nan
    if not factor >= 1:
        raise ArgumentTypeError(f"{text!r} is no factor of at least 1")
    return factor


def _target(options: Namespace, names: Names) -> Target:
    if options.operator is not None:
        return Target(TargetKind.OPERATOR, number_of(options.operator, names.operators, "operator"))
    if options.worker is not None:
        return Target(TargetKind.WORKER, number_of(options.worker, names.workers, "worker"))
    kind = BY_LABEL.get(options.activity)
    if kind is None or kind in (ActivityType.UNKNOWN, ActivityType.WAITING):
        raise UsageError(f"{options.activity!r} is no activity that can be made faster")
    return Target(TargetKind.ACTIVITY, int(kind))


def _share(saved_ns: int, length_ns: int) -> str:
    return f"{saved_ns / max(length_ns, 1):.1%}"


def _ranking(answer: WhatIfRanking, names: Names) -> list[str]:
    rows = [
        (
            f"{row.cp:.1%}",
            *(_share(saved, answer.length_ns) for saved in row.saved_ns),
            f"{row.target.kind.value} {name_of(names, row.target.kind, row.target.id)}",
        )
        for row in answer.rows[:TABLE_ROWS]
    ]
    header = ("critical", *(factor_words(factor) for factor in answer.factors), "what")
    lines = [
        f"Time saved in {answer.window_count:,} windows of {duration_words(answer.length_ns)} if it were faster:",
        *table(header, rows),
    ]
    if len(answer.rows) > TABLE_ROWS:
        lines.append(f"and {len(answer.rows) - TABLE_ROWS:,} more that save no more")
    if answer.windows_left_out:
        lines.append(f"{answer.windows_left_out:,} windows without a critical path are left out")
    return lines


def _windows(answer: WhatIfAnswer, names: Names) -> list[str]:
    target = f"{answer.target.kind.value} {name_of(names, answer.target.kind, answer.target.id)}"
    lines = [
        f"{target} {factor_words(answer.factor)} faster saves {duration_words(answer.saved_ns)}"
        f" of {duration_words(answer.length_ns)} ({_share(answer.saved_ns, answer.length_ns)})"
    ]
    rows = []
    for window in answer.windows:
        length = window.end_ns - window.start_ns
        fine = window.status is WindowStatus.OK
        rest = _limit(window.limits[0], names) if window.limits else ""
        rows.append(
            (
                f"{window.start_ns / 1e9:.3f} s",
                duration_words(length),
                duration_words(window.saved_ns) if fine else "-",
                _share(window.saved_ns, length) if fine else "-",
                f"then {rest}" if rest else names.in_words(window.reason),
            )
        )
    return [*lines, *table(("window", "length", "saved", "", "limited by"), rows)]


def _limit(part: PathPart, names: Names) -> str:
    words = [ActivityType(part.type).label, operator_name(names, part.operator), names.workers[part.worker]]
    return f"{' '.join(filter(None, words))} ({duration_words(part.duration_ns)})"
