"""The command line: analyses on files, with no database or broker. One module a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from analytics.cli import bursts, collocate, compare, critical_path, scale, trust, what_if, why
from analytics.cli.arguments import OneLineParser, UsageError

COMMANDS = (critical_path, why, what_if, compare, collocate, trust, scale, bursts)
"""Modules with ``NAME``, ``HELP``, ``add_arguments(parser)`` and ``run(options) -> str``."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its result is all that is written to stdout.

    Returns
    -------
    int
        Exit code: 0; 2 for wrong arguments or a file that cannot be read (one line on stderr says which).
    """
    parser = OneLineParser(prog="python -m analytics", description=__doc__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        subparser = commands.add_parser(command.NAME, help=command.HELP, description=command.HELP)
        command.add_arguments(subparser)
        subparser.set_defaults(run=command.run)
    try:
        options = parser.parse_args(arguments)
        result: str = options.run(options)
    except UsageError as error:
        sys.stderr.write(f"python -m analytics: {error}\n")
        return 2
    return _write(result)


def _write(result: str) -> int:
    try:
        sys.stdout.write(result)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (| head). Python would complain again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0
