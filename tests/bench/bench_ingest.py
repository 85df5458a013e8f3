"""Ingest through the real web server, as ``make run`` starts it, beside plain COPY of the same rows.

Each format is sent by several clients for some seconds as fast as it goes, then at half that rate for the latency.
COPY is one client writing the rows that were sent (spans and activities as rows of six columns, samples as they
are stored) into an unindexed table of the same database.
"""

from __future__ import annotations

import itertools
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psycopg
import pyarrow as pa
from numpy.typing import NDArray
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from analytics.model.activity import BY_LABEL
from analytics.model.trace import Int64
from tests.support import remote_write as rw
from tests.support.traces import OPERATORS, trace
from tests.support.web import Web, web_on

CLIENTS = 4
SPANS, SAMPLES, ACTIVITIES = 4_000, 5_000, 200_000
"""Things in one body: a collector's batch, a large remote write batch, an uploader's."""


AIMS = {"OTLP spans": 60_000, "remote write samples": 200_000, "Arrow activities": 2_000_000}
AIM_P99_MS = 250

NUMBERS = itertools.count()
"""No two bodies are the same."""

BASE_MS = time.time_ns() // 10**6 - 10_000_000


@dataclass(frozen=True)
class Format:
    """How bodies of a format are made (a new one each time) and sent."""

    path: str
    headers: dict[str, str]
    count: int
    body: Callable[[int], bytes]


def measure(home: Path, seconds: float = 8.0) -> dict[str, dict[str, float]]:
    """By format: things per second, p99 in ms at half of it, and COPY's rows per second."""
    found = {}
    limits = {
        "WEIR_RATE_PER_S": "1000000",
        "WEIR_RATE_BURST": "1000000",
        "WEIR_MAX_UNPACKED_BYTES": str(1 << 28),
    }
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with web_on(home, os.environ["DATABASE_URL"], os.environ["REDIS_URL"], **limits) as web:
        web.start("web")
        token = web.token("ingest")
        for name, kind in FORMATS.items():
            per_s, _ = _send(web, token, kind, seconds, None)
            _, latencies = _send(web, token, kind, seconds, per_s / 2)
            found[name] = {
                "per_s": per_s,
                "p99_ms": float(np.percentile(latencies, 99)) * 1e3,
                "copy_per_s": _copy(web, name),
            }
    return found


def _send(
    web: Web, token: str, kind: Format, seconds: float, per_s: float | None
) -> tuple[float, list[float]]:
    """Things per second and latencies in seconds. At a pace, if one is given, latency counts from when due."""
    latencies: list[float] = []
    lock = threading.Lock()
    gap_s = kind.count * CLIENTS / per_s if per_s else 0.0
    begin = time.monotonic()

    def client(number: int) -> int:
        sent = 0
        due = begin + gap_s * number / CLIENTS
        with web.client(token) as http:
            while time.monotonic() < begin + seconds:
                body = kind.body(next(NUMBERS))
                if per_s:
                    time.sleep(max(0.0, due - time.monotonic()))
                start = due if per_s else time.monotonic()
                _check(http.post(kind.path, content=body, headers=kind.headers))
                with lock:
                    latencies.append(time.monotonic() - start)
                due += gap_s
                sent += 1
        return sent

    with ThreadPoolExecutor(CLIENTS) as pool:
        total = sum(pool.map(client, range(CLIENTS)))
    return total * kind.count / (time.monotonic() - begin), latencies


def _check(answer: httpx.Response) -> None:
    if answer.status_code not in (200, 204):
        raise AssertionError(f"{answer.status_code} {answer.text[:300]}")


class Template:
    """A body of which only the times change: making one anew costs far less than taking it in."""

    def __init__(self, body: bytes, marks: Sequence[bytes], shifts: Int64) -> None:
        self._bytes = np.frombuffer(body, np.uint8).copy()
        found, at = [], 0
        for mark in marks:
            at = body.index(mark, at)
            found.append(at)
            at += len(mark)
        self._at = np.array(found)[:, None] + np.arange(len(marks[0]))
        self._shifts = shifts

    def filled(self, base: int, encode: Callable[[Int64], NDArray[np.uint8]]) -> bytes:
        """The body with the times ``base`` plus each mark's shift."""
        self._bytes[self._at] = encode(base + self._shifts)
        return self._bytes.tobytes()


def _fixed64(values: Int64) -> NDArray[np.uint8]:
    return values.astype("<i8").view(np.uint8).reshape(-1, 8)


def _varint6(values: Int64) -> NDArray[np.uint8]:
    """Varints of six bytes, as times in ms have."""
    groups = (values[:, None] >> (7 * np.arange(6))) & 0x7F
    return (groups | np.array([0x80] * 5 + [0])).astype(np.uint8)


MARK_NS = 1 << 60
MARK_MS = 1_500_000_000_000


def _span_template() -> Template:
    """Spans of 32 threads of one service."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "bench"
    scope = resource.scope_spans.add()
    for at in range(SPANS):
        span = scope.spans.add(
            trace_id=at.to_bytes(16, "big"), span_id=(at + 1).to_bytes(8, "big"), name=OPERATORS[at % 4],
            kind=1, start_time_unix_nano=MARK_NS + 2 * at, end_time_unix_nano=MARK_NS + 2 * at + 1,
        )  # fmt: skip
        span.attributes.add(key="thread.id").value.int_value = at % 32
    marks = [(MARK_NS + at).to_bytes(8, "little") for at in range(2 * SPANS)]
    shifts = np.repeat(np.arange(SPANS), 2) * 1_000 + np.tile([0, 900], SPANS)
    return Template(request.SerializeToString(), marks, shifts)


def _sample_template() -> Template:
    """One sample of each of many series, as Prometheus sends them."""
    parts = []
    for at in range(SAMPLES):
        labels = {"__name__": f"metric_{at % 50}", "instance": f"host-{at // 50}", "job": "bench"}
        parts.append(rw.series_v1(labels, [(float(at % 97 + 1), MARK_MS + at)]))
    marks = [rw.varint(MARK_MS + at) for at in range(SAMPLES)]
    return Template(b"".join(parts), marks, np.zeros(SAMPLES, np.int64))


_SPAN_BODY, _SAMPLE_BODY = _span_template(), _sample_template()
_lock = threading.Lock()


def _spans(number: int) -> bytes:
    with _lock:
        return _SPAN_BODY.filled(time.time_ns() - 10**9 + number, _fixed64)


def _samples(number: int) -> bytes:
    with _lock:
        return rw.packed(_SAMPLE_BODY.filled(BASE_MS + number, _varint6))


_RECORDS = trace(seed=3, workers=32, seconds=10, per_second=ACTIVITIES // 10)


def _activities(number: int) -> bytes:
    """Records as an Arrow stream with names in dictionaries."""
    count = min(ACTIVITIES, len(_RECORDS))
    labels = {int(kind): label for label, kind in BY_LABEL.items()}
    types = pa.DictionaryArray.from_arrays(
        pa.array(_RECORDS.type[:count].astype(np.int32)), [labels.get(code, "unknown") for code in range(13)]
    )
    workers = [f"w{at}" for at in range(32)]
    base = time.time_ns() - 20 * 10**9 + number % 1000
    peers = pa.array(_RECORDS.peer[:count], mask=_RECORDS.peer[:count] < 0)
    operators = pa.array(_RECORDS.operator[:count], mask=_RECORDS.operator[:count] < 0)
    batch = pa.record_batch(
        {
            "type": types,
            "worker": pa.DictionaryArray.from_arrays(pa.array(_RECORDS.worker[:count]), workers),
            "peer": pa.DictionaryArray.from_arrays(peers, workers),
            "operator": pa.DictionaryArray.from_arrays(operators, list(OPERATORS)),
            "start_ns": pa.array(_RECORDS.start_ns[:count] + base),
            "end_ns": pa.array(_RECORDS.end_ns[:count] + base),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


FORMATS = {
    "OTLP spans": Format("/v1/traces", {"Content-Type": "application/x-protobuf"}, SPANS, _spans),
    "remote write samples": Format(
        "/api/v1/write",
        {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"},
        SAMPLES,
        _samples,
    ),
    "Arrow activities": Format(
        "/api/v1/activities?job=bench",
        {"Content-Type": "application/vnd.apache.arrow.stream"},
        min(ACTIVITIES, len(_RECORDS)),
        _activities,
    ),
}


def _copy(web: Web, name: str, rows: int = 500_000) -> float:
    """Rows per second of one plain COPY."""
    samples = name.startswith("remote")
    columns = (
        ["bigint", "bigint", "double precision"]
        if samples
        else ["smallint", *["integer"] * 3, *["bigint"] * 2]
    )
    with psycopg.connect(web.database_url) as connection, connection.cursor() as cursor:
        listed = ", ".join(f"c{number} {kind}" for number, kind in enumerate(columns))
        cursor.execute(f"CREATE TEMPORARY TABLE plain ({listed})")
        data = b"".join(_rows(samples, rows))
        begin = time.monotonic()
        with cursor.copy("COPY plain FROM STDIN") as copy:
            copy.write(data)
        return rows / (time.monotonic() - begin)


def _rows(samples: bool, rows: int) -> Iterator[bytes]:
    now = time.time_ns()
    for at in range(rows):
        yield (
            b"%d\t%d\t%f\n" % (at % 1000, now + at, at % 97)
            if samples
            else b"%d\t%d\t%d\t%d\t%d\t%d\n" % (4, at % 32, -1, at % 4, now + at, now + at + 900)
        )


if __name__ == "__main__":
    import json

    from tests.bench.setup import weir

    with weir() as home:
        print(json.dumps(measure(home), indent=1))
