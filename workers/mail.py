"""Handing mails to a server over SMTP."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import parseaddr
from types import TracebackType
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

TIMEOUT_S = 20
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
    """A connection to a mail server, for many mails; used in a ``with``."""

    def __init__(self, server: MailServer) -> None:
        self._server = server
        self._smtp: smtplib.SMTP | None = None

    def __enter__(self) -> Post:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._smtp is not None:
            self._smtp.close()

    def send(self, sender: str, to: str | Sequence[str], message: bytes) -> list[str]:
        """Hand one mail over; returns what was said to those of many who were refused.

        Raises
        ------
        ServerAwayError, RefusedForNowError, RefusedError
            If that failed; after the first the connection is gone.
        """
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
        try:
            if server.tls:
                smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                    server.host, server.port, timeout=TIMEOUT_S, context=ssl.create_default_context()
                )
            else:
                smtp = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_S)
            self._smtp = smtp
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
    return kind(f"the mail server answered {code}: {words}"[:500])
