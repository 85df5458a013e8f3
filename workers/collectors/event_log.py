"""Tailing one Spark event log: what was written since the last poll, as a trace batch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from analytics.decode.event_log_files import find_logs
from analytics.decode.event_log_follower import DEFAULT_LIMIT_BYTES, Follower
from analytics.decode.spark_event_log import Application, SparkEventLogDecoder
from analytics.model.diagnostics import merge
from analytics.model.trace import TraceBatch

__all__ = ["EventLogCollector", "find_logs"]


class EventLogCollector:
    """Ties a follower and a decoder together. All that must survive is in the state :meth:`poll` returns.

    Store the batch and the new state in one transaction: then nothing is lost or stored twice, whatever
    crashes. The open file and the decoder are kept between polls only to save work; with any other state than
    the last one returned, they are made anew from that state.

    Attributes
    ----------
    caught_up
        Whether the last poll came to the present end of the log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.caught_up = False
        self._follower = Follower(path)
        self._decoder = SparkEventLogDecoder()
        self._state: dict[str, Any] | None = None

    @property
    def application(self) -> Application:
        """The application, as far as the log has told."""
        return self._decoder.application

    def poll(
        self, state: dict[str, Any] | None, limit_bytes: int = DEFAULT_LIMIT_BYTES
    ) -> tuple[TraceBatch, dict[str, Any]]:
        """Decode at most about ``limit_bytes`` of new lines.

        Parameters
        ----------
        state
            What the last poll returned (JSON values); None to begin at the start of the log.

        Raises
        ------
        LogReplacedError
            If the log is another one than before: start again with None, as a new log.
        UnreadableLogError
            If it cannot be read; the state stays good.
        """
        if state is None or state != self._state:
            self._restore(state)
        lines = self._follower.read(limit_bytes)
        self.caught_up = sum(map(len, lines)) + len(lines) < limit_bytes
        batch = self._decoder.feed(lines)
        found = self._follower.take_diagnostics()
        self._state = {"position": self._follower.position, "decoder": self._decoder.state()}
        return replace(batch, diagnostics=merge([*batch.diagnostics, *found])), self._state

    def close(self) -> None:
        """Close the file; the next poll opens it again."""
        self._follower.close()

    def _restore(self, state: dict[str, Any] | None) -> None:
        self._follower.close()
        self._follower = Follower(self.path, state["position"] if state else None)
        self._decoder = SparkEventLogDecoder.restore(state["decoder"]) if state else SparkEventLogDecoder()
        self._state = state
