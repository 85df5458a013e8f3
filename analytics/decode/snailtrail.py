"""SnailTrail's portable log records: bare MessagePack integers, seven a record, in any order.

``timestamp_ns, worker, activity type, event, correlator, remote worker, operator``; an event is Start 1, End 2,
Sent 3 or Received 4; the last three fields are -1 for none. There is no header: a file that is something else
shows as records nobody could have written.

Activity codes are ours, and 13, BusyWaiting, which becomes *waiting*: a worker that spins until something arrives
is waiting, and as processing it would be blamed for the time of the one it waits for. Codes 11 to 13 were meant to
be inferred, but programs write them, so they are taken as they are. How records become activities and messages is
in :mod:`analytics.decode.snailtrail_pairs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgpack
import numpy as np
from numpy.typing import NDArray

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import Oddities
from analytics.decode.limits import Budget, LimitedFile, UnreadableFileError, opened
from analytics.decode.snailtrail_pairs import RECEIVED, SENT, Log, paired
from analytics.model.activity import ActivityType
from analytics.model.trace import Int64, TraceBatch

FIELDS = 7
BUSY_WAITING = 13
CHUNK_BYTES = 1 << 20
_LONGEST = b"\xc0" * 9
"""As many nils as the longest number has bytes."""
_INT32 = 2**31 - 1
_INT64 = 2**63 - 1

Mask = NDArray[np.bool_]


class _Check(NamedTuple):
    """A mistake a record can have: its code, the field to show, and which records have it."""

    code: str
    field: int
    says: str
    fails: Callable[[Int64], Mask]


def _is_message(table: Int64) -> Mask:
    return np.isin(table[:, 2], (ActivityType.CONTROL_MESSAGE, ActivityType.DATA_MESSAGE))


def _beyond(field: int, least: int, most: int) -> Callable[[Int64], Mask]:
    return lambda table: (table[:, field] < least) | (table[:, field] > most)


_CHECKS = (
    _Check("unknown_type", 2, "activity type {}", _beyond(2, 1, BUSY_WAITING)),
    _Check("unknown_event", 3, "event type {}", _beyond(3, 1, RECEIVED)),
    _Check("time_out_of_range", 0, "time {} ns", _beyond(0, 0, LATEST_NS)),
    _Check("number_out_of_range", 1, "worker number {}", _beyond(1, 0, _INT32)),
    _Check("number_out_of_range", 5, "remote worker number {}", _beyond(5, -1, _INT32)),
    _Check("number_out_of_range", 6, "operator number {}", _beyond(6, -1, _INT32)),
    _Check(
        "not_a_message", 2, "type {} cannot be sent or received",
        lambda table: (table[:, 3] >= SENT) & ~_is_message(table),
    ),
    _Check(
        "not_an_activity", 2, "a message (type {}) has no start or end",
        lambda table: (table[:, 3] < SENT) & _is_message(table),
    ),
    _Check(
        "message_without_correlator", 4, "correlator {} names no message",
        lambda table: (table[:, 3] >= SENT) & (table[:, 4] == -1),
    ),
)  # fmt: skip


def read_snailtrail(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """All files together as one trace: an activity may start in one and end in another.

    Returns
    -------
    TraceBatch
        Workers and operators are named ``worker 3`` and ``operator 7``. Bad records are left out and counted under
        ``unknown_type``, ``unknown_event``, ``time_out_of_range``, ``number_out_of_range``, ``not_an_integer``,
        ``not_a_message``, ``not_an_activity`` or ``message_without_correlator``; ``damaged`` and ``truncated``
        say that a file was read only so far.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, is larger than the budget, or has no usable record though it is not empty.
    """
    oddities = Oddities()
    logs: list[Log] = []
    for path in paths:
        with opened(path, budget) as file:
            logs += _good_records(file, budget, oddities, f"{path}, " if len(paths) > 1 else "")
    return paired(Log.concat(logs), oddities)


def _good_records(file: LimitedFile, budget: Budget, oddities: Oddities, source: str) -> list[Log]:
    found = Oddities()
    logs: list[Log] = []
    before = 0
    for fields in _fields(file, found):
        whole = len(fields) // FIELDS
        budget.take_records(whole)
        table, usable = _integers(fields, before, found)
        _check(table, usable, before, found)
        if usable.any():
            logs.append(Log.of(table[usable]))
        before += whole
        if len(fields) % FIELDS:
            found.add("truncated", f"the file ends within record {before + 1}")
    odd = found.diagnostics()
    if file.position and not logs:
        raise UnreadableFileError(f"not a SnailTrail log: no usable record ({odd[0].example})")
    for item in odd:
        oddities.add(item.code, source + item.example, item.count)
    return logs


def _fields(file: LimitedFile, oddities: Oddities) -> Iterator[list[object]]:
    """The file's values, whole records only, some at a time."""
    nothing_longer = dict.fromkeys(
        ("max_str_len", "max_bin_len", "max_array_len", "max_map_len", "max_ext_len"), 0
    )
    unpacker: Any = msgpack.Unpacker(raw=True, **nothing_longer)
    fields: list[object] = []
    count = 0
    try:
        while data := file.read(CHUNK_BYTES):
            unpacker.feed(data)
            fields.extend(unpacker)  # keeps what came before an error
            left = fields[len(fields) - len(fields) % FIELDS :]
            yield fields[: len(fields) - len(left)]
            count += len(fields) - len(left)
            fields = left
        unpacker.feed(_LONGEST)
        cut = list(unpacker) != [None] * len(_LONGEST)  # then the last number has swallowed some
    except ValueError:  # what msgpack raises for bytes that are no scalar
        whole = len(fields) - len(fields) % FIELDS
        oddities.add(
            "damaged", f"after record {(count + whole) // FIELDS}: no integer; the rest was not read"
        )
        yield fields[:whole]
        return
    if cut or fields:
        oddities.add("truncated", f"the file ends within record {count // FIELDS + 1}")


def _integers(fields: list[object], before: int, oddities: Oddities) -> tuple[Int64, Mask]:
    """The values as rows of seven, and which rows hold integers only."""
    if set(map(type, fields)) <= {int}:
        try:
            table = np.array(fields, np.int64).reshape(-1, FIELDS)
            return table, np.ones(len(table), np.bool_)
        except OverflowError:
            pass  # an unsigned value beyond int64: look at each
    usable = np.ones(len(fields) // FIELDS, np.bool_)
    for at, value in enumerate(fields):
        if type(value) is int and -_INT64 <= value <= _INT64:
            continue
        fields[at] = 0
        if usable[at // FIELDS]:
            usable[at // FIELDS] = False
            code = "number_out_of_range" if type(value) is int else "not_an_integer"
            oddities.add(code, f"record {before + at // FIELDS + 1}: {value!r:.60}")
    return np.array(fields, np.int64).reshape(-1, FIELDS), usable


def _check(table: Int64, usable: Mask, before: int, oddities: Oddities) -> None:
    """Take the rows with a mistake out of ``usable``; each counts once."""
    for check in _CHECKS:
        failing = usable & check.fails(table)
        count = int(np.count_nonzero(failing))
        if count:
            first = int(np.argmax(failing))
            value = check.says.format(table[first, check.field])
            oddities.add(check.code, f"record {before + first + 1}: {value}", count)
            usable &= ~failing
