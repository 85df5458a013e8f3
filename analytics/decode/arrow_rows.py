"""Rows of a table to records, a column at a time: names become numbers, rows with a mistake are left out."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import MAX_NAME_CHARS, BatchBuilder, Oddities
from analytics.decode.limits import UnreadableFileError
from analytics.model.activity import BY_LABEL, TYPE_COUNT, ActivityType
from analytics.model.trace import NONE, Int32, Int64, Records, TraceBatch

_BAD = -2
"""In the place of a number: something that cannot be used (while NONE is nothing)."""
_ABSENT, _TOO_LATE = -(2**63), LATEST_NS + 1
_IS_MESSAGE = np.isin(np.arange(TYPE_COUNT + 2), [int(kind) for kind in ActivityType if kind.is_message])
"""By code; NONE and ``_BAD``, being negative, read the last two."""

_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

Mask = NDArray[np.bool_]


class _Named(NamedTuple):
    """A column of names: positions in ``names``, NONE or ``_BAD``."""

    codes: Int64
    names: list[str | None]


class RowDecoder:
    """Collects batches of rows into one trace.

    Bad rows are counted under ``missing_field``, ``unknown_type``, ``bad_name``, ``time_out_of_range``,
    ``message_without_peer`` and ``negative_duration``; ``source`` stands in front of their examples.
    """

    def __init__(self) -> None:
        self.source = ""
        self.rows = 0
        self._builder = BatchBuilder()
        self.oddities: Oddities = self._builder.oddities
        self._parts: list[Records] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a batch that has at least the columns type, worker, start_ns and end_ns.

        Raises
        ------
        UnreadableFileError
            If a column has a type in which no such values come.
        """
        kind = _types(batch["type"])
        is_message = _IS_MESSAGE[kind]
        worker = _named(batch, "worker")
        peer, operator = _named(batch, "peer"), _named(batch, "operator")
        peer = peer._replace(codes=np.where(is_message, peer.codes, NONE))
        start_ns, end_ns = _times(batch, "start_ns"), _times(batch, "end_ns")
        mask = self._usable(kind, worker, peer, operator, start_ns, end_ns)
        good = slice(None) if mask.all() else mask
        self._parts.append(
            Records(
                kind[good].astype(np.uint8),
                self._numbers(worker, good, operators=False),
                self._numbers(peer, good, operators=False),
                self._numbers(operator, good, operators=True),
                start_ns[good],
                end_ns[good],
            )
        )
        self.rows += len(kind)

    def finish(self) -> TraceBatch:
        """Everything as one batch."""
        return replace(self._builder.build(), records=Records.concat(self._parts))

    def _usable(
        self, kind: Int64, worker: _Named, peer: _Named, operator: _Named, start_ns: Int64, end_ns: Int64
    ) -> Mask:
        is_message = _IS_MESSAGE[kind]
        absent = (kind == NONE) | (worker.codes == NONE) | (start_ns == _ABSENT) | (end_ns == _ABSENT)
        unnamed = (worker.codes == _BAD) | (peer.codes == _BAD) | (operator.codes == _BAD)
        late = _is_late(start_ns) | _is_late(end_ns)
        checks = (
            ("missing_field", absent, "type, worker, start_ns or end_ns is null"),
            ("unknown_type", kind == _BAD, "unknown activity type"),
            ("bad_name", unnamed, f"a name must have 1 to {MAX_NAME_CHARS} characters and no NUL"),
            ("time_out_of_range", late, "a time is more than 2^62 ns from 1970"),
            ("message_without_peer", is_message & (peer.codes == NONE), "a message needs a peer"),
            ("negative_duration", ~is_message & (end_ns < start_ns), "it ends before its start"),
        )
        good = np.ones(len(kind), np.bool_)
        for code, fails, says in checks:
            count = int(np.count_nonzero(fails & good))
            if count:
                row = self.rows + int(np.argmax(fails & good)) + 1
                self.oddities.add(code, f"{self.source}row {row}: {says}", count)
                good &= ~fails
        return good

    def _numbers(self, column: _Named, good: Mask | slice, *, operators: bool) -> Int32:
        """Positions in the batch of the names in good rows; the others leave no name behind."""
        codes = column.codes[good]
        lookup = np.full(len(column.names) + 1, NONE, np.int32)  # NONE, being -1, reads the last
        for code in np.flatnonzero(np.bincount(codes[codes >= 0])).tolist():
            name = column.names[code]
            assert name is not None
            lookup[code] = self._builder.operator(name) if operators else self._builder.worker(name)
        return lookup[codes]


def _named(batch: pa.RecordBatch, name: str) -> _Named:
    if name not in batch.schema.names:
        return _Named(np.full(batch.num_rows, NONE, np.int64), [])
    column = batch[name]
    if pa.types.is_integer(column.type):
        numbers, codes = np.unique(_whole_numbers(column, NONE), return_inverse=True)
        said = "operator" if name == "operator" else "worker"
        names: list[str | None] = [f"{said} {number}" for number in numbers.tolist()]
        kinds = np.where(numbers >= 0, np.arange(len(numbers)), np.where(numbers == NONE, NONE, _BAD))
        return _Named(kinds[codes], names) if len(numbers) else _Named(codes.astype(np.int64), [])
    codes, names = _strings(column, name)
    kinds = np.array([*(_code_of(at, value) for at, value in enumerate(names)), NONE], np.int64)
    return _Named(kinds[codes], names)


def _code_of(at: int, name: str | None) -> int:
    if name is None:
        return NONE
    return at if 0 < len(name) <= MAX_NAME_CHARS and "\0" not in name else _BAD


def _strings(column: pa.Array, name: str) -> tuple[Int64, list[str | None]]:
    """Positions in the distinct strings, NONE for null, and those."""
    if pa.types.is_null(column.type):
        return np.full(len(column), NONE, np.int64), []
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode() if is_text(column.type) else column
    if not (pa.types.is_dictionary(column.type) and is_text(column.type.value_type)):
        raise UnreadableFileError(f"column {name} is {column.type}; expected strings or whole numbers")
    codes = column.indices.cast(pa.int64()).fill_null(NONE).to_numpy(zero_copy_only=False)
    return codes, column.dictionary.to_pylist()


def is_text(kind: pa.DataType) -> bool:
    """Whether names can come in a column of this type."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _types(column: pa.Array) -> Int64:
    if pa.types.is_integer(column.type):
        codes = _whole_numbers(column, NONE)
        return np.where((codes == NONE) | ((codes > 0) & (codes < TYPE_COUNT)), codes, _BAD)
    codes, labels = _strings(column, "type")
    kinds = [NONE if label is None else int(BY_LABEL.get(label, _BAD)) for label in labels]
    return np.array([*kinds, NONE], np.int64)[codes]


def _times(batch: pa.RecordBatch, name: str) -> Int64:
    """Nanoseconds; ``_ABSENT`` for null, ``_TOO_LATE`` for what does not fit."""
    column, unit_ns = batch[name], 1
    if pa.types.is_timestamp(column.type):
        unit_ns = _UNIT_NS[column.type.unit]
        column = column.cast(pa.int64())
    if not pa.types.is_integer(column.type):
        raise UnreadableFileError(f"column {name} is {column.type}; expected whole nanoseconds or timestamps")
    values = _whole_numbers(column, _ABSENT)
    if unit_ns == 1:
        return values  # what is too late says so itself
    fits = np.abs(values) <= LATEST_NS // unit_ns
    return np.where(values == _ABSENT, _ABSENT, np.where(fits, values, _TOO_LATE // unit_ns) * unit_ns)


def _is_late(values: Int64) -> Mask:
    return np.asarray((values > LATEST_NS) | (values < -LATEST_NS))


def _whole_numbers(column: pa.Array, null: int) -> Int64:
    """As int64; what is beyond it becomes its largest."""
    if pa.types.is_uint64(column.type):
        values = column.fill_null(0).to_numpy(zero_copy_only=False)
        whole = np.minimum(values, np.uint64(2**63 - 1)).astype(np.int64)
        return np.where(column.is_null().to_numpy(zero_copy_only=False), null, whole)
    column = column.cast(pa.int64())
    numbers: Int64 = (column.fill_null(null) if column.null_count else column).to_numpy(zero_copy_only=False)
    return numbers
