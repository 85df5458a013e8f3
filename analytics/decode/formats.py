"""Every trace format by name: the one table that the command line and an upload choose from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from analytics.decode.activities import decode_activities
from analytics.decode.arrow_files import read_arrow, read_parquet
from analytics.decode.batch import merge_batches
from analytics.decode.chrome_trace import read_chrome
from analytics.decode.ds2_bundle import read_ds2
from analytics.decode.event_log_files import UnreadableLogError
from analytics.decode.event_log_follower import Follower
from analytics.decode.limits import Budget, Limits, TooLargeError, UnreadableFileError, opened
from analytics.decode.otlp_files import read_otlp
from analytics.decode.snailtrail import read_snailtrail
from analytics.decode.spark_event_log import SparkEventLogDecoder
from analytics.model.trace import Records, TraceBatch

MIB, GIB, MILLION = 1 << 20, 1 << 30, 1_000_000


@dataclass(frozen=True, slots=True)
class Format:
    """A trace format: ``label`` for people, what reads several files as one trace, and its limits unless told."""

    name: str
    label: str
    read: Callable[[Sequence[Path], Budget], TraceBatch]
    limits: Limits


def read_files(paths: Sequence[Path], format_name: str, limits: Limits | None = None) -> TraceBatch:
    """Read files as one trace: a name, and an id of a message, means the same in all of them.

    Parameters
    ----------
    paths
        The files; for ``spark-event-log`` also rolling directories, in the order of their events.
    format_name
        A key of ``UPLOADED``.
    limits
        For all files together; the format's own if not given.

    Raises
    ------
    UnreadableFileError
        If a file cannot be used, ``TooLargeError`` if that is because of the limits. What is wrong *within* a
        usable file is in the diagnostics. An empty file is a log without a line, where a format has no other mark
        of its own.
    """
    chosen = UPLOADED[format_name]
    batch = chosen.read(paths, Budget(limits or chosen.limits))
    return _told_something(", ".join(map(str, paths)), batch)


def read_file(path: Path, format_name: str, limits: Limits | None = None) -> TraceBatch:
    """Read one file; see :func:`read_files`."""
    return read_files([path], format_name, limits)


def _read_activities(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    batches = []
    for path in paths:
        with opened(path, budget) as file:
            batch = decode_activities(file.lines(), str(path) if len(paths) > 1 else "")
        batches.append(_told_something(str(path), batch))
    return merge_batches(batches)


def _told_something(name: str, batch: TraceBatch) -> TraceBatch:
    """The batch, unless there are nothing but complaints in it."""
    others = batch.halves or batch.workers or batch.metrics or batch.annotations or batch.rates
    if batch.diagnostics and not len(batch.records) and not others:
        why = "; ".join(f"{item.code} ({item.count:,}): {item.example}" for item in batch.diagnostics)
        raise UnreadableFileError(f"{name}: nothing can be used: {' '.join(why.split())[:1500]}")
    return batch


def _read_spark_event_log(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    decoder = SparkEventLogDecoder()
    batches = []
    for path in paths:
        with closing(Follower(path)) as follower:
            try:
                batches.append(_told_events(path, decoder.feed(_within(budget, follower.remaining()))))
            except UnreadableLogError as error:
                raise UnreadableFileError(str(error)) from error
            except TooLargeError as error:
                raise TooLargeError(f"{path}: {error}") from error
            batches.append(TraceBatch(Records.of([]), diagnostics=follower.take_diagnostics()))
    return merge_batches([*batches, decoder.finish()])


def _told_events(path: Path, batch: TraceBatch) -> TraceBatch:
    """The batch, unless the file's lines gave nothing but complaints that they are no JSON: it is another file."""
    if len(batch.records) == 0 and {item.code for item in batch.diagnostics} == {"not_json"}:
        raise UnreadableFileError(f"{path}: not a Spark event log: {batch.diagnostics[0].example}")
    return batch


def _within(budget: Budget, lines: Iterator[bytes]) -> Iterator[bytes]:
    for line in lines:
        budget.take_bytes(len(line) + 1)
        budget.take_records()
        yield line


FORMATS = {
    item.name: item
    for item in (
        Format("activities", "Activities (NDJSON)", _read_activities, Limits(4 * GIB, 10 * MILLION)),
        Format("spark-event-log", "Spark event log", _read_spark_event_log, Limits(16 * GIB, 20 * MILLION)),
        Format("snailtrail", "SnailTrail log (MessagePack)", read_snailtrail, Limits(GIB, 30 * MILLION)),
        Format(
            "otlp", "OpenTelemetry spans (OTLP protobuf or JSON)", read_otlp, Limits(256 * MIB, 2 * MILLION)
        ),
        Format("arrow", "Arrow (IPC file or stream)", read_arrow, Limits(4 * GIB, 50 * MILLION)),
        Format("parquet", "Parquet", read_parquet, Limits(4 * GIB, 50 * MILLION)),
        Format("chrome", "Chrome trace (Trace Event JSON)", read_chrome, Limits(4 * GIB, 10 * MILLION)),
    )
}
"""Of traces. Limits let one take a few gigabytes of memory, as far as the decoder of its format needs it."""

UPLOADED = FORMATS | {
    "ds2": Format("ds2", "DS2 topology and rates (CSV, or a ZIP of them)", read_ds2, Limits(GIB, MILLION))
}
"""What may be uploaded: traces, and logs that hold rates only, of which the trace commands can say nothing."""
