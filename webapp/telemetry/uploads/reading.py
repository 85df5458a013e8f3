"""From an uploaded file to the pieces it is stored in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import numpy as np
from django.conf import settings

from analytics.decode.event_log_files import UnreadableLogError
from analytics.decode.event_log_follower import Follower
from analytics.decode.formats import UPLOADED, read_file
from analytics.decode.halves import match_halves, message_rows, unmatched_diagnostics
from analytics.decode.limits import Limits, UnreadableFileError
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.diagnostics import merge
from analytics.model.trace import Records, TraceBatch
from webapp.telemetry import plausible

PIECE_RECORDS = 250_000
"""Records, and metrics, stored at once. The pieces of a file must stay the same: a crash may fall between."""

_NAMING_LINES = 200
"""Lines from the start of an event log among which its application's name is."""


def read(path: Path, name: str, format_name: str, received_at: datetime) -> TraceBatch:
    """The whole trace: ends of messages joined, times that cannot be true left out, the same whenever it is read.

    Raises
    ------
    UnreadableFileError
        If the file cannot be used; the message has its ``name`` in place of ours.
    """
    own = UPLOADED[format_name].limits
    limits = Limits(
        min(own.max_bytes, settings.WEIR_UPLOAD_MAX_UNPACKED_BYTES),
        min(own.max_records, settings.WEIR_UPLOAD_MAX_RECORDS),
    )
    try:
        batch = read_file(path, format_name, limits)
    except UnreadableFileError as error:
        raise type(error)(str(error).replace(str(path), name)) from error
    pairs, unmatched, odd = match_halves(batch.halves)
    met = {sent for sent, _ in pairs}
    lost = unmatched_diagnostics(half for half in unmatched if half not in met)
    records = Records.concat([batch.records, Records.of(message_rows(pairs))])
    records, refused = plausible.split(records, int(received_at.timestamp() * 1e9))
    diagnostics = merge([*batch.diagnostics, *odd, *lost, *refused])
    rates, moved = plausible.moved(batch.rates, int(received_at.timestamp() * 1e9))
    return replace(batch, records=records, halves=(), rates=rates, diagnostics=merge([*diagnostics, *moved]))


def pieces(batch: TraceBatch) -> Iterator[TraceBatch]:
    """The trace in order of time, at most ``PIECE_RECORDS`` records and as many metrics in a piece.

    Every piece knows all workers, so that a worker that starts late lives as long as if the trace came whole.
    """
    records = batch.records.take(np.argsort(batch.records.start_ns, kind="stable"))
    longest = max(len(records), len(batch.metrics), len(batch.annotations), len(batch.rates), 1)
    for start in range(0, longest, PIECE_RECORDS):
        part = slice(start, start + PIECE_RECORDS)
        yield replace(
            batch,
            records=records.take(np.arange(*part.indices(len(records)), dtype=np.intp)),
            metrics=batch.metrics[part],
            annotations=batch.annotations[part],
            rates=batch.rates[part],
            diagnostics=batch.diagnostics if start == 0 else (),
        )


def job_name_in(path: Path, format_name: str) -> str:
    """The name that a trace gives its job; "" if it gives none."""
    if format_name != "spark-event-log":
        return ""
    decoder = SparkEventLogDecoder()
    with closing(Follower(path)) as follower:
        try:
            decoder.feed(islice(follower.remaining(), _NAMING_LINES))
        except UnreadableLogError:
            return ""  # reading it whole says what is wrong
    return decoder.application.name
