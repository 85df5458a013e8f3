"""Asking the web app whether it is up (``/healthz``) and whether everything it needs is (``/readyz``)."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass

TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Readiness:
    """``waiting_for`` names what is missing, each with its own words; empty once everything is ready."""

    up: bool
    waiting_for: tuple[str, ...]

    @property
    def ready(self) -> bool:
        """Whether a person can use all of Weir."""
        return self.up and not self.waiting_for


def ask(port: int) -> Readiness:
    """One look at both addresses. Not answering is an answer."""
    health, _ = _get(port, "/healthz")
    if health != 200:
        return Readiness(up=False, waiting_for=("web",))
    status, body = _get(port, "/readyz")
    missing = _missing(body)
    if status == 200 and not missing:
        return Readiness(up=True, waiting_for=())
    return Readiness(up=True, waiting_for=missing or (f"/readyz (it says {status})",))


def _missing(body: bytes) -> tuple[str, ...]:
    try:
        checks = json.loads(body)["checks"]
        return tuple(
            f"{name} ({check['detail']})" if check.get("detail") else str(name)
            for name, check in sorted(checks.items())
            if not check.get("ok")
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()  # an error page: the caller reports the status


def _get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{port}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
