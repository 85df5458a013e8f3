"""Frozen dataclasses to what JSON can say and back, without losing a bit.

Whole numbers stay whole (a nanosecond since 1970 does not fit a double); infinities and *not a number*, which JSON
has no word for, become words.
"""

from __future__ import annotations

import math
import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

_WORDS = {"infinite": math.inf, "-infinite": -math.inf, "nan": math.nan}


def to_plain(value: Any) -> Any:
    """A dataclass of numbers, words, enums, tuples and dataclasses as dicts, lists and scalars."""
    if is_dataclass(value):
        return {item.name: to_plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return value


def from_plain(kind: Any, value: Any) -> Any:
    """What `to_plain` was given, of this type.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If it is not what this type becomes.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return kind(**{name: from_plain(hint, value[name]) for name, hint in _fields(kind)})
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), value)
    if get_origin(kind) in (Union, types.UnionType):
        return _optional(get_args(kind), value)
    if kind is float:
        return _WORDS[value] if isinstance(value, str) else float(value)
    if kind in (int, bool, str) and type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return kind(value)


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((item.name, hints[item.name]) for item in fields(kind))


def _tuple(kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(from_plain(kinds[0], item) for item in value)
    return tuple(from_plain(kind, item) for kind, item in zip(kinds, value, strict=True))


def _optional(kinds: tuple[Any, ...], value: Any) -> Any:
    if value is None and types.NoneType in kinds:
        return None
    others = [kind for kind in kinds if kind is not types.NoneType]
    if len(others) > 1:
        raise TypeError(f"nothing has a field of several types: {kinds}")
    return from_plain(others[0], value)
