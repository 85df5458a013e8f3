"""Trace Event JSON, as Chrome, Perfetto, PyTorch, TensorFlow and Weir write it, to activities and messages.

- Threads are workers, named by their ``thread_name`` (with the process in front where two have one name).
- ``X``, and ``B`` with its ``E``, are activities. The type is the first of the event's categories that is one of
  our labels, else *processing*; the operator is ``args.operator`` if there is one (null for none), else the
  event's name.
- Flow events ``s``, ``t``, ``f`` with one name, category and id are messages, from each to the next in time;
  several ``f`` after one ``s`` are a broadcast. Asynchronous ``b``/``e`` (or ``S``/``F``) that begin and end on
  two threads are messages as well. Data messages, unless a category is ``control_message``.
- Counters, instants and the like are passed over and counted.

Times are microseconds with decimals and are read exactly, to the nanosecond; ``baseTimeNanoseconds``, as PyTorch
and Weir write it, is added. :mod:`analytics.decode.chrome_out` writes the same format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from analytics.decode.activities import LATEST_NS
from analytics.decode.batch import Oddities, clean_name, merge_batches
from analytics.decode.chrome_parts import PATH_CATEGORY, Bracket, FlowEnd, TraceParts
from analytics.decode.json_events import JsonEvents
from analytics.decode.limits import Budget, LimitedFile, UnreadableFileError, opened
from analytics.model.activity import BY_LABEL, ActivityType
from analytics.model.trace import TraceBatch

_FLOW_PHASES = frozenset("stf")
_ASYNC_PHASES = {"b": "b", "e": "e", "S": "b", "F": "e"}

Event = dict[str, Any]


class _BadEventError(Exception):
    """The event cannot be used; ``code`` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def read_chrome(paths: Sequence[Path], budget: Budget) -> TraceBatch:
    """Chrome traces as one; threads of the same name in several files are one worker.

    Raises
    ------
    UnreadableFileError
        If a file cannot be opened, is larger than the budget, or is not such a trace. Events that cannot be used
        are counted (``not_an_event``, ``missing_field``, ``wrong_type``, ``time_out_of_range``,
        ``negative_duration``, ``unmatched_begin``, ``unmatched_end``, ``unmatched_flow``, ``async_on_one_thread``,
        ``ignored_event``); ``damaged`` and ``truncated`` say that a file was read only so far.
    """
    batches = []
    for path in paths:
        with opened(path, budget) as file:
            batches.append(_decode(file, budget, f"{path}, " if len(paths) > 1 else ""))
    return merge_batches(batches)


def _decode(file: LimitedFile, budget: Budget, source: str) -> TraceBatch:
    events = JsonEvents(file)
    oddities = Oddities()
    parts = TraceParts(oddities)
    number = used = 0
    for number, event in enumerate(events, start=1):
        budget.take_records()
        try:
            used += _add(parts, event, oddities)
        except _BadEventError as error:
            oddities.add(error.code, f"{source}event {number}: {error}")
    if number and not used:
        raise UnreadableFileError(f"not a Chrome trace: {oddities.diagnostics()[0].example}")
    if events.problem:
        code, says = events.problem
        if not used:
            raise UnreadableFileError(f"not a Chrome trace: {says}")
        oddities.add(code, source + says)
    batch = parts.finish()
    return _shifted(batch, events.rest.get("baseTimeNanoseconds"), oddities)


def _shifted(batch: TraceBatch, base: object, oddities: Oddities) -> TraceBatch:
    """With all times ``base`` ns later."""
    whole = int(base) if isinstance(base, str) and base.lstrip("-").isdecimal() and len(base) < 20 else base
    records = batch.records
    if isinstance(whole, int) and whole:
        extent = max(np.abs([records.start_ns, records.end_ns]).max(initial=0), 0)
        if abs(whole) + int(extent) <= LATEST_NS:
            records = replace(records, start_ns=records.start_ns + whole, end_ns=records.end_ns + whole)
        else:
            oddities.add("time_out_of_range", f"baseTimeNanoseconds is {whole}: not added")
    elif base is not None and whole != 0:
        oddities.add("wrong_type", f"baseTimeNanoseconds is {base!r:.60}: not added")
    return replace(batch, records=records, diagnostics=oddities.diagnostics())


def _add(parts: TraceParts, event: object, oddities: Oddities) -> bool:
    """Take in one event; whether it said something."""
    if not isinstance(event, dict) or not isinstance(event.get("ph"), str):
        raise _BadEventError("not_an_event", f"{event!r:.80}")
    phase, thread = event["ph"], (str(event.get("pid", "")), str(event.get("tid", "")))
    categories = str(event.get("cat", "")).split(",")
    if phase == "M":
        _add_name(parts, event, thread)
    elif PATH_CATEGORY in categories:
        return True  # Weir draws the critical path as a lane of its own
    elif phase == "X":
        _add_complete(parts, event, thread, categories)
    elif phase in ("B", "E"):
        kind, operator = (None, None) if phase == "E" and not event.get("name") else _what(event, categories)
        parts.bracket(thread, Bracket(_time(event, "ts"), phase == "E", kind, operator))
    elif phase in _FLOW_PHASES or phase in _ASYNC_PHASES:
        _add_end(parts, event, thread, categories)
    else:
        oddities.add("ignored_event", f"phase {phase!r:.20} is neither activity nor message")
    return True


def _add_name(parts: TraceParts, event: Event, thread: tuple[str, str]) -> None:
    arguments = event.get("args")
    name = arguments.get("name") if isinstance(arguments, dict) else None
    if isinstance(name, str) and name:
        if event.get("name") == "process_name":
            parts.processes[thread[0]] = name
        elif event.get("name") == "thread_name":
            parts.threads[thread] = name


def _add_complete(parts: TraceParts, event: Event, thread: tuple[str, str], categories: list[str]) -> None:
    start, length = _microseconds(event, "ts"), _microseconds(event, "dur")
    start_ns, end_ns = _to_ns(start), _to_ns(start + length)
    if length < 0:
        raise _BadEventError("negative_duration", f"dur is {length} µs")
    kind, operator = _what(event, categories)
    parts.activity(thread, kind, operator, start_ns, end_ns)


def _add_end(parts: TraceParts, event: Event, thread: tuple[str, str], categories: list[str]) -> None:
    local = event.get("id2")
    identity = event.get("id", local)
    if identity is None:
        raise _BadEventError("missing_field", "id is missing")
    process = thread[0] if isinstance(local, dict) and "local" in local else None
    asynchronous = event["ph"] in _ASYNC_PHASES
    family = (event.get("cat"), event.get("name"), identity, event.get("scope"), asynchronous, process)
    kind = ActivityType.CONTROL_MESSAGE if ActivityType.CONTROL_MESSAGE.label in categories else None
    phase = _ASYNC_PHASES[event["ph"]] if asynchronous else event["ph"]
    parts.end(
        repr(family),
        FlowEnd(
            _time(event, "ts"),
            phase,
            thread,
            kind or ActivityType.DATA_MESSAGE,
            _told_operator(event),
        ),
    )


def _what(event: Event, categories: list[str]) -> tuple[ActivityType, str | None]:
    kinds = (BY_LABEL[name.strip()] for name in categories if name.strip() in BY_LABEL)
    kind = next((kind for kind in kinds if not kind.is_message), ActivityType.PROCESSING)
    arguments = event.get("args")
    if isinstance(arguments, dict) and "operator" in arguments:
        return kind, _told_operator(event)
    return kind, clean_name(str(event.get("name", "")))


def _told_operator(event: Event) -> str | None:
    arguments = event.get("args")
    operator = arguments.get("operator") if isinstance(arguments, dict) else None
    return clean_name(operator) if isinstance(operator, str) else None


def _time(event: Event, field: str) -> int:
    return _to_ns(_microseconds(event, field))


def _microseconds(event: Event, field: str) -> Decimal:
    value = event.get(field)
    if value is None:
        raise _BadEventError("missing_field", f"{field} is missing")
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _BadEventError("wrong_type", f"{field} must be a number of microseconds, not {value!r:.60}")
    exact = Decimal(value)
    if not exact.is_finite() or exact.copy_abs() > LATEST_NS // 1000:
        raise _BadEventError("time_out_of_range", f"{field} is {value!s:.60}, more than 2^62 ns from 1970")
    return exact


def _to_ns(microseconds: Decimal) -> int:
    """Exact to the nanosecond; parts of one are rounded, halves to even."""
    return int((microseconds * 1000).to_integral_value())
