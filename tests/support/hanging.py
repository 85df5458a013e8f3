"""A real server on loopback that takes connections and never ends: it says nothing, or a byte at a time."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from itertools import cycle

DRIP_S = 0.05


class Hanging:
    """Sends ``drip`` over and over, a byte every ``DRIP_S``; nothing if it is empty. ``begin`` comes at once."""

    def __init__(self, drip: bytes = b"", begin: bytes = b"") -> None:
        self._drip, self._begin = drip, begin
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._taken: list[socket.socket] = []
        self.port = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._take, daemon=True).start()

    @property
    def tries(self) -> int:
        """How many connections there were."""
        return len(self._taken)

    def _take(self) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                taken, _ = self._listening.accept()
                self._taken.append(taken)
                threading.Thread(target=self._hang, args=(taken,), daemon=True).start()

    def _hang(self, taken: socket.socket) -> None:
        with suppress(OSError):  # who waited has gone
            taken.sendall(self._begin)
            for number in cycle(self._drip):
                if self._over.wait(DRIP_S):
                    break
                taken.sendall(bytes([number]))

    def close(self) -> None:
        """Stop it."""
        self._over.set()
        self._listening.close()
        for taken in self._taken:
            taken.close()
