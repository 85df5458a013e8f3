"""``trust``: whether a trace can be trusted, check by check."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from analytics.cli.answer_output import answer_json, diagnostic_lines, document, duration_words, table
from analytics.cli.arguments import duration_ns
from analytics.cli.critical_path_output import Names
from analytics.cli.trace_options import add_file_arguments, read_input
from analytics.critical_path.trust import check_trust
from analytics.model.answers import Check, CheckExample, CheckState, TrustAnswer, TrustLimits
from analytics.model.trace import NONE

NAME = "trust"
HELP = "Checks of the trace itself: the conditions of the model, and limits you set."


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_arguments(parser)
    limits = {
        "--longest-operator": "from an operator's first activity in a window to its last",
        "--longest-message": "from sent to received",
        "--longest-pause": "between two control messages sent by one worker",
    }
    for option, meaning in limits.items():
        parser.add_argument(option, type=duration_ns, metavar="LIMIT", help=f"{meaning}, such as 500ms")
    parser.add_argument(
        "--progress",
        action="store_true",
        help="every worker owes its peers a control message in every window",
    )


def run(options: Namespace) -> str:
    """Read, check, and say it.

    Raises
    ------
    UsageError
        If a file cannot be read.
    """
    trace = read_input(options)
    limits = TrustLimits(
        options.longest_operator, options.longest_message, options.longest_pause, options.progress
    )
    answer = check_trust(
        trace.batch.records,
        *trace.lives,
        trace.windows,
        limits=limits,
        diagnostics=trace.batch.diagnostics,
    )
    if options.json:
        payload = answer_json(answer, trace.names)
        for item in payload["diagnostics"]:
            item["example"] = trace.names.in_words(item["example"])
        return document(payload)
    return "\n".join(_lines(answer, trace.names)) + "\n"


def _lines(answer: TrustAnswer, names: Names) -> list[str]:
    rows = [
        (
            check.state.value.replace("_", " "),
            f"{check.count:,} of {check.tested:,}" if check.tested else "-",
            duration_words(check.worst_ns) if check.worst_ns else "-",
            duration_words(check.limit_ns) if check.limit_ns else "-",
            check.code.replace("_", " "),
        )
        for check in answer.checks
    ]
    lines = [
        f"{answer.windows_ok:,} of {answer.window_count:,} windows have a critical path;"
        f" {answer.unknown_share:.1%} of it is unknown.",
        "",
        *table(("", "violations", "longest", "limit", "check"), rows),
    ]
    for check in answer.checks:
        lines += _examples(check, names)
    return lines + diagnostic_lines(answer.diagnostics)


def _examples(check: Check, names: Names) -> list[str]:
    if check.state is not CheckState.FAILED:
        return []
    return ["", check.code.replace("_", " "), *(f"  {_where(example, names)}" for example in check.examples)]


def _where(example: CheckExample, names: Names) -> str:
    who = [
        f"worker {names.workers[example.worker]}" if example.worker != NONE else "",
        f"to {names.workers[example.peer]}" if example.peer != NONE else "",
        f"operator {names.operators[example.operator]}" if example.operator != NONE else "",
    ]
    return " ".join(filter(None, [*who, f"{example.from_ns} ns to {example.to_ns} ns"]))
