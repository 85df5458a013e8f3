"""Sending messages to channels: webhooks (standard-webhooks), Slack's form, PagerDuty's Events API v2, mails.

One round is under way in a process. It tries many channels side by side, each with one message at a time, and
only it talks to the database: a receiver that hangs holds one of its threads, and none of the worker's others.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from celery.worker import state
from django.db import Error
from django.utils import timezone

from webapp.notifications import channels
from webapp.notifications.models import Channel, ChannelKind, Message
from webapp.notifications.sealing import BrokenSealError, opened
from workers import channel_mails
from workers.engines.webhook import key_of, sign
from workers.posting import Outcome, Wire, post

logger = logging.getLogger(__name__)

SENDERS = 16
"""Channels tried side by side."""
WITHIN_S = 10.0
"""From the beginning of a connection to the end of the answer."""
LOOK_AGAIN_S = 0.25
"""How soon what comes meanwhile is seen while others are under way."""
SLACK_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_round = threading.Lock()


def send_due(seconds: float, within_s: float = WITHIN_S) -> int:
    """Send what is due until nothing is left or the time is over; returns how many arrived.

    Each request ends within ``within_s``. While another round is under way in this process it does nothing: that
    one takes what comes. Once the worker is told to stop nothing more is begun.
    """
    if not _round.acquire(blocking=False):
        return 0
    end_s = time.monotonic() + seconds
    arrived, under_way = 0, dict[Future[Outcome], Message]()
    with ThreadPoolExecutor(SENDERS, "weir-sender") as senders:
        try:
            while time.monotonic() < end_s and state.should_stop is None:
                _begin(senders, under_way, within_s)
                if not under_way:
                    break
                arrived += _look(under_way)
        finally:
            _round.release()  # from now on the next round takes what comes, while the last of this one end
            while under_way:  # after an error too: what arrived must not be sent again
                arrived += _look(under_way)
    return arrived


def _begin(senders: ThreadPoolExecutor, under_way: dict[Future[Outcome], Message], within_s: float) -> None:
    """Give those senders that are free what is due."""
    if free := SENDERS - len(under_way):
        holder = f"{socket.gethostname()[:40]}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        for message in channels.claim(holder, timezone.now(), free):
            under_way[senders.submit(_attempt(message, within_s))] = message


def _look(under_way: dict[Future[Outcome], Message]) -> int:
    """Wait a little for the next to end, and write down what became of those that did; returns how many arrived."""
    done, _ = wait(under_way, LOOK_AGAIN_S, FIRST_COMPLETED)
    return sum(_settled(under_way.pop(future), future) for future in done)


def _attempt(message: Message, within_s: float) -> Callable[[], Outcome]:
    """What a sender does for a message; it reads the database no more."""
    try:
        if message.channel.kind == ChannelKind.SMTP:
            return channel_mails.attempt(message, within_s)
        return partial(post, wire_of(message.channel, message, int(time.time())), within_s)
    except BrokenSealError as error:
        return partial(Outcome, str(error))
    except Exception as error:  # one that cannot be made must not lose what became of the others
        logger.exception("notify.not_made message=%d", message.pk)
        return partial(Outcome, f"it could not be made: {error!r}", retry=True)


def _settled(message: Message, future: Future[Outcome]) -> bool:
    """Write down what became of an attempt; whether the message arrived."""
    try:
        found = future.result()
    except Exception as error:  # what goes wrong with one must not lose what became of the others
        logger.exception("notify.not_sent message=%d", message.pk)
        found = Outcome(f"it could not be sent: {error!r}", retry=True)
    now = timezone.now()
    try:
        if found.kept:
            channels.keep(message, now, found.seen["answer"])
        else:
            channels.settle(message, now, error=found.error, retry=found.retry, away=found.away, **found.seen)
    except Error:  # when its lease is over it is tried again
        logger.exception("notify.not_written message=%d", message.pk)
        return False
    return not (found.kept or found.error)


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
