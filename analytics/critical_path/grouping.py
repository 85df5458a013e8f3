"""From records in any order to the events of each worker in time order.

Two passes over the records: the first says what each is and counts, the second puts activities and the two
ends of every message where their worker's stretch of the arrays is (a counting sort). A worker whose stretch
is not in time order already is then sorted by itself.
"""

from typing import NamedTuple

import numpy as np

from analytics.critical_path.jit import kernel
from analytics.critical_path.labels import Labels, label_records
from analytics.critical_path.ordering import ascending_order, is_ascending
from analytics.model.activity import TYPE_COUNT, ActivityType
from analytics.model.diagnostics import Diagnostic
from analytics.model.trace import Int32, Int64, Records, UInt8

ACTIVITY, MESSAGE, UNUSABLE, NEGATIVE = range(4)

_CONTROL, _DATA = int(ActivityType.CONTROL_MESSAGE), int(ActivityType.DATA_MESSAGE)


class Grouped(NamedTuple):
    """Events by worker. ``x_offset[w]:x_offset[w+1]`` are the positions of worker w.

    Activities (``start``, ``end``, ``label``) ascend by start. Message ends (``when``, ``ref``) ascend by
    time; ``ref`` is twice the message's position, plus one where it is received. ``msg_*`` are one a message.
    """

    activity_offset: Int64
    start: Int64
    end: Int64
    label: Int32
    event_offset: Int64
    when: Int64
    ref: Int64
    msg_src: Int32
    msg_dst: Int32
    msg_sent: Int64
    msg_received: Int64
    msg_type: UInt8
    msg_operator: Int32


@kernel
def _classify(
    n: int, kinds: UInt8, peers: Int32, workers: Int32, types: UInt8, start: Int64, end: Int64,
    activity_offset: Int64, event_offset: Int64,
) -> int:  # fmt: skip
    """Say what every record is; count those of worker w into offset[w + 1]. Returns the number of messages."""
    messages = 0
    for i in range(len(types)):
        worker, peer = workers[i], peers[i]
        if worker < 0 or worker >= n or types[i] < 1 or types[i] >= TYPE_COUNT:
            kinds[i] = UNUSABLE
        elif peer < 0:
            kinds[i] = ACTIVITY if end[i] >= start[i] else NEGATIVE
            activity_offset[worker + 1] += kinds[i] == ACTIVITY
        elif peer >= n or (types[i] != _CONTROL and types[i] != _DATA):
            kinds[i] = UNUSABLE
        else:
            kinds[i] = MESSAGE
            messages += 1
            event_offset[worker + 1] += 1
            event_offset[peer + 1] += 1
    for w in range(n):
        activity_offset[w + 1] += activity_offset[w]
        event_offset[w + 1] += event_offset[w]
    return messages


@kernel
def _scatter(
    kinds: UInt8, types: UInt8, workers: Int32, peers: Int32, operators: Int32, rows: Int32, start: Int64,
    end: Int64, table: Int32, out: Grouped,
) -> None:  # fmt: skip
    next_activity = out.activity_offset.copy()
    next_event = out.event_offset.copy()
    m = 0
    for i in range(len(types)):
        worker = workers[i]
        if kinds[i] == ACTIVITY:
            at = next_activity[worker]
            next_activity[worker] = at + 1
            out.start[at] = start[i]
            out.end[at] = end[i]
            out.label[at] = table[(rows[i] + 1) * TYPE_COUNT + types[i]]
        elif kinds[i] == MESSAGE:
            out.msg_src[m], out.msg_dst[m] = worker, peers[i]
            out.msg_sent[m], out.msg_received[m] = start[i], end[i]
            out.msg_type[m], out.msg_operator[m] = types[i], operators[i]
            for received in range(2):
                owner = peers[i] if received else worker
                at = next_event[owner]
                next_event[owner] = at + 1
                out.when[at] = end[i] if received else start[i]
                out.ref[at] = 2 * m + received
            m += 1


@kernel
def _sort_workers(n: int, grouped: Grouped) -> None:
    for w in range(n):
        low, high = grouped.activity_offset[w], grouped.activity_offset[w + 1]
        if not is_ascending(grouped.start, low, high):
            order = low + ascending_order(grouped.start[low:high])
            grouped.start[low:high] = grouped.start[order]
            grouped.end[low:high] = grouped.end[order]
            grouped.label[low:high] = grouped.label[order]
        low, high = grouped.event_offset[w], grouped.event_offset[w + 1]
        if not is_ascending(grouped.when, low, high):
            order = low + ascending_order(grouped.when[low:high])
            grouped.when[low:high] = grouped.when[order]
            grouped.ref[low:high] = grouped.ref[order]


def group_by_worker(records: Records, n_workers: int) -> tuple[Grouped, Labels, UInt8, list[Diagnostic]]:
    """Events of every worker in time order, labels, and the kind of every record (ACTIVITY, MESSAGE, …)."""
    r = records
    labels, rows = label_records(r)
    kinds = np.empty(len(r), np.uint8)
    activity_offset = np.zeros(n_workers + 1, np.int64)
    event_offset = np.zeros(n_workers + 1, np.int64)
    messages = _classify(
        n_workers, kinds, r.peer, r.worker, r.type, r.start_ns, r.end_ns, activity_offset, event_offset
    )
    activities, events = int(activity_offset[-1]), int(event_offset[-1])
    grouped = Grouped(
        activity_offset, np.empty(activities, np.int64), np.empty(activities, np.int64),
        np.empty(activities, np.int32), event_offset, np.empty(events, np.int64), np.empty(events, np.int64),
        np.empty(messages, np.int32), np.empty(messages, np.int32), np.empty(messages, np.int64),
        np.empty(messages, np.int64), np.empty(messages, np.uint8), np.empty(messages, np.int32),
    )  # fmt: skip
    _scatter(kinds, r.type, r.worker, r.peer, r.operator, rows, r.start_ns, r.end_ns, labels.table, grouped)
    _sort_workers(n_workers, grouped)
    return grouped, labels, kinds, _diagnose(r, kinds, len(r) - activities - messages)


def _diagnose(records: Records, kinds: UInt8, ignored: int) -> list[Diagnostic]:
    """What was ignored, and which messages arrived before they left."""
    found: list[Diagnostic] = []
    if ignored:
        unusable, negative = np.flatnonzero(kinds == UNUSABLE), np.flatnonzero(kinds == NEGATIVE)
        if len(unusable):
            i = unusable[0]
            found.append(
                Diagnostic(
                    "unusable_record",
                    len(unusable),
                    f"type {records.type[i]} on worker {records.worker[i]} with peer {records.peer[i]}"
                    f" at {records.start_ns[i]} ns was ignored",
                )
            )
        if len(negative):
            i = negative[0]
            found.append(
                Diagnostic(
                    "negative_duration",
                    len(negative),
                    f"activity on worker {records.worker[i]} from {records.start_ns[i]} ns ends before it"
                    f" starts, at {records.end_ns[i]} ns; it was ignored",
                )
            )
    skewed = np.flatnonzero((records.end_ns < records.start_ns) & (kinds == MESSAGE))
    if len(skewed):
        i = skewed[0]
        found.append(
            Diagnostic(
                "clock_skew",
                len(skewed),
                f"worker {records.peer[i]} received at {records.end_ns[i]} ns what worker"
                f" {records.worker[i]} sent at {records.start_ns[i]} ns",
            )
        )
    return found
