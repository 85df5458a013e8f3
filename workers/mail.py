"""Handing mails to a server over SMTP."""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parseaddr
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

WITHIN_S = 30.0
"""For one mail, and the connection before the first."""
TIMEOUT_S = 20.0
CUT_AGAIN_S = 0.5
PORTS = {"smtp": 25, "smtps": 465}


class ServerAwayError(Exception):
    """The server cannot be reached or takes nothing now: nothing can be sent until it does."""


class RefusedForNowError(Exception):
    """The server refused this one mail in passing (4xx)."""


class RefusedError(Exception):
    """The server refused this one mail for good (5xx)."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """Where mails are handed over: ``smtp://name:secret@host:587?starttls`` or ``smtps://…``.

    A secret in it never appears in ``place``, which is shown.
    """

    host: str
    port: int
    tls: bool
    starttls: bool
    user: str
    password: str

    @property
    def place(self) -> str:
        """The server, for people."""
        return f"{self.host}:{self.port}"

    @staticmethod
    def parse(url: str) -> MailServer:
        """Read the setting.

        Raises
        ------
        ImproperlyConfigured
            If it is none of the two forms.
        """
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.scheme not in PORTS or not parts.hostname:
            raise ImproperlyConfigured(
                "WEIR_SMTP_URL is not like smtp://name:secret@host:587?starttls or smtps://name:secret@host"
            )
        return MailServer(
            parts.hostname, port or PORTS[parts.scheme], parts.scheme == "smtps", parts.query == "starttls",
            unquote(parts.username or ""), unquote(parts.password or ""),
        )  # fmt: skip


class Post:
    """A connection to a mail server, for many mails; used in a ``with``.

    It is cut if one mail takes longer than ``within_s``, whatever the server does: one that says a byte a second
    would otherwise hold whoever sends for hours.
    """

    def __init__(self, server: MailServer, within_s: float = WITHIN_S) -> None:
        self._server, self._within_s = server, within_s
        self._smtp: smtplib.SMTP | None = None

    def __enter__(self) -> Post:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._smtp is not None:
            self._smtp.close()

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        over = threading.Event()
        threading.Thread(target=self._cut, args=(over,), daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _cut(self, over: threading.Event) -> None:
        wait_s = self._within_s
        while not over.wait(wait_s):
            used = self._smtp.sock if self._smtp is not None else None
            if used is not None:
                with suppress(
                    OSError
                ):  # it is closed by now, or TLS takes its place and is cut a moment later
                    used.shutdown(socket.SHUT_RDWR)
            wait_s = CUT_AGAIN_S

    def send(self, sender: str, to: str | Sequence[str], message: bytes) -> list[str]:
        """Hand one mail over; returns what was said to those of many who were refused.

        Raises
        ------
        ServerAwayError, RefusedForNowError, RefusedError
            If that failed; after the first the connection is gone.
        """
        with self._bounded():
            return self._sent(sender, to, message)

    def _sent(self, sender: str, to: str | Sequence[str], message: bytes) -> list[str]:
        smtp = self._connected()
        try:
            several = [to] if isinstance(to, str) else list(to)
            refused = smtp.sendmail(parseaddr(sender)[1], several, message)
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()))
            raise _refused(code, said) from error
        except smtplib.SMTPServerDisconnected as error:
            raise self._away(error) from error
        except smtplib.SMTPResponseException as error:
            if error.smtp_code == 421:  # it closes the connection
                raise self._away(error) from error
            raise _refused(error.smtp_code, error.smtp_error) from error
        except (smtplib.SMTPException, OSError) as error:
            raise self._away(error) from error
        return [f"{who}: {_refused(code, said)}" for who, (code, said) in refused.items()]

    def _connected(self) -> smtplib.SMTP:
        if self._smtp is not None:
            return self._smtp
        server = self._server
        limit_s = min(TIMEOUT_S, self._within_s)
        kind: type[smtplib.SMTP] = smtplib.SMTP_SSL if server.tls else smtplib.SMTP
        more: dict[str, Any] = {"context": ssl.create_default_context()} if server.tls else {}
        smtp = self._smtp = kind.__new__(kind)  # known before it connects, so that it can be cut
        try:
            kind.__init__(smtp, server.host, server.port, timeout=limit_s, **more)
            if server.starttls:
                smtp.starttls(context=ssl.create_default_context())
            if server.user:
                smtp.login(server.user, server.password)
        except (smtplib.SMTPException, OSError) as error:
            raise self._away(error) from error
        return smtp

    def _away(self, error: Exception) -> ServerAwayError:
        if self._smtp is not None:
            self._smtp.close()
            self._smtp = None
        why = str(error) or type(error).__name__
        return ServerAwayError(f"the mail server {self._server.place} took nothing: {why}")


def _refused(code: int, said: bytes | str) -> RefusedForNowError | RefusedError:
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    kind = RefusedForNowError if 400 <= code < 500 else RefusedError
    return kind(f"the mail server answered {code}: {words}".replace("\0", "?")[:500])
