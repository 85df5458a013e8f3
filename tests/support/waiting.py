"""Waiting for something to become true, with a time limit and words for when it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], what: str, timeout_s: float = 20.0, every_s: float = 0.05) -> T:
    """The first true value that ``look`` gives; fails the test if there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        time.sleep(every_s)
    return found
