"""Trace files to upload, and the worker's part of an upload in this process."""

from __future__ import annotations

import json
from pathlib import Path

from webapp.telemetry.uploads.models import Upload
from workers.tasks import uploads as tasks

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
SPARK_LOG = GOLDEN / "spark_event_log" / "app-20261121111734-0000"
START_US = 1_600_000_000_000_000
"""September 2020: long before anything else in these tests."""


def chrome_trace(rounds: int = 40, threads: int = 3) -> bytes:
    """Again and again a coordinator hands work to every thread; thread 1 takes 79 of the 100 ms of a round."""
    events = [thread_name(0, "coordinator")]
    for number in range(rounds):
        begin = START_US + number * 100_000
        events += [
            span(0, "plan", begin, 18_000, "scheduling"),
            span(0, "wait", begin + 18_000, 81_000, "waiting"),
        ]
        for thread in range(1, threads + 1):
            flow = {"name": "work", "cat": "control_message", "id": f"{number}-{thread}", "pid": 1}
            busy = 79_000 if thread == 1 else 20_000
            events += [
                {**flow, "ph": "s", "tid": 0, "ts": begin + 18_000},
                {**flow, "ph": "f", "tid": thread, "ts": begin + 19_000, "bp": "e"},
                span(thread, "resize" if thread == 1 else "crop", begin + 19_000, busy, "processing"),
                {
                    **flow,
                    "ph": "s",
                    "tid": thread,
                    "ts": begin + 19_000 + busy,
                    "id": f"back {number}-{thread}",
                },
                {**flow, "ph": "f", "tid": 0, "ts": begin + 20_000 + busy, "id": f"back {number}-{thread}"},
            ]
    events += [thread_name(thread, f"worker {thread}") for thread in range(1, threads + 1)]
    return json.dumps({"traceEvents": events}).encode()


def thread_name(thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": "thread_name", "pid": 1, "tid": thread, "args": {"name": name}}


def span(thread: int, name: str, at_us: int, length_us: int, kind: str) -> dict[str, object]:
    return {"ph": "X", "name": name, "cat": kind, "pid": 1, "tid": thread, "ts": at_us, "dur": length_us}


def activity_lines(count: int, start_ns: int = 1_700_000_000_000_000_000) -> bytes:
    """Activities of two workers, a millisecond each, as NDJSON."""
    return b"".join(
        b'{"type":"processing","worker":"w%d","operator":"map","start_ns":%d,"end_ns":%d}\n'
        % (i % 2, start_ns + i // 2 * 1_000_000, start_ns + (i // 2 + 1) * 1_000_000)
        for i in range(count)
    )


def work() -> None:
    """What the workers do with all uploads that wait for them."""
    for row in Upload.objects.filter(state="received"):
        tasks.preview(row.pk)
    for row in Upload.objects.filter(state="storing"):
        tasks.store(row.pk)
