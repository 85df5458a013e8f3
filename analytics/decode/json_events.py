"""Reading a Chrome trace piece by piece: its events one at a time, however large the file.

A trace is ``{"traceEvents": [...], ...}`` or only the list, whose end may be missing, because programs append to
it until they are killed. Numbers with a point are kept as decimals: as floats, microseconds since 1970 would lose
their nanoseconds.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from analytics.decode.limits import LimitedFile

CHUNK_BYTES = 1 << 20
MAX_VALUE_CHARS = 1 << 24
_NEAR_END = 16
"""An error this near to the end of what was read may only mean that more must be read."""


class _DamagedError(Exception):
    """What follows is no JSON."""


class _EndedError(Exception):
    """The file ends here."""


class JsonEvents:
    """Iterates over the events; the other members of the document are in ``rest`` afterwards.

    Attributes
    ----------
    problem
        Why the file was not read to its end, as ``(code, words)``, the code being ``damaged`` or ``truncated``.
    rest
        Top-level members apart from ``traceEvents`` that are a number or a string.
    """

    def __init__(self, file: LimitedFile) -> None:
        self.problem: tuple[str, str] | None = None
        self.rest: dict[str, object] = {}
        self._file = file
        self._decoder = json.JSONDecoder(parse_float=_decimal, strict=False)
        self._text = ""
        self._at = 0
        self._dropped = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._ended = False

    def __iter__(self) -> Iterator[object]:
        try:
            opening = self._next_char()
            if opening == "[":
                yield from self._list(end_needed=False)
            elif opening == "{":
                yield from self._members()
            else:
                raise _DamagedError(f"{opening!r} begins no trace")
        except _EndedError:
            self.problem = "truncated", f"the file ends at character {self._dropped + len(self._text)}"
        except _DamagedError as error:
            where = self._dropped + self._at
            self.problem = "damaged", f"character {where}: {error}; the rest was not read"

    def _members(self) -> Iterator[object]:
        found = False
        while self._peek_char() != "}":
            name = self._value()
            if not isinstance(name, str) or self._next_char() != ":":
                raise _DamagedError("expected a name and a colon")
            if name == "traceEvents" and self._peek_char() == "[":
                self._at += 1
                found = True
                yield from self._list(end_needed=True)
            else:
                value = self._value()
                if isinstance(value, int | str | Decimal):
                    self.rest[name] = value
            self._comma_or("}")
        if not found:
            raise _DamagedError("there is no list of traceEvents")

    def _list(self, *, end_needed: bool) -> Iterator[object]:
        while True:
            try:
                char = self._peek_char()
            except _EndedError:
                if end_needed:
                    raise
                return
            if char == "]":
                self._at += 1
                return
            yield self._value()
            try:
                self._comma_or("]")
            except _EndedError:
                if end_needed:
                    raise
                return

    def _comma_or(self, closing: str) -> None:
        char = self._peek_char()
        if char == ",":
            self._at += 1
        elif char != closing:
            raise _DamagedError(f"expected a comma or {closing}, not {char!r}")

    def _value(self) -> Any:
        """The next value; more of the file is read until it is whole."""
        self._peek_char()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self._text) - _NEAR_END or error.msg.startswith("Unterminated string")
                if not cut or len(self._text) - self._at > MAX_VALUE_CHARS:
                    raise _DamagedError(error.msg) from error
                if not self._more():
                    raise _EndedError from error
                continue
            except (ValueError, RecursionError) as error:  # a number of too many digits; too deep
                raise _DamagedError(str(error)) from error
            if end == len(self._text) and isinstance(value, int | Decimal) and self._more():
                continue  # the number may go on
            self._at = end
            return value

    def _next_char(self) -> str:
        char = self._peek_char()
        self._at += 1
        return char

    def _peek_char(self) -> str:
        """The next character that is no space."""
        while True:
            while self._at < len(self._text):
                char = self._text[self._at]
                if char not in " \t\r\n":
                    return char
                self._at += 1
            if not self._more():
                raise _EndedError

    def _more(self) -> bool:
        """Read on, at least as much as is unread, so that reading a long value takes linear time."""
        if self._ended:
            return False
        unread = self._text[self._at :]
        data = self._file.read(max(CHUNK_BYTES, len(unread)))
        self._ended = not data
        self._dropped += self._at
        self._text, self._at = unread + self._utf8.decode(data, final=self._ended), 0
        return True


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond all bounds
        return Decimal("NaN")
