"""Writing and reading trace files of every format in tests, and what a batch means apart from its order."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgpack
import pyarrow as pa

from analytics.decode.formats import read_file
from analytics.decode.halves import match_halves, message_rows
from analytics.decode.limits import Limits, UnreadableFileError
from analytics.model.activity import ActivityType
from analytics.model.trace import Records, TraceBatch
from tests.support.spark_log import Row, rows

START, END, SENT, RECEIVED = 1, 2, 3, 4
PROCESSING, CONTROL, DATA, WAITING = 4, 9, 10, 12


def packed(records: Iterable[Sequence[object]]) -> bytes:
    """SnailTrail log records as bytes."""
    return b"".join(msgpack.packb(value) for record in records for value in record)


def read(tmp_path: Path, data: bytes, format_name: str, limits: Limits | None = None) -> TraceBatch:
    path = tmp_path / "trace"
    path.write_bytes(data)
    return read_file(path, format_name, limits)


def read_or_why(
    tmp_path: Path, data: bytes, format_name: str, limits: Limits | None = None
) -> TraceBatch | str:
    """The trace, or the one line that says why it cannot be read."""
    try:
        return read(tmp_path, data, format_name, limits)
    except UnreadableFileError as error:
        why = str(error)
    assert why.startswith(str(tmp_path))
    assert "\n" not in why
    return why


def said(batch: TraceBatch) -> list[Row]:
    """Activities and messages by name, sorted; halves that belong together are messages."""
    pairs, _, _ = match_halves(batch.halves)
    joined = Records.concat([batch.records, Records.of(message_rows(pairs))])
    whole = TraceBatch(joined, workers=batch.workers, operators=batch.operators)
    return sorted(rows(whole), key=repr)


def codes(batch: TraceBatch) -> dict[str, int]:
    return {item.code: item.count for item in batch.diagnostics}


def every_cut_is_understood(
    tmp_path: Path, data: bytes, format_name: str, whole_at: Sequence[int] = (0,)
) -> list[int | str]:
    """Cut the file at every byte: records and diagnostics, or one clear error. Returns counts and errors.

    ``whole_at``: lengths at which the file cannot be told from one that is whole.
    """
    whole = read(tmp_path, data, format_name)
    known = set(said(whole))
    outcomes: list[int | str] = []
    for length in range(len(data)):
        batch = read_or_why(tmp_path, data[:length], format_name)
        if isinstance(batch, str):
            outcomes.append(batch)
            continue
        told = said(batch)
        assert len(told) <= len(known)
        assert len(told) == len(known) or batch.diagnostics or length in whole_at
        outcomes.append(len(told))
    return outcomes


def every_flip_is_survived(tmp_path: Path, data: bytes, format_name: str, at: int, value: int) -> None:
    """One damaged byte: whatever is read can be looked at, or there is one clear error."""
    damaged = bytearray(data)
    damaged[at % len(data)] ^= value
    batch = read_or_why(tmp_path, bytes(damaged), format_name, Limits(1 << 20, 10_000))
    if isinstance(batch, str):
        return
    said(batch)
    for worker in batch.workers:
        worker.name.encode()
    assert all(item.count > 0 and item.example for item in batch.diagnostics)


def activity_table(names: Sequence[Row], *, dictionary: bool = False, codes: bool = False) -> pa.Table:
    """Rows as a table in the activity schema."""
    kinds, workers, peers, operators, starts, ends = zip(*names, strict=True) if names else [()] * 6
    text = pa.dictionary(pa.int32(), pa.string()) if dictionary else pa.string()
    by_code = pa.array([int(ActivityType[kind.upper()]) for kind in kinds], pa.uint8())
    return pa.table(
        {
            "type": by_code if codes else pa.array(kinds, pa.string()).cast(text),
            "worker": pa.array(workers, pa.string()).cast(text),
            "peer": pa.array(peers, pa.string()).cast(text),
            "operator": pa.array(operators, pa.string()).cast(text),
            "start_ns": pa.array(starts, pa.int64()),
            "end_ns": pa.array(ends, pa.int64()),
        }
    )
