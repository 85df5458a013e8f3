"""How many requests a token may make: a token bucket each, kept in Valkey.

If Valkey cannot be reached, requests pass: the limit protects Weir from a client gone wild, and losing it for a
while is better than losing telemetry.
"""

from __future__ import annotations

import logging
from functools import cache

import redis
from django.conf import settings

logger = logging.getLogger(__name__)

# The server's clock, so that web processes need not agree on one. Answers 0, or the ms until there is room.
_TAKE = """
local now = redis.call('TIME')
local now_ms = now[1] * 1000 + now[2] / 1000
local rate, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local had = redis.call('HMGET', KEYS[1], 'room', 'at_ms')
local room = math.min(burst, (tonumber(had[1]) or burst) + (now_ms - (tonumber(had[2]) or now_ms)) * rate / 1000)
local wait_ms = 0
if room >= 1 then room = room - 1 else wait_ms = math.ceil((1 - room) * 1000 / rate) end
redis.call('HSET', KEYS[1], 'room', tostring(room), 'at_ms', tostring(now_ms))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst * 1000 / rate) + 1000)
return wait_ms
"""


def wait_s(token_id: int) -> float:
    """Take one request out of the token's bucket: 0, or in how many seconds there will be room for one."""
    try:
        waits = _client().eval(
            _TAKE, 1, f"weir:rate:{token_id}", settings.WEIR_RATE_PER_S, settings.WEIR_RATE_BURST
        )
    except redis.RedisError as error:
        logger.warning("rates.unavailable %s", type(error).__name__)
        return 0.0
    return int(waits) / 1000


def first_in(key: str, seconds: int) -> bool:
    """Whether nobody asked with this key within so many seconds; True if Valkey cannot be reached."""
    try:
        return bool(_client().set(f"weir:first:{key}", 1, nx=True, ex=seconds))
    except redis.RedisError as error:
        logger.warning("rates.unavailable %s", type(error).__name__)
        return True


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5)
