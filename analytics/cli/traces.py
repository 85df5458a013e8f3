"""Reading trace files of the formats we know into one trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from analytics.cli.arguments import UsageError
from analytics.decode.activities import decode_activities
from analytics.decode.batch import merge_batches
from analytics.decode.event_log_files import UnreadableLogError
from analytics.decode.event_log_follower import Follower
from analytics.decode.halves import match_halves, message_rows, unmatched_diagnostics
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.diagnostics import merge
from analytics.model.trace import Records, TraceBatch


def read_activities(paths: Sequence[Path]) -> TraceBatch:
    """NDJSON files as one trace: a name means the same in all of them."""
    batches = []
    for path in paths:
        try:
            with path.open("rb") as lines:
                batches.append(decode_activities(lines, str(path) if len(paths) > 1 else ""))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from error
    return merge_batches(batches)


def read_spark_event_log(paths: Sequence[Path]) -> TraceBatch:
    """Files or rolling directories of one application's event log, in the order given."""
    decoder = SparkEventLogDecoder()
    batches = []
    for path in paths:
        follower = Follower(path)
        try:
            batches.append(decoder.feed(follower.remaining()))
        except UnreadableLogError as error:
            raise UsageError(str(error)) from error
        batches.append(TraceBatch(Records.of([]), diagnostics=follower.take_diagnostics()))
        follower.close()
    return merge_batches([*batches, decoder.finish()])


FORMATS = {"spark-event-log": read_spark_event_log, "activities": read_activities}


def read_trace(format_name: str, paths: Sequence[Path]) -> TraceBatch:
    """All files as one trace, with the halves of messages joined.

    Raises
    ------
    UsageError
        If a file cannot be read.
    """
    batch = FORMATS[format_name](paths)
    pairs, unmatched, odd = match_halves(batch.halves)
    return replace(
        batch,
        records=Records.concat([batch.records, Records.of(message_rows(pairs))]),
        halves=(),
        diagnostics=merge([*batch.diagnostics, *odd, *unmatched_diagnostics(unmatched)]),
    )
