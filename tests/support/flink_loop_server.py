"""A cluster on loopback for the whole loop: collectors read a recorded run from it, and its job can be rescaled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from tests.support.flink import series
from tests.support.flink_engine_server import FlinkServer
from tests.support.flink_server import Replay

BEFORE, AFTER = "two_stage_ds2_series_before", "two_stage_ds2_series_after"


class LoopServer(FlinkServer):
    """Answers collectors with the poll that is ``shown``, engines with the same job as it stands since."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = {name: series(name) for name in (BEFORE, AFTER)}
        self.replay = Replay(self.runs[BEFORE])
        self._show(0)
        self.asked = {
            vertex["id"]: {"parallelism": {"lowerBound": 1, "upperBound": vertex["parallelism"]}}
            for vertex in self.job["vertices"]
        }

    def play(self, run: str, poll: Callable[[float], None]) -> None:
        """Show every other poll of a recorded run; ``poll`` is told how many seconds after the first each was."""
        recorded: Sequence[dict[str, Any]] = self.runs[run][::2]
        self.replay.recorded = list(recorded)
        for number, item in enumerate(recorded):
            self._show(number)
            poll(item["t"] - recorded[0]["t"])

    def _show(self, number: int) -> None:
        self.replay.at = number
        pages = self.replay.recorded[number]["responses"]
        page = next(body for path, body in pages.items() if path.count("/") == 2)
        self.job = copy.deepcopy(page) | {"schedulerType": "Adaptive"}

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and body for a request."""
        here = f"/jobs/{self.job['jid']}"
        if path == "/jobs/overview" or path.startswith((f"{here}/vertices/", f"{here}/checkpoints")):
            return self.replay.answer(path)
        return super().answer(method, path, body)
