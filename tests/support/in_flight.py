"""What the live server still answers when a test's windows are closed already."""

from __future__ import annotations

import threading

from django.core.signals import request_finished, request_started


class InFlight:
    """Counts requests; the next test must not take the database away from one that still runs."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()
        request_started.connect(self._started)
        request_finished.connect(self._finished)

    def wait_for_none(self, timeout_s: float = 20.0) -> None:
        """Return once nothing is being answered.

        Raises
        ------
        TimeoutError
            If something still is after ``timeout_s`` seconds.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._count == 0, timeout_s):
                raise TimeoutError(f"{self._count} requests are still being answered")

    def _started(self, **_: object) -> None:
        with self._changed:
            self._count += 1

    def _finished(self, **_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()
