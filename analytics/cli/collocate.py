"""``collocate``: which workers belong on one host."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

from analytics.cli.answer_output import answer_json, diagnostic_lines, document
from analytics.cli.critical_path_output import Names
from analytics.cli.trace_options import add_file_arguments, read_input
from analytics.critical_path import analyse
from analytics.critical_path.collocation import propose_collocation
from analytics.model.answers import CollocationAnswer, CollocationProposal
from analytics.model.trace import Worker

NAME = "collocate"
HELP = "Which workers belong together: those whose messages across hosts are critical."


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_arguments(parser)
    parser.add_argument(
        "--host-pattern",
        type=_pattern,
        metavar="REGEX",
        help="the part of a worker's name that is its host, for formats that do not say: '^[^/]+'",
    )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise ArgumentTypeError(f"{text!r} is no regular expression: {error}") from error


def _host(worker: Worker, pattern: re.Pattern[str] | None) -> str:
    match = None if worker.host or pattern is None else pattern.search(worker.name)
    return worker.host if match is None else match[0]


def run(options: Namespace) -> str:
    """Read, analyse, and propose.

    Raises
    ------
    UsageError
        If a file cannot be read.
    """
    trace = read_input(options)
    summaries, odd = analyse(trace.batch.records, *trace.lives, trace.windows)
    answer = propose_collocation(
        summaries, [_host(worker, options.host_pattern) for worker in trace.batch.workers]
    )
    diagnostics = trace.diagnostics(*odd)
    if options.json:
        return document(_json(answer, trace.names), diagnostics)
    return "\n".join([*_lines(answer, trace.names), *diagnostic_lines(diagnostics)]) + "\n"


def _json(answer: CollocationAnswer, names: Names) -> dict[str, Any]:
    payload = answer_json(answer, names)
    for proposal in payload["proposals"]:
        for key in ("host", "best_host"):
            proposal[key] = answer.hosts[proposal[key]] or None
    payload["hosts"] = sorted(filter(None, answer.hosts))
    return payload


def _lines(answer: CollocationAnswer, names: Names) -> list[str]:
    lines = [
        f"Messages are {answer.cp_messages:.1%} of the critical paths of {answer.window_count:,} windows,"
        f" those between hosts {answer.cp_across_hosts:.1%}."
    ]
    if answer.unknown_host_count:
        lines.append(
            f"Workers of unknown host: {answer.unknown_host_count:,}. Each counts as a host of its own."
        )
    if answer.windows_left_out:
        lines.append(f"{answer.windows_left_out:,} windows without a critical path are left out.")
    if not answer.proposals:
        return [*lines, "No message between hosts is critical enough to move a worker."]
    for proposal in answer.proposals:
        lines += ["", *_proposal(proposal, answer, names)]
    return lines


def _proposal(proposal: CollocationProposal, answer: CollocationAnswer, names: Names) -> list[str]:
    beside = ", ".join(names.workers[partner.worker] for partner in proposal.beside)
    lines = [
        f"Put {names.workers[proposal.worker]} beside {beside}: removes up to {proposal.cp_removed:.1%}"
        " of the critical paths."
    ]
    host = answer.hosts[proposal.best_host]
    if host:
        lines.append(
            f"  On {host} alone {proposal.cp_removed_at_best_host:.1%}, with"
            f" {proposal.cp_at_risk:.1%} put across hosts."
        )
    return lines
