"""Activities as NDJSON, one object a line: the plain format for people and tests.

Three kinds of line::

    {"type":"processing","worker":"w1","operator":"map","start_ns":0,"end_ns":5}
    {"type":"data_message","worker":"w1","peer":"w2","start_ns":3,"end_ns":4}
    {"type":"data_message","event":"sent","worker":"w1","peer":"w2","at_ns":3,"correlation":"c1"}

In the second, ``worker`` sends and ``peer`` receives; ``end_ns < start_ns`` is kept, because the clocks of
two workers may disagree. The third is half a message (``sent`` or ``received``), seen by ``worker``; its
``peer`` may be missing. ``operator`` is optional everywhere.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

import orjson

from analytics.decode.batch import MAX_NAME_CHARS, BatchBuilder
from analytics.decode.limits import MAX_LINE_BYTES
from analytics.model.activity import BY_LABEL, ActivityType
from analytics.model.trace import NONE, HalfMessage, TraceBatch

LATEST_NS = 2**62
"""Times beyond this (year 2116, or as far before 1970) are refused: their differences would not fit int64."""

MAX_LINES_TOLD = 10
"""How many further lines with the same mistake are named."""

Line = dict[str, object]


class _BadLineError(ValueError):
    """This line cannot be used; ``code`` says which kind of mistake it is."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def decode_activities(lines: Iterable[bytes], source: str = "") -> TraceBatch:
    """Read activities, messages and message halves.

    Parameters
    ----------
    lines
        The file's lines, with or without their line ends. Blank lines are passed over.
    source
        Where they come from; diagnostics then say ``"source, line 3: …"``.

    Returns
    -------
    TraceBatch
        A bad line is skipped and counted under one of the codes ``line_too_long`` (more than
        ``limits.MAX_LINE_BYTES``), ``not_json``, ``not_an_object``, ``missing_field``, ``wrong_type``,
        ``bad_name``, ``unknown_type``, ``unknown_event``, ``not_a_message``, ``time_out_of_range`` and
        ``negative_duration``; the example has its number, and those of the next lines with the same mistake.
    """
    batch = BatchBuilder()
    mistakes: dict[str, list[int]] = {}
    examples: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
        if len(text) <= MAX_LINE_BYTES and not text.strip():
            continue
        try:
            _add(batch, _parse(text))
        except _BadLineError as error:
            mistakes.setdefault(error.code, []).append(number)
            examples.setdefault(error.code, str(error))
    for code, numbers in mistakes.items():
        where = f"{source}, line {numbers[0]}" if source else f"line {numbers[0]}"
        batch.oddities.add(code, f"{where}: {examples[code]}{_also(numbers[1:])}", len(numbers))
    return batch.build()


def _also(numbers: list[int]) -> str:
    """Where the same mistake is made again."""
    if not numbers:
        return ""
    told = ", ".join(map(str, numbers[:MAX_LINES_TOLD]))
    more = f" and {len(numbers) - MAX_LINES_TOLD:,} more" if len(numbers) > MAX_LINES_TOLD else ""
    return f" (also line{'s' if len(numbers) > 1 else ''} {told}{more})"


def _parse(line: bytes) -> Line:
    if len(line) > MAX_LINE_BYTES:
        raise _BadLineError("line_too_long", f"a line may have {MAX_LINE_BYTES:,} bytes")
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _BadLineError("not_json", str(error)) from error
    if not isinstance(value, dict):
        raise _BadLineError("not_an_object", f"expected an object, not {type(value).__name__}")
    return value


def _add(batch: BatchBuilder, line: Line) -> None:
    """Read every field before touching the batch, so that a bad line leaves no name behind."""
    kind = _kind(line)
    worker = _name(line, "worker")
    operator = _optional_name(line, "operator")
    if line.get("event") is not None:
        _add_half(batch, line, kind, worker)
        return
    start_ns, end_ns = _time(line, "start_ns"), _time(line, "end_ns")
    if kind.is_message:
        peer = _name(line, "peer")
        batch.message(
            kind, batch.worker(worker), batch.worker(peer), batch.operator(operator), start_ns, end_ns
        )
        return
    if end_ns < start_ns:
        raise _BadLineError("negative_duration", f"ends at {end_ns}, before its start at {start_ns}")
    batch.activity(kind, batch.worker(worker), batch.operator(operator), start_ns, end_ns)


def _add_half(batch: BatchBuilder, line: Line, kind: ActivityType, worker: str) -> None:
    event = line["event"]
    if not isinstance(event, str):
        raise _BadLineError("wrong_type", f"event must be a string, not {event!r:.60}")
    if event not in ("sent", "received"):
        raise _BadLineError("unknown_event", f"event {event!r:.60} is neither sent nor received")
    if not kind.is_message:
        raise _BadLineError("not_a_message", f"{kind.label} is no message, it cannot be {event}")
    at_ns, correlation = _time(line, "at_ns"), _name(line, "correlation")
    peer = _optional_name(line, "peer")
    batch.halves.append(
        HalfMessage(
            type=kind,
            received=event == "received",
            worker=batch.worker(worker),
            peer=NONE if peer is None else batch.worker(peer),
            at_ns=at_ns,
            correlation=correlation,
        )
    )


def _kind(line: Line) -> ActivityType:
    label = _required(line, "type")
    if not isinstance(label, str):
        raise _BadLineError("wrong_type", f"type must be a string, not {label!r:.60}")
    if label not in BY_LABEL:
        raise _BadLineError("unknown_type", f"unknown activity type {label!r:.60}")
    return BY_LABEL[label]


def _name(line: Line, field: str) -> str:
    value = _required(line, field)
    if not isinstance(value, str):
        raise _BadLineError("wrong_type", f"{field} must be a string, not {value!r:.60}")
    if not value or len(value) > MAX_NAME_CHARS or "\0" in value:
        raise _BadLineError("bad_name", f"{field} must have 1 to {MAX_NAME_CHARS} characters and no NUL")
    return value


def _optional_name(line: Line, field: str) -> str | None:
    return None if line.get(field) is None else _name(line, field)


def _time(line: Line, field: str) -> int:
    value = _required(line, field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _BadLineError("wrong_type", f"{field} must be a whole number of nanoseconds, not {value!r:.60}")
    if abs(value) > LATEST_NS:
        raise _BadLineError("time_out_of_range", f"{field} is {value}, more than 2^62 ns from 1970")
    return value


def _required(line: Line, field: str) -> object:
    value = line.get(field)
    if value is None:
        raise _BadLineError("missing_field", f"{field} is missing")
    return value
