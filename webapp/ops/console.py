"""What ``make run`` prints: a line for every step, flushed at once, also when nobody reads any more."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from webapp.ops.embedded.errors import StartError


class Step:
    """A step under way. ``detail`` is added to its closing line; ``note`` prints a line of its own."""

    def __init__(self, console: Console) -> None:
        self.detail = ""
        self._console = console

    def note(self, text: str) -> None:
        """Something worth knowing while the step runs."""
        self._console.line(f"      {text}")


class Console:
    """Progress for people and for logs: no colours, no cursor movements, ASCII marks."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lost = False

    def line(self, text: str = "") -> None:
        """Print one line now."""
        if self._lost:
            return
        try:
            print(text, file=self._stream, flush=True)
        except (BrokenPipeError, OSError):
            # The reader has gone (make run | head, a closed terminal). That is no reason to stop serving.
            self._lost = True

    def lines(self, texts: Iterable[str], indent: str = "      | ") -> None:
        """Print an excerpt, such as the end of a log."""
        for text in texts:
            self.line(f"{indent}{text}")

    @contextmanager
    def step(self, doing: str) -> Iterator[Step]:
        """Say what starts now, and when it is done how long it took."""
        self.line(f"  ... {doing}")
        began = time.monotonic()
        step = Step(self)
        try:
            yield step
        except StartError:
            self.line(f"  !!  {doing}: failed")
            raise
        detail = f": {step.detail}" if step.detail else ""
        self.line(f"  ok  {doing}{detail} ({time.monotonic() - began:.1f} s)")
