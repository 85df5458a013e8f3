"""One request to a receiver outside, within a time that nothing the receiver does can lengthen."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import httpcore

from webapp.notifications import outside

MOST_ANSWER_BYTES = 16_384
MOST_LOGGED_CHARS = 500
TOO_MANY_REQUESTS = 429


@dataclass(frozen=True, slots=True)
class Wire:
    """A request as it is sent. It holds secrets: it is never logged."""

    url: str
    headers: dict[bytes | str, bytes | str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an attempt.

    ``away``: the receiver takes nothing now, so nothing else needs to be tried with it for a while. ``kept``: it
    goes nowhere and stays in the log. ``seen`` goes to the log.
    """

    error: str = ""
    retry: bool = False
    away: bool = False
    kept: bool = False
    seen: dict[str, Any] = field(default_factory=dict)


class Bounded(httpcore.NetworkStream):
    """A stream on which every operation has what is left of the time, so that one byte a second gains nothing."""

    def __init__(self, stream: httpcore.NetworkStream, end_s: float) -> None:
        self._stream, self._end_s = stream, end_s

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See ``httpcore``."""
        return self._stream.read(max_bytes, left_s(self._end_s, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See ``httpcore``, which would begin a new wait after each part that was taken."""
        connected: socket.socket = self._stream.get_extra_info("socket")
        try:
            connected.settimeout(left_s(self._end_s, httpcore.WriteTimeout))
            connected.sendall(buffer)
        except TimeoutError as error:
            raise httpcore.WriteTimeout(str(error)) from error
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        """See ``httpcore``."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """See ``httpcore``."""
        limit_s = left_s(self._end_s, httpcore.ConnectTimeout)
        return Bounded(self._stream.start_tls(ssl_context, server_hostname, limit_s), self._end_s)

    def get_extra_info(self, info: str) -> Any:
        """See ``httpcore``."""
        return self._stream.get_extra_info(info)


class OutsideBackend(httpcore.SyncBackend):
    """Connects only to addresses that messages may go to, and to exactly the address that was checked."""

    def __init__(self, end_s: float) -> None:
        self._end_s = end_s

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        """See ``httpcore``. The certificate is still checked against the host's name."""
        try:
            address = outside.resolve(host, port)[0]
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from error
        limit_s = left_s(self._end_s, httpcore.ConnectTimeout)
        return Bounded(
            super().connect_tcp(address, port, limit_s, local_address, socket_options), self._end_s
        )


def left_s(end_s: float, late: type[httpcore.TimeoutException]) -> float:
    """What is left until then, by the monotonic clock.

    Raises
    ------
    httpcore.TimeoutException
        ``late``, if nothing is.
    """
    left = end_s - time.monotonic()
    if left <= 0:
        raise late
    return left


def post(wire: Wire, within_s: float) -> Outcome:
    """Send a request and read the beginning of the answer. Redirects are not followed: nobody has checked where
    they lead."""
    began_s = time.monotonic()
    try:
        status, answer = _answered(wire, began_s + within_s)
    except outside.InsideError as error:
        return Outcome(str(error))
    except httpcore.TimeoutException:
        return Outcome(f"no answer within {within_s:g} s", retry=True, away=True, seen=_took(began_s))
    except (httpcore.NetworkError, httpcore.ProtocolError, ssl.SSLError) as error:
        said = str(error) or type(error).__name__
        return Outcome(f"no answer: {said}", retry=True, away=True, seen=_took(began_s))
    seen = {"status": status, "answer": answer, **_took(began_s)}
    if 200 <= status < 300:
        return Outcome(seen=seen)
    busy = status == TOO_MANY_REQUESTS
    return Outcome(f"the receiver answered {status}", retry=status >= 500 or busy, away=busy, seen=seen)


def _took(began_s: float) -> dict[str, Any]:
    return {"took_ms": round((time.monotonic() - began_s) * 1_000)}


def _answered(wire: Wire, end_s: float) -> tuple[int, str]:
    """Status and the beginning of the answer. Once the status is there the message has arrived or was refused,
    however long the rest takes."""
    with (
        httpcore.ConnectionPool(network_backend=OutsideBackend(end_s)) as pool,
        pool.stream("POST", wire.url, headers=wire.headers, content=wire.body) as answer,
    ):
        body = b""
        try:
            for part in answer.iter_stream():
                body += part
                if len(body) > MOST_ANSWER_BYTES:
                    break
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError):
            body += " … the rest did not come".encode()
        said = body.decode("utf-8", "replace").replace("\0", "?")[:MOST_LOGGED_CHARS]
        return answer.status, said
