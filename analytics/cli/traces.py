"""Reading trace files of the formats we know into one trace."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analytics.cli.arguments import UsageError, count, size_bytes
from analytics.decode.formats import FORMATS, read_files
from analytics.decode.halves import match_halves, message_rows, unmatched_diagnostics
from analytics.decode.limits import Limits, UnreadableFileError
from analytics.model.diagnostics import merge
from analytics.model.trace import Records, TraceBatch


def add_limit_arguments(parser: ArgumentParser) -> None:
    """Declare how much may be read."""
    parser.add_argument(
        "--max-bytes", type=size_bytes, help="refuse files larger than this once unpacked, such as 500M or 8G"
    )
    parser.add_argument(
        "--max-records", type=count, help="refuse files with more records, lines, spans or events than this"
    )


def limits_of(options: Namespace) -> Limits:
    """The limits given, or else those of the format."""
    usual = FORMATS[options.format].limits
    return Limits(
        usual.max_bytes if options.max_bytes is None else options.max_bytes,
        usual.max_records if options.max_records is None else options.max_records,
    )


def read_trace(format_name: str, paths: Sequence[Path], limits: Limits | None = None) -> TraceBatch:
    """All files as one trace, with the halves of messages joined.

    Raises
    ------
    UsageError
        If a file cannot be read or is larger than the limits (the format's own if none are given).
    """
    try:
        batch = read_files(paths, format_name, limits)
    except UnreadableFileError as error:
        raise UsageError(str(error)) from error
    pairs, unmatched, odd = match_halves(batch.halves)
    return replace(
        batch,
        records=Records.concat([batch.records, Records.of(message_rows(pairs))]),
        halves=(),
        diagnostics=merge([*batch.diagnostics, *odd, *unmatched_diagnostics(unmatched)]),
    )
