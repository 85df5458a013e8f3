"""What was worked out before, kept to save work: bounded by the size of what is remembered, not by how many."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Known(Generic[K, V]):
    """Values by key until their sizes add up to ``max_bytes``; then all are forgotten.

    Threads may share one: at worst a value is worked out twice.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._values: dict[K, V] = {}
        self.get = self._values.get
        """The value of a key, or None."""

    def keep(self, key: K, value: V, size_bytes: int) -> V:
        """Remember a value; gives it back."""
        self._bytes += size_bytes
        if self._bytes > self._max_bytes:
            self._values.clear()
            self._bytes = size_bytes
        self._values[key] = value
        return value

    def __len__(self) -> int:
        return len(self._values)
