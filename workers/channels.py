"""Sending messages to channels: webhooks (standard-webhooks), Slack's form, PagerDuty's Events API v2, mails."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import httpcore
from django.utils import timezone

from webapp.notifications import channels, outside
from webapp.notifications.models import Channel, ChannelKind, Message
from webapp.notifications.sealing import BrokenSealError, opened
from workers import channel_mails
from workers.engines.webhook import key_of, sign

logger = logging.getLogger(__name__)

CLAIMED_AT_ONCE = 20
TIMEOUT_S = 10.0
MOST_ANSWER_BYTES = 16_384
MOST_LOGGED_CHARS = 500
SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True)
class Wire:
    """A request as it is sent. It holds secrets: it is never logged."""

    url: str
    headers: dict[bytes | str, bytes | str]
    body: bytes


class OutsideBackend(httpcore.SyncBackend):
    """Connects only to addresses that messages may go to, and to exactly the address that was checked."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:  # fmt: skip
        """See ``httpcore``. The certificate is still checked against the host's name."""
        try:
            address = outside.resolve(host, port)[0]
        except OSError as error:
            raise httpcore.ConnectError(f"{host} has no address: {error}") from error
        return super().connect_tcp(address, port, timeout, local_address, socket_options)


def send_due(seconds: float) -> int:
    """Send what is due until nothing is left or the time is over; returns how many arrived."""
    arrived, end = 0, time.monotonic() + seconds
    holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
    while time.monotonic() < end:
        mine = channels.claim(holder, timezone.now(), CLAIMED_AT_ONCE)
        for message in mine:
            if channels.hold(message, timezone.now()):
                arrived += _send(message)
        if not mine:
            break
    return arrived


def _send(message: Message) -> bool:
    if message.channel.kind == ChannelKind.SMTP:
        return channel_mails.send(message)
    began = time.monotonic()
    try:
        status, answer = _post(wire_of(message.channel, message, int(time.time())))
    except (BrokenSealError, outside.InsideError) as error:
        channels.settle(message, timezone.now(), error=str(error))
        return False
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, ssl.SSLError) as error:
        said = str(error) or type(error).__name__
        channels.settle(message, timezone.now(), error=f"no answer: {said}", retry=True)
        return False
    seen: dict[str, Any] = {
        "status": status,
        "answer": answer,
        "took_ms": round((time.monotonic() - began) * 1_000),
    }
    if 200 <= status < 300:
        channels.settle(message, timezone.now(), **seen)
        return True
    # Redirects are not followed: nobody has checked where they lead.
    retry = status >= 500 or status == 429
    channels.settle(message, timezone.now(), error=f"the receiver answered {status}", retry=retry, **seen)
    return False


def wire_of(channel: Channel, message: Message, now_s: int) -> Wire:
    """The request of a message.

    Raises
    ------
    BrokenSealError
        If the channel's secret cannot be read any more.
    """
    secret, content = opened(channel.secret), message.content
    headers: dict[bytes | str, bytes | str] = {"Content-Type": "application/json", "User-Agent": "Weir"}
    if channel.kind == ChannelKind.SLACK:
        title, text = (str(content[name]).translate(SLACK_ESCAPES) for name in ("title", "text"))
        return Wire(secret, headers, _json({"text": f"*{title}*\n{text}\n<{content['url']}|Open in Weir>"}))
    if channel.kind == ChannelKind.PAGERDUTY:
        return Wire(channel.address, headers, _json(_event(message, secret)))
    number = f"weir-{message.pk}"
    at = message.created_at.isoformat()
    body = _json({"type": "weir.notification", "timestamp": at, "data": content})
    stamp = str(now_s)
    signed: dict[bytes | str, bytes | str] = {
        "webhook-id": number, "webhook-timestamp": stamp,
        "webhook-signature": sign(key_of(secret), number, stamp, body),
    }  # fmt: skip
    return Wire(channel.address, headers | signed, body)


def _event(message: Message, routing_key: str) -> dict[str, Any]:
    content = message.content
    if (action := content.get("action")) in ("acknowledge", "resolve"):
        return {"routing_key": routing_key, "event_action": action, "dedup_key": content["key"]}
    return {
        "routing_key": routing_key,
        "event_action": "trigger",
        "dedup_key": content["key"] or f"weir-{message.pk}",
        "payload": {
            "summary": content["title"][:1024],
            "source": f"weir/{content['group']}",
            "severity": content["severity"],
            "custom_details": {"text": content["text"]},
        },
        "links": [{"href": content["url"], "text": "Open in Weir"}],
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False).encode()


def _post(wire: Wire) -> tuple[int, str]:
    """Status and the beginning of the answer.

    Raises
    ------
    InsideError
        If the address may not be connected to.
    httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, ssl.SSLError
        If there is no answer.
    """
    timeouts = dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT_S)
    with (
        httpcore.ConnectionPool(network_backend=OutsideBackend()) as pool,
        pool.stream(
            "POST", wire.url, headers=wire.headers, content=wire.body, extensions={"timeout": timeouts}
        ) as answer,
    ):
        body = b""
        for part in answer.iter_stream():
            body += part
            if len(body) > MOST_ANSWER_BYTES:
                break
        said = body.decode("utf-8", "replace").replace("\0", "?")[:MOST_LOGGED_CHARS]
        return answer.status, said
