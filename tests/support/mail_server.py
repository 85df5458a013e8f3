"""A real SMTP server on loopback that keeps what it is sent, or refuses it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Received:
    """One mail as it came."""

    sender: str
    recipients: list[str]
    content: bytes


@dataclass
class Inbox:
    """What arrived; ``answer`` is what the server says to each mail, ``hold`` makes it wait before it does."""

    mails: list[Received] = field(default_factory=list)
    answer: str = "250 OK"
    refused: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    hold: threading.Event | None = None
    at_data: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    async def handle_RCPT(
        self, _server: Any, _session: Any, envelope: Any, address: str, _options: Any
    ) -> str:
        self.tries += 1
        if address in self.refused:
            return self.refused[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.at_data.set()
        if self.hold is not None:
            import asyncio

            await asyncio.get_running_loop().run_in_executor(None, self.hold.wait, 60)
        if self.answer.startswith("250"):
            self.mails.append(Received(envelope.mail_from, envelope.rcpt_tos, envelope.original_content))
        return self.answer


@contextmanager
def mail_server() -> Iterator[Inbox]:
    """A server on a free port; its address is ``inbox.url``."""
    inbox = Inbox()
    server = Controller(inbox, hostname="127.0.0.1", port=_free_port())
    server.start()
    inbox.url = f"smtp://127.0.0.1:{server.port}"
    try:
        yield inbox
    finally:
        if inbox.hold is not None:
            inbox.hold.set()
        server.stop()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
