"""What Flink's REST API says about each instance (subtask) of an operator: counters, never its meters.

``numRecordsInPerSecond`` and its like are ``(count now - count 60 s ago) / 60`` whatever the uptime: for 80 s after
every start and every rescale they are far too low. Counters are right at once, so nothing else is read here.

Two answers have them: the page of a vertex (one request an operator, with the attempt's number and age), and the
vertex's list of metrics, asked for by name. Flink refreshes what is behind both every
``metrics.fetcher.update-interval`` (10 s unless configured) and stamps neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from urllib.parse import quote

from analytics.decode.batch import Oddities
from analytics.decode.flink_rest import Diagnostics, load, load_object, refusal
from analytics.decode.json_fields import MAX_COUNT, JsonObject, items, mapping, number, text, whole
from analytics.decode.limits import UnreadableFileError
from analytics.model.topology import InstanceCounters, MemoryUse, Operator, Topology

MAX_QUERY_CHARS = 3_500
"""Flink's server refuses request lines of more than 4,096 characters."""

_LISTED = {
    "numRecordsIn": "records_in",
    "numRecordsOut": "records_out",
    "accumulateBusyTimeMs": "busy_ms",
    "accumulateIdleTimeMs": "idle_ms",
    "accumulateBackPressuredTimeMs": "backpressured_ms",
    "Shuffle.Netty.Input.Buffers.inputQueueLength": "queued",
    "numBytesOut": "bytes_out",
}
_ON_PAGE = {
    "read-records": "records_in",
    "write-records": "records_out",
    "write-bytes": "bytes_out",
    "accumulated-busy-time": "busy_ms",
    "accumulated-idle-time": "idle_ms",
    "accumulated-backpressured-time": "backpressured_ms",
}
_PENDING = ".pendingRecords"
_GC = ("Status.JVM.GarbageCollector.All.TimeMsPerSecond",)
_HEAP = ("Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.Heap.Max")
_METASPACE = ("Status.JVM.Memory.Metaspace.Used", "Status.JVM.Memory.Metaspace.Max")
_LEAST_BUSY_MS = 1_000


def counter_queries(parallelism: int) -> Iterator[str]:
    """Queries for ``/jobs/:id/vertices/:v/metrics`` that together list every instance's counters."""
    return metric_queries(f"{at}.{name}" for at in range(parallelism) for name in _LISTED)


def metric_queries(names: Iterable[str]) -> Iterator[str]:
    """Queries ``get=a,b,…`` for these metrics, each short enough for Flink's server."""
    chosen: list[str] = []
    length = 0
    for name in names:
        encoded = quote(name, safe="")
        if chosen and length + len(encoded) + 1 > MAX_QUERY_CHARS:
            yield "get=" + ",".join(chosen)
            chosen, length = [], 0
        chosen.append(encoded)
        length += len(encoded) + 1
    if chosen:
        yield "get=" + ",".join(chosen)


def decode_metric_list(body: bytes) -> dict[str, float | None]:
    """Metrics by name, from any answer to ``…/metrics``; None where the value is "NaN" or was not asked for.

    A name that was asked for and is not here is unknown, as is everything in an empty list: Flink answers ``[]``
    for some seconds after a start, and the aggregating pages do if a single name is unknown.

    Raises
    ------
    UnreadableFileError
        If the answer is no such list.
    """
    document, budget = load(body)
    if not isinstance(document, list):
        raise UnreadableFileError(refusal(body) or "expected a list of metrics")
    budget.take_records(len(document))
    found = [item for item in document if isinstance(item, dict)]
    return {text(item, "id"): number(item, "value") for item in found if text(item, "id")}


def decode_listed_counters(
    bodies: Iterable[bytes], operator: Operator, topology: Topology, at_ns: int
) -> tuple[tuple[InstanceCounters, ...], Diagnostics]:
    """An operator's counters from the answers to its ``counter_queries``.

    Parameters
    ----------
    bodies
        All answers of one poll.
    operator, topology
        As the job's page said in the same poll; they tell when the running attempt began.
    at_ns
        When the poll was made.

    Returns
    -------
    tuple
        The instances that the answers name, by number. One beyond the operator's parallelism, which an attempt
        before a rescale left behind, is counted under ``beyond_parallelism``, a negative counter under
        ``negative_counter``.
    """
    oddities = Oddities()
    told: dict[int, dict[str, float]] = {}
    for body in bodies:
        for name, value in decode_metric_list(body).items():
            instance, _, metric = name.partition(".")
            field = _LISTED.get(metric)
            if field is None or value is None or not instance.isascii() or not instance.isdecimal():
                continue
            if len(instance) > 9 or int(instance) >= operator.parallelism:
                oddities.add("beyond_parallelism", f"{operator.name:.60} has no instance {instance:.20}")
                continue
            checked = _plausible(field, value, f"{operator.name:.60} {name:.60}", oddities)
            if checked is not None:
                told.setdefault(int(instance), {})[field] = checked
    age_ms = None
    if topology.at_ms is not None and operator.started_at_ms is not None:
        age_ms = max(topology.at_ms - operator.started_at_ms, 0)
    counters = tuple(
        replace(
            _counters(operator.id, at, at_ns, told[at]),
            attempt_age_ms=age_ms,
            attempt_started_at_ms=operator.started_at_ms,
        )
        for at in sorted(told)
    )
    return counters, oddities.diagnostics()


def decode_vertex(body: bytes, at_ns: int) -> tuple[tuple[InstanceCounters, ...], Diagnostics]:
    """An operator's counters from ``/jobs/:id/vertices/:v``.

    Returns
    -------
    tuple
        One for each subtask. Zeros that Flink marks as not complete are None: it writes them until a new attempt
        has reported. A subtask without number is counted under ``missing_field``.

    Raises
    ------
    UnreadableFileError
        If the answer is something else.
    """
    document, budget = load_object(body, "subtasks")
    oddities = Oddities()
    counters = []
    for at, subtask in enumerate(items(document, "subtasks")):
        budget.take_records()
        instance = whole(subtask, "subtask")
        if instance is None or instance < 0:
            oddities.add("missing_field", f"subtask {at} has no number")
        else:
            counters.append(_from_page(document, subtask, instance, at_ns, oddities))
    return tuple(counters), oddities.diagnostics()


def memory_queries() -> Iterator[str]:
    """Queries for ``/taskmanagers/metrics``, a figure each: an answer is empty if one of its names is unknown."""
    for names in (_GC, _HEAP, _METASPACE):
        yield from (f"{query}&agg=max" for query in metric_queries(names))


def decode_memory(bodies: Iterable[bytes]) -> MemoryUse | None:
    """How short of memory the TaskManagers are, from the answers to `memory_queries`; None if they tell nothing.

    Raises
    ------
    UnreadableFileError
        If an answer is something else.
    """
    most: dict[str, float | None] = {}
    for body in bodies:
        document, budget = load(body)
        if not isinstance(document, list):
            raise UnreadableFileError(refusal(body) or "expected a list of metrics")
        budget.take_records(len(document))
        most |= {text(item, "id"): number(item, "max") for item in document if isinstance(item, dict)}
    gc_ms_per_s = most.get(_GC[0])
    found = MemoryUse(
        None if gc_ms_per_s is None else _share(gc_ms_per_s, 1_000.0),
        _share(most.get(_HEAP[0]), most.get(_HEAP[1])),
        _share(most.get(_METASPACE[0]), most.get(_METASPACE[1])),
    )
    return None if found == MemoryUse() else found


def _share(part: float | None, whole_of_it: float | None) -> float | None:
    """A part of something as a ratio between 0 and 1; Flink says -1 if there is no limit."""
    if part is None or whole_of_it is None or part < 0 or whole_of_it <= 0:
        return None
    return min(part / whole_of_it, 1.0)


def pending_record_names(names: Iterable[str]) -> tuple[str, ...]:
    """The metrics among an operator's that say how many records wait in a source, in order.

    Their names contain the source operator's: ``0.Source__events.pendingRecords``.
    """
    return tuple(sorted(name for name in names if name.endswith(_PENDING)))


def _from_page(
    page: JsonObject, subtask: JsonObject, instance: int, at_ns: int, oddities: Oddities
) -> InstanceCounters:
    metrics = mapping(subtask, "metrics")
    name = f"{text(page, 'name'):.60} {instance}"
    good = {}
    for key, field in _ON_PAGE.items():
        value = number(metrics, key)
        checked = None if value is None else _plausible(field, value, f"{name} {field}", oddities)
        if checked is not None:
            good[field] = checked
    started_at_ms, now_ms = whole(subtask, "start-time"), whole(page, "now")
    known_start = started_at_ms if started_at_ms and started_at_ms > 0 else None
    counters = replace(
        _counters(text(page, "id"), instance, at_ns, good),
        attempt=whole(subtask, "attempt"),
        attempt_age_ms=max(now_ms - known_start, 0) if now_ms and known_start else None,
        attempt_started_at_ms=known_start,
    )
    return _without_zeros_never_counted(counters, metrics)


def _counters(operator_id: str, instance: int, at_ns: int, told: dict[str, float]) -> InstanceCounters:
    return InstanceCounters(
        operator_id=operator_id,
        instance=instance,
        at_ns=at_ns,
        records_in=told.get("records_in"),
        records_out=told.get("records_out"),
        busy_ms=told.get("busy_ms"),
        idle_ms=told.get("idle_ms"),
        backpressured_ms=told.get("backpressured_ms"),
        queued=told.get("queued"),
        bytes_out=told.get("bytes_out"),
    )


def _without_zeros_never_counted(counters: InstanceCounters, metrics: JsonObject) -> InstanceCounters:
    if not counters.clock_ms:  # an attempt that has run for no time has not reported yet
        counters = replace(counters, busy_ms=None, idle_ms=None, backpressured_ms=None)
    if metrics.get("read-records-complete") is False:
        counters = replace(counters, records_in=None)
    if metrics.get("write-records-complete") is False:
        counters = replace(counters, records_out=None)
    if metrics.get("write-bytes-complete") is False:
        counters = replace(counters, bytes_out=None)
    return counters


def _plausible(field: str, value: float, what: str, oddities: Oddities) -> float | None:
    """The counter, or None. Busy time, which Flink gets by subtraction, may be just below zero: then it is 0."""
    if 0 <= value <= MAX_COUNT:
        return value
    if field == "busy_ms" and -_LEAST_BUSY_MS <= value < 0:
        return 0.0
    oddities.add("negative_counter" if value < 0 else "implausible_counter", f"{what} is {value}")
    return None
