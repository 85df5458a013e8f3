"""What the commands' arguments have in common."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal
from typing import NoReturn

LONGEST_NS = 2**62

_UNIT_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


class UsageError(Exception):
    """The command cannot run with these arguments or files; the message is one line."""


class OneLineParser(argparse.ArgumentParser):
    """Says what is wrong in one line, where argparse would print the usage too."""

    def error(self, message: str) -> NoReturn:
        """Raise what :func:`analytics.cli.main` turns into exit code 2."""
        raise UsageError(f"{message} (try --help)")


def duration_ns(text: str) -> int:
    """``500ms``, ``1s``, ``1.5m``, … as whole nanoseconds.

    Raises
    ------
    argparse.ArgumentTypeError
        If it has no known unit, is not positive, or is no whole number of nanoseconds.
    """
    match = re.fullmatch(r"(\d{1,19}(?:\.\d{1,12})?)\s*([a-zµ]+)", text.strip())
    if match is None or match[2] not in _UNIT_NS:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 500ms, 1s or 2m")
    value = Decimal(match[1]) * _UNIT_NS[match[2]]
    if value != int(value) or not 0 < value <= LONGEST_NS:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of nanoseconds, 1 to 2^62")
    return int(value)


def time_ns(text: str) -> int:
    """Nanoseconds since 1970 as a whole number, also before it.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is none, or further than 2^62 ns from 1970.
    """
    if not re.fullmatch(r"-?\d{1,19}", text) or abs(int(text)) > LONGEST_NS:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in nanoseconds")
    return int(text)


def count(text: str) -> int:
    """A whole number above zero.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is none.
    """
    if not re.fullmatch(r"\d{1,18}", text) or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


def size_bytes(text: str) -> int:
    """``2000``, ``500M``, ``8G`` as bytes; K, M, G and T are powers of 1024.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is no such size or zero.
    """
    match = re.fullmatch(r"(\d{1,12})([KMGT]?)", text.strip().upper())
    if match is None or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is no size such as 500M or 8G")
    return int(match[1]) << (10 * " KMGT".index(match[2] or " "))
