"""Frozen dataclasses to what JSON can say and back, without losing a bit.

Whole numbers stay whole (a nanosecond since 1970 does not fit a double); infinities and *not a number*, which JSON
has no word for, become words.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

_AS_THEY_ARE = (str, int, bool, types.NoneType)
_WORDS = {"infinite": math.inf, "-infinite": -math.inf, "nan": math.nan}


def to_plain(value: Any) -> Any:
    """A dataclass of numbers, words, enums, tuples and dataclasses as dicts, lists and scalars."""
    kind: Any = type(value)
    if kind in _AS_THEY_ARE:
        return value
    names = _names(kind)
    if names is not None:
        return {name: to_plain(getattr(value, name)) for name in names}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return value


@cache
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass, looked up once a type; None for other types."""
    return tuple(item.name for item in fields(kind)) if is_dataclass(kind) else None


def from_plain(kind: Any, value: Any) -> Any:
    """What `to_plain` was given, of this type.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If it is not what this type becomes.
    """
    return _reader(kind)(value)


@cache
def _reader(kind: Any) -> Callable[[Any], Any]:
    """Types are looked into once: a fleet's evidence is read by the ten thousand."""
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass(kind)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return _optional(get_args(kind))
    if kind is float:
        return _float
    if kind in (int, bool, str):
        return _exactly(kind)
    read: Callable[[Any], Any] = kind
    return read


def _dataclass(kind: type) -> Callable[[Any], Any]:
    """A field at the end that is None by default may be missing: it was written before there was one."""
    hints = get_type_hints(kind)
    readers = [(item.name, _reader(hints[item.name])) for item in fields(kind)]
    later = 0
    while later < len(readers) and fields(kind)[-1 - later].default is None:
        later += 1
    always, more = readers[: len(readers) - later], readers[len(readers) - later :]

    def read_all(value: Any) -> Any:
        try:
            return kind(*[read(value[name]) for name, read in readers])
        except KeyError:
            found = [read(value[name]) for name, read in always]
            return kind(*found, *[read(value[name]) if name in value else None for name, read in more])

    return read_all


def _tuple(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    alike = len(kinds) == 2 and kinds[1] is Ellipsis
    readers = [_reader(kind) for kind in (kinds[:1] if alike else kinds)]

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is no list")
        if alike:
            return tuple([readers[0](item) for item in value])
        return tuple(one(item) for one, item in zip(readers, value, strict=True))

    return read


def _optional(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    others = [kind for kind in kinds if kind is not types.NoneType]
    if len(others) > 1:
        raise TypeError(f"nothing has a field of several types: {kinds}")
    one = _reader(others[0])
    if one is _float:
        return lambda value: value if value is None or type(value) is float else _float(value)
    return lambda value: None if value is None else one(value)


def _float(value: Any) -> float:
    if type(value) is float:
        return value
    return _WORDS[value] if isinstance(value, str) else float(value)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"{value!r} is no {kind.__name__}")
        return value

    return read
