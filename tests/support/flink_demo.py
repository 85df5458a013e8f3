"""``make demo-flink`` in a process of its own, and what its Flink says."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.support.waiting import eventually
from tests.support.whole import Weir
from webapp.ops.embedded.processes import find_by_argument
from webapp.ops.embedded.watchdog import CHECKOUT

STARTS_WITHIN_S = 240


@dataclass
class FlinkDemo:
    """A demo beside a Weir."""

    process: subprocess.Popen[bytes]
    home: Path
    output: Path

    def wait(self, words: str) -> None:
        """Until it has said this."""
        eventually(lambda: self._said(words), f"the demo says {words!r}", STARTS_WITHIN_S, every_s=0.5)

    def _said(self, words: str) -> bool:
        text = self.output.read_text()
        assert self.process.poll() is None, text
        return words in text

    @property
    def address(self) -> str:
        """Flink's."""
        return f"http://127.0.0.1:{(self.home / 'rest.port').read_text().strip()}"

    def parallelism(self, engine_job_id: str) -> dict[str, int]:
        """Instances by operator name, as Flink says."""
        told = httpx.get(f"{self.address}/jobs/{engine_job_id}").raise_for_status().json()
        return {item["name"]: item["parallelism"] for item in told["vertices"]}

    def machines(self) -> list[int]:
        """Pids of its JVMs."""
        return [pid for pid, command in find_by_argument(f"--configDir {self.home}") if "java" in command]


@contextmanager
def flink_demo(weir: Weir) -> Iterator[FlinkDemo]:
    """The demo on the state directory of a Weir; nothing of it is left afterwards."""
    output = weir.home / "demo-flink.output"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.flink_demo", "--stop-with-parent"],
            cwd=CHECKOUT,
            env=weir.environment,
            stdout=file,
            stderr=file,
        )
    demo = FlinkDemo(process, weir.home / "flink", output)
    try:
        yield demo
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        eventually(lambda: not demo.machines(), "Flink is gone", 15)
