"""Is Weir up, and is it ready to work?"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

logger = logging.getLogger(__name__)

HEARTBEAT_KEY = "weir:heartbeat:{name}"
"""Where a worker says that it lives; the value is the Unix time in seconds, the key expires by itself."""

PROCESSES = {"worker": "default worker", "spark": "warm Spark session", "beat": "scheduler"}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must work, and what is wrong when it does not."""

    ok: bool
    detail: str


def healthz(request: HttpRequest) -> HttpResponse:
    """200 as soon as the web app answers at all."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> HttpResponse:
    """200 once database, broker, workers and the warm Spark session are there; 503 says what is missing."""
    checks = {"database": _guarded(_database), "broker": _guarded(_broker)}
    for name in PROCESSES:
        checks[name] = _guarded(partial(_process, name))
    ready = all(check.ok for check in checks.values())
    body = {
        "status": "ready" if ready else "not ready",
        "checks": {name: {"ok": check.ok, "detail": check.detail} for name, check in checks.items()},
    }
    return JsonResponse(body, status=200 if ready else 503)


def beat(name: str, *, lifetime_s: int = 30) -> None:
    """Record that process ``name`` (a key of ``PROCESSES``) is alive and ready."""
    with _client() as client:
        client.set(HEARTBEAT_KEY.format(name=name), int(time.time()), ex=lifetime_s)


def _guarded(check: Callable[[], Check]) -> Check:
    try:
        return check()
    except (DatabaseError, redis.RedisError) as error:
        logger.warning("readyz.failed %s", error)  # names hosts and users, which no stranger should read
        return Check(False, f"cannot be reached ({type(error).__name__}); the log says more")


def _database() -> Check:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return Check(False, f"{len(missing)} migrations not applied: run manage.py migrate")
    return Check(True, "reachable, migrated")


def _broker() -> Check:
    with _client() as client:
        client.ping()
    return Check(True, "reachable")


def sign_of_life(name: str) -> int | None:
    """Seconds since process ``name`` last said that it is alive; None if that is too long ago, or never was."""
    with _client() as client:
        seen = client.get(HEARTBEAT_KEY.format(name=name))
    return None if seen is None else max(0, int(time.time()) - int(seen))


def _process(name: str) -> Check:
    what, age_s = PROCESSES[name], sign_of_life(name)
    if age_s is None:
        return Check(False, f"{what}: no sign of life yet")
    return Check(True, f"{what}: seen {age_s} s ago")


def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=3, socket_connect_timeout=3)
