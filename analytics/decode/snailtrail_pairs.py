"""SnailTrail log records to activities and messages: finding the two ends of each, on whole columns.

**Activities.** A Start and an End of one worker and type belong together when operator and correlator agree; what
is left over then, when either of the two does and says something. Of several open Starts the latest is ended
first, so recursion nests. At one instant an End ends what began before; if nothing did, what begins there and has
no length. An End without a Start begins with the trace, a Start without an End ends with it, and both are counted.

**Messages.** By type, sender, receiver and correlator. Where an end does not say who its peer is (a broadcast, a
one-sided message), both ends become message halves, which :mod:`analytics.decode.halves` joins by the same rules;
so do ends that found no other, because another file or batch may have it.

The order of records in the files decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.decode.batch import Oddities
from analytics.model.activity import ActivityType
from analytics.model.trace import NONE, HalfMessage, Int32, Int64, Records, TraceBatch, UInt8, Worker

START, END, SENT, RECEIVED = 1, 2, 3, 4

Positions = NDArray[np.intp]
Mask = NDArray[np.bool_]


class Log(NamedTuple):
    """Log records as columns of one length."""

    at_ns: Int64
    worker: Int32
    kind: UInt8
    event: UInt8
    correlator: Int64
    remote: Int32
    operator: Int32

    @staticmethod
    def of(table: Int64) -> Log:
        """From rows of seven checked integers."""
        types = (np.int64, np.int32, np.uint8, np.uint8, np.int64, np.int32, np.int32)
        return Log._make(table[:, at].astype(kind) for at, kind in enumerate(types))

    @staticmethod
    def concat(parts: Sequence[Log]) -> Log:
        """All records of the parts."""
        some = parts or [Log.of(np.empty((0, 7), np.int64))]
        return Log._make(np.concatenate(columns) for columns in zip(*some, strict=True))

    def take(self, selection: Positions | Mask) -> Log:
        """These records."""
        return Log._make(column[selection] for column in self)


def paired(log: Log, oddities: Oddities) -> TraceBatch:
    """The trace these records tell of; what has no other end is counted in ``oddities``."""
    log = log._replace(
        kind=np.minimum(log.kind, ActivityType.WAITING).astype(np.uint8)
    )  # 13 is a way to wait
    is_message = log.event >= SENT
    activities = _activities(log, np.flatnonzero(~is_message), oddities)
    messages, lonely = _messages(log.take(is_message), oddities)
    records = Records.concat([activities, messages])
    used = [records.worker, records.peer, lonely.worker, lonely.remote]
    workers, operators = _distinct(used), _distinct([records.operator])
    named = replace(
        records,
        worker=_positions(workers, records.worker),
        peer=_positions(workers, records.peer),
        operator=_positions(operators, records.operator),
    )
    return TraceBatch(
        records=named,
        halves=_halves(lonely, workers),
        workers=tuple(Worker(f"worker {number}") for number in workers.tolist()),
        operators=tuple(f"operator {number}" for number in operators.tolist()),
        diagnostics=oddities.diagnostics(),
    )


def _activities(log: Log, chosen: Positions, oddities: Oddities) -> Records:
    """Every activity once; numbers of workers and operators are still those of the log."""
    starts: list[Positions] = []
    ends: list[Positions] = []
    rounds = (
        (log.worker, log.kind, log.operator, log.correlator),
        (log.worker, log.kind, log.correlator),
        (log.worker, log.kind, log.operator),
    )
    left = chosen
    for columns in rounds:
        says = left[columns[-1][left] != NONE] if starts else left
        key = _packed([column[says] for column in columns])
        start, end = match_brackets(key, log.at_ns[says], log.event[says] == END)
        starts.append(says[start])
        ends.append(says[end])
        left = np.setdiff1d(left, np.concatenate([starts[-1], ends[-1]]), assume_unique=True)
        if not len(left):
            break
    start, end = np.concatenate(starts), np.concatenate(ends)
    lone = _clipped(log, left, oddities)
    operator = np.where(log.operator[start] == NONE, log.operator[end], log.operator[start])
    whole = _rows(log.kind[start], log.worker[start], operator, log.at_ns[start], log.at_ns[end])
    return Records.concat([whole, lone])


def _clipped(log: Log, left: Positions, oddities: Oddities) -> Records:
    """Activities of which one end is missing, up to the border of the trace."""
    is_end = log.event[left] == END
    for code, mask, word in (("unmatched_start", ~is_end, "end"), ("unmatched_end", is_end, "start")):
        if mask.any():
            first = left[mask][np.argmin(log.at_ns[left[mask]])]
            kind = ActivityType(log.kind[first]).label
            example = f"{kind} on log worker {log.worker[first]} at {log.at_ns[first]} ns has no {word}"
            oddities.add(code, example, int(np.count_nonzero(mask)))
    bounds = (int(log.at_ns.min()), int(log.at_ns.max())) if len(log.at_ns) else (0, 0)
    at = log.at_ns[left]
    return _rows(
        log.kind[left],
        log.worker[left],
        log.operator[left],
        np.where(is_end, bounds[0], at),
        np.where(is_end, at, bounds[1]),
    )


def _rows(kind: UInt8, worker: Int32, operator: Int32, start_ns: Int64, end_ns: Int64) -> Records:
    return Records(kind, worker, np.full(len(kind), NONE, np.int32), operator, start_ns, end_ns)


def match_brackets(key: Int64, at: Int64, is_end: Mask) -> tuple[Positions, Positions]:
    """Starts and their Ends, the latest open Start first, for each key on its own.

    Depth goes up at a Start and down at an End; along one key and one depth Starts and Ends take turns, so
    neighbours there are the two ends of one activity. Sorting takes the place of a stack.

    Returns
    -------
    starts, ends
        Positions in the given arrays; ``starts[i]`` and ``ends[i]`` belong together.
    """
    if not len(key):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    order = _in_turn(key, at, is_end)
    ending = is_end[order]
    depth = np.cumsum(np.where(ending, -1, 1)) + ending
    by_depth = np.lexsort((depth, key[order]))
    order, depth, ending = order[by_depth], depth[by_depth], ending[by_depth]
    together = (key[order[1:]] == key[order[:-1]]) & (depth[1:] == depth[:-1]) & ending[1:] & ~ending[:-1]
    first = np.flatnonzero(together)
    return order[first], order[first + 1]


def _in_turn(key: Int64, at: Int64, is_end: Mask) -> Positions:
    """Sorted by key, time, and within an instant: Ends of what is open, Starts, the other Ends."""
    order = np.lexsort((is_end, at, key))
    key, at, ending = key[order], at[order], is_end[order]
    new_key = np.r_[True, key[1:] != key[:-1]]
    first = np.flatnonzero(np.r_[True, (at[1:] != at[:-1])] | new_key)  # of every (key, instant)
    instant = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(key)]))
    starting = np.bincount(instant, ~ending).astype(np.int64)
    net = np.bincount(instant, np.where(ending, -1, 1)).astype(np.int64)
    number = np.cumsum(new_key[first]) - 1
    before = np.cumsum(net) - net
    before -= before[np.flatnonzero(new_key[first])][number]
    apart = number * (2 * len(key) + 1)  # so that a running minimum begins anew with every key
    is_open = before - (np.minimum.accumulate(before - apart) + apart)
    rank = np.arange(len(key)) - first[instant] - starting[instant]  # of an End among those of its instant
    turn = np.where(ending, np.where(rank < is_open[instant], 0, 2), 1)
    return order[np.argsort(instant * 3 + turn, kind="stable")]


def _messages(log: Log, oddities: Oddities) -> tuple[Records, Log]:
    """Messages whose ends both name the other, and the records to be joined elsewhere."""
    if not len(log.at_ns):
        return Records.of([]), log
    message = np.unique(_packed([log.kind, log.correlator]), return_inverse=True)[1]
    vague = (np.bincount(message, log.remote == NONE) > 0)[message]
    received = log.event == RECEIVED
    ends = [np.where(received, log.remote, log.worker), np.where(received, log.worker, log.remote)]
    key = _packed([log.kind, log.correlator, *ends])
    sents = _first_each(np.flatnonzero(~vague & ~received), key, log, oddities)
    arrivals = _distinct_arrivals(np.flatnonzero(~vague & received), key, log, oddities)
    if not len(sents):
        return Records.of([]), log.take(np.concatenate([np.flatnonzero(vague), arrivals]))
    place = np.minimum(np.searchsorted(key[sents], key[arrivals]), len(sents) - 1)
    found = key[sents][place] == key[arrivals]
    sent, arrival = sents[place[found]], arrivals[found]
    unused = np.setdiff1d(sents, sent, assume_unique=False)
    lonely = log.take(np.concatenate([np.flatnonzero(vague), unused, arrivals[~found]]))
    operator = np.where(log.operator[sent] == NONE, log.operator[arrival], log.operator[sent])
    rows = Records(
        log.kind[sent], log.worker[sent], log.worker[arrival], operator, log.at_ns[sent], log.at_ns[arrival]
    )
    return rows, lonely


def _first_each(sents: Positions, key: Int64, log: Log, oddities: Oddities) -> Positions:
    """The earliest Sent of every key, by key."""
    sents = sents[np.lexsort((log.at_ns[sents], key[sents]))]
    again = np.r_[False, key[sents[1:]] == key[sents[:-1]]][: len(sents)]
    _count_again("duplicate_sent", "sent again", sents[again], log, oddities)
    distinct: Positions = sents[~again]
    return distinct


def _distinct_arrivals(arrivals: Positions, key: Int64, log: Log, oddities: Oddities) -> Positions:
    arrivals = arrivals[np.lexsort((log.at_ns[arrivals], key[arrivals]))]
    later, earlier = arrivals[1:], arrivals[:-1]
    same = (key[later] == key[earlier]) & (log.at_ns[later] == log.at_ns[earlier])
    again = np.r_[False, same][: len(arrivals)]
    _count_again("duplicate_received", "received twice", arrivals[again], log, oddities)
    distinct: Positions = arrivals[~again]
    return distinct


def _count_again(code: str, says: str, again: Positions, log: Log, oddities: Oddities) -> None:
    if len(again):
        first = again[np.argmin(log.at_ns[again])]
        example = f"correlation '{log.correlator[first]}' was {says} at {log.at_ns[first]} ns"
        oddities.add(code, example, len(again))


def _halves(lonely: Log, workers: Int32) -> tuple[HalfMessage, ...]:
    columns = zip(
        lonely.kind.tolist(),
        (lonely.event == RECEIVED).tolist(),
        _positions(workers, lonely.worker).tolist(),
        _positions(workers, lonely.remote).tolist(),
        lonely.at_ns.tolist(),
        map(str, lonely.correlator.tolist()),
        strict=True,
    )
    return tuple(HalfMessage(*row) for row in columns)


def _packed(columns: Sequence[NDArray[np.signedinteger] | UInt8]) -> Int64:
    """One integer a row, equal where all columns are equal."""
    key = np.zeros(len(columns[0]), np.int64)
    size = 1
    for column in columns:
        values: Int64 = column.astype(np.int64)
        least, most = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        if size * (most - least + 1) >= 2**62:  # number what occurs instead of the range
            values, key = (np.unique(some, return_inverse=True)[1] for some in (values, key))
            least, most, size = 0, int(values.max()), int(key.max()) + 1
        key = key * (most - least + 1) + (values - least)
        size *= most - least + 1
    return key


def _distinct(columns: Iterable[Int32]) -> Int32:
    """The numbers that occur, ascending, without NONE."""
    found = np.unique(np.concatenate([np.unique(column) for column in columns]))
    numbers: Int32 = found[found != NONE]
    return numbers


def _positions(known: Int32, numbers: Int32) -> Int32:
    return np.where(numbers == NONE, NONE, np.searchsorted(known, numbers)).astype(np.int32)
