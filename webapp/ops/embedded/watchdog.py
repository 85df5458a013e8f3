"""Has everything stopped should this process be killed: the parent's end of the watchdog.

``watchdog_process`` is the other end. It is kept out of this module because it is run with ``-m``.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

CHECKOUT = Path(__file__).resolve().parents[3]
STAGE_APPLICATION = 0
STAGE_SERVICES = 1
GRACE_S = {STAGE_APPLICATION: 3.0, STAGE_SERVICES: 4.0}


@dataclass(frozen=True, slots=True)
class Guarded:
    """A session to stop: its leader's pid, the signal that asks it to, and when its turn is."""

    session: int
    signal: int
    stage: int


class Watchdog:
    """The parent's end: starts the watchdog process and tells it what to guard."""

    def __init__(self) -> None:
        self._guarded: dict[int, Guarded] = {}
        self._process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "webapp.ops.embedded.watchdog_process"],
            cwd=CHECKOUT, stdin=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Pid of the watchdog process."""
        return self._process.pid

    def guard(self, session: int, sign: signal.Signals, stage: int = STAGE_APPLICATION) -> None:
        """Have a session stopped should this process die."""
        self._guarded[session] = Guarded(session, int(sign), stage)
        self._tell({"guard": asdict(self._guarded[session])})

    def forget(self, session: int) -> None:
        """A session ended: its number may now belong to somebody else."""
        if self._guarded.pop(session, None):
            self._tell({"forget": session})

    def revive(self) -> bool:
        """Start the watchdog process again if somebody killed it. Returns whether that was needed."""
        if self._process.poll() is None:
            return False
        self._process = self._spawn()
        for guarded in self._guarded.values():
            self._tell({"guard": asdict(guarded)})
        return True

    def close(self) -> None:
        """End the watchdog; it stops whatever is still registered first."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=sum(GRACE_S.values()) + 15)

    def _tell(self, message: dict[str, object]) -> None:
        if self._process.stdin is None:
            raise RuntimeError("the watchdog has no standard input")
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # it was killed; revive() repeats everything to its successor

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
