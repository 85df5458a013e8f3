"""Activities in Arrow and Parquet files, one a row.

Columns: ``type`` (label or code), ``worker``, ``start_ns``, ``end_ns``, and if there are any messages or operators
``peer`` and ``operator``; further columns are not read. Names are strings, dictionaries of strings, or numbers,
which become ``worker 3`` and ``operator 7`` (-1 is none, so a stored segment can be read). Times are whole
nanoseconds or timestamps of any unit. As in :mod:`analytics.decode.activities` a row with a message type goes from
``worker`` to ``peer``; half messages have no place in a table.

A file is read batch by batch. What an Arrow file's compressed columns will need is read from its messages before
anything is unpacked (:mod:`analytics.decode.arrow_sizes`), a Parquet file's from its footer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.decode.arrow_rows import RowDecoder, is_text
from analytics.decode.arrow_sizes import FILE_MAGIC, unpacked_sizes
from analytics.decode.limits import Budget, UnreadableFileError, about
from analytics.model.trace import TraceBatch

BATCH_ROWS = 1 << 16
REQUIRED = ("type", "worker", "start_ns", "end_ns")
OPTIONAL = ("peer", "operator")


def read_arrow(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """Arrow IPC files (also Feather) and streams as one trace; cut short, what is whole before the cut counts.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, is none, lacks a column or is larger than the budget once unpacked.
    """
    decoder = RowDecoder()
    for path in paths:
        decoder.source = f"{path}, " if len(paths) > 1 else ""
        with about(path), _arrow_errors():
            for batch in _arrow_batches(path, budget, decoder):
                _add(decoder, batch)
    return decoder.finish()


def read_parquet(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """Parquet files as one trace.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, is none (or cut short: its footer is at the end), lacks a column, or is larger
        than the budget once unpacked.
    """
    decoder = RowDecoder()
    for path in paths:
        decoder.source = f"{path}, " if len(paths) > 1 else ""
        with about(path), _arrow_errors(), path.open("rb") as file:
            schema = pq.ParquetFile(file).schema_arrow
            columns = _known_columns(schema)
            text = [name for name in columns if is_text(schema.field(name).type)]
            parquet = pq.ParquetFile(file, read_dictionary=text)  # a long name is held once, not in every row
            _check_parquet(parquet.metadata, budget)
            for batch in parquet.iter_batches(BATCH_ROWS, columns=columns, use_threads=False):
                budget.take_records(batch.num_rows)
                _add(decoder, batch)
    return decoder.finish()


def _add(decoder: RowDecoder, batch: pa.RecordBatch) -> None:
    """Neither reader checks offsets, indices and UTF-8: a bad one would read other memory."""
    known = batch.select(_known_columns(batch.schema))
    known.validate(full=True)
    decoder.add(known)


class _arrow_errors:  # noqa: N801 - reads as a with statement
    """Turn what pyarrow raises for damaged input into one line."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pa.ArrowException | MemoryError | ValueError | TypeError):
            raise UnreadableFileError(f"damaged or of another format: {_first_line(error)}") from error
        if isinstance(error, OSError) and error.errno is None:  # pyarrow's, for bytes that make no sense
            raise UnreadableFileError(f"damaged or of another format: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _arrow_batches(path: Path, budget: Budget, decoder: RowDecoder) -> Iterator[pa.RecordBatch]:
    """The batches of a file or a stream. A file is a stream after its magic, with a footer nobody needs."""
    with path.open("rb") as file:
        skipped = len(FILE_MAGIC) if file.read(len(FILE_MAGIC)) == FILE_MAGIC else 0
        file.seek(skipped)
        batches = _check_arrow(file, budget)
        file.seek(skipped)
        with pa.ipc.open_stream(file) as reader:
            _known_columns(reader.schema)
            for number in range(batches):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
                except (pa.ArrowInvalid, OSError) as error:
                    if number == 0:
                        raise
                    where = f"{decoder.source}batch {number + 1}"
                    decoder.oddities.add("damaged", f"{where}: {_first_line(error)}; the rest was not read")
                    return
                yield batch
            if not _ends(reader):
                decoder.oddities.add("truncated", f"{decoder.source}the file ends after batch {batches}")


def _ends(reader: pa.RecordBatchReader) -> bool:
    """Whether the stream has its end mark, or ends where a message does."""
    try:
        reader.read_next_batch()
    except StopIteration:
        return True
    except (pa.ArrowInvalid, OSError):
        return False
    return False


def _check_arrow(file: object, budget: Budget) -> int:
    """Take what the whole messages will need from the budget; returns how many batches there are."""
    batches = 0
    for rows, unpacked_bytes in unpacked_sizes(file):
        budget.take_bytes(unpacked_bytes)
        if rows is not None:
            budget.take_records(rows)
            batches += 1
    return batches


def _check_parquet(metadata: pq.FileMetaData, budget: Budget) -> None:
    """By row group, with the columns that are not read: to ask damaged metadata about a column ends the process."""
    if metadata.num_rows > budget.records_left:
        budget.take_records(metadata.num_rows)
    for number in range(metadata.num_row_groups):
        budget.take_bytes(max(metadata.row_group(number).total_byte_size, 0))


def _known_columns(schema: pa.Schema) -> list[str]:
    missing = [name for name in REQUIRED if name not in schema.names]
    if missing:
        raise UnreadableFileError(
            f"no activities: column {', '.join(missing)} is missing (there are {', '.join(schema.names)[:200]})"
        )
    known = [name for name in (*REQUIRED, *OPTIONAL) if name in schema.names]
    twice = [name for name in known if schema.names.count(name) > 1]
    if twice:
        raise UnreadableFileError(f"no activities: there are several columns named {', '.join(twice)}")
    return known
