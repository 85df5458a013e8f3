"""A signed webhook for every engine Weir has no adapter for (standardwebhooks.com, symmetric signature v1).

The receiver makes the change and answers 2xx. A message has the same ``webhook-id`` however often it is delivered,
and receivers must take a repeated one for the same: after a crash nobody knows whether it arrived.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

from analytics.model.reconfigurations import Observed
from workers.engines.base import Change, Note, RefusedByEngineError, Request, UnreachableError
from workers.engines.http import ask

WAITS_S = (1.0, 4.0, 15.0)
"""Before the second delivery and those after it."""

LONGEST_WAIT_S = 30.0
TOO_MANY_REQUESTS = 429


class WebhookEngine:
    """Delivers changes to ``url``; every delivery is kept by ``note``."""

    def __init__(
        self, url: str, secret: str, note: Note | None = None, *, waits_s: Sequence[float] = WAITS_S,
        now: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self.url, self.note, self.waits_s, self.now = url, note, waits_s, now
        self._key = key_of(secret)

    def observe(self, engine_job_id: str) -> None:
        """See ``base.Engine``: a receiver only listens."""

    def progress(self, engine_job_id: str) -> None:
        """See ``base.Engine``."""

    def preview(self, change: Change, seen: Observed | None) -> Request:
        """See ``base.Engine``."""
        return self._message("weir.reconfiguration.apply", change)

    def revert(self, change: Change, before: Observed | None, seen: Observed | None) -> Request:
        """See ``base.Engine``."""
        return self._message("weir.reconfiguration.revert", change)

    def apply(self, request: Request) -> None:
        """See ``base.Engine``. Deliveries that fail in passing are repeated with growing pauses.

        Raises
        ------
        RefusedByEngineError
            If the receiver says no; UnreachableError if it never answered properly.
        """
        body = json.dumps(request["body"], sort_keys=True).encode()  # the same bytes after a crash
        for wait_s in (*self.waits_s, None):
            why, asked_s = self._deliver(request, body)
            if not why:
                return
            if wait_s is None:
                raise UnreachableError(why)
            time.sleep(min(max(wait_s, asked_s), LONGEST_WAIT_S))

    def arrived(self, request: Request, seen: Observed | None) -> None:
        """See ``base.Engine``."""

    def record(self, engine_job_id: str, since_ms: int) -> Any:
        """See ``base.Engine``."""
        return None

    def _message(self, kind: str, change: Change) -> Request:
        data = {"parallelism": dict(change.parallelism), "engine_job_id": change.engine_job_id, **change.told}
        return {"method": "POST", "url": self.url, "id": change.key, "body": {"type": kind, "data": data}}

    def _deliver(self, request: Request, body: bytes) -> tuple[str, float]:
        """Why it must be tried again ("": it need not), and how long the receiver wants us to wait."""
        stamp = str(int(self.now()))
        headers = {
            "Content-Type": "application/json",
            "webhook-id": request["id"],
            "webhook-timestamp": stamp,
            "webhook-signature": sign(self._key, request["id"], stamp, body),
        }
        try:
            answer = ask(request["method"], request["url"], self.note, body=body, headers=headers)
        except UnreachableError as error:
            return str(error), 0.0
        if answer.is_success:
            return "", 0.0
        said = f"the receiver answered {answer.status_code}: {answer.text[:200]}".rstrip(": ")
        if answer.is_server_error or answer.status_code == TOO_MANY_REQUESTS:
            after = answer.headers.get("Retry-After", "")
            return said, float(after) if after.isdigit() else 0.0
        raise RefusedByEngineError(said)


def sign(key: bytes, message_id: str, stamp: str, body: bytes) -> str:
    """The value of ``webhook-signature``: HMAC-SHA256 of ``id.timestamp.body``."""
    signed = f"{message_id}.{stamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def key_of(secret: str) -> bytes:
    """The key that a secret of the form ``whsec_…`` stands for.

    Raises
    ------
    RefusedByEngineError
        If it is not of that form.
    """
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error as error:
        raise RefusedByEngineError("the webhook's secret is not whsec_ followed by base64") from error
