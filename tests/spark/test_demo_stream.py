"""The demo stream for real: followed live, stopped by a signal, leaving only its log."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from analytics.decode.batch import merge_batches
from analytics.model.activity import ActivityType
from analytics.model.trace import TraceBatch
from workers.collectors.event_log import EventLogCollector, find_logs

pytestmark = pytest.mark.spark

CHECKOUT = Path(__file__).parents[2]
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0


def followed(directory: Path, wanted_micro_batches: int) -> tuple[EventLogCollector, TraceBatch]:
    """Poll the growing log until that many micro-batches have been reported."""
    deadline = time.monotonic() + START_TIMEOUT_S
    collector, state, batches = None, None, []
    while sum(len(batch.annotations) for batch in batches) < wanted_micro_batches:
        assert time.monotonic() < deadline, "the demo stream reported too few micro-batches"
        time.sleep(0.2)
        if collector is None:
            logs = find_logs(directory) if directory.exists() else []
            collector = EventLogCollector(logs[0]) if logs else None
        else:
            batch, state = collector.poll(state)
            batches.append(batch)
    assert collector is not None
    for _ in range(2):
        batch, state = collector.poll(state)
        batches.append(batch)
    return collector, merge_batches(batches)


def test_the_demo_stream_can_be_followed_live_and_stops_when_told(tmp_path: Path) -> None:
    logs = tmp_path / "event-logs"
    command = [sys.executable, "-m", "analytics.spark.demo_stream", "--event-log-dir", str(logs)]
    output = (tmp_path / "output").open("wb")
    with output, subprocess.Popen(command, stdout=output, stderr=output, cwd=CHECKOUT) as program:
        try:
            collector, trace = followed(logs, wanted_micro_batches=4)
            assert not collector.application.finished
            program.send_signal(signal.SIGTERM)
            assert program.wait(STOP_TIMEOUT_S) == 0
        finally:
            program.kill()
    assert collector.application.name == "ad-events"
    # Stamps of whole milliseconds may make neighbours overlap by one; nothing else is odd about a live log.
    assert {item.code for item in trace.diagnostics} <= {"overlapping_tasks", "instant_task"}
    assert {worker.name for worker in trace.workers} == {"driver", "local/core-0", "local/core-1"}
    assert len(trace.operators) == 3
    assert any(operator.startswith("MicroBatchScan") for operator in trace.operators)
    kinds = {ActivityType(kind) for kind in set(trace.records.type.tolist())}
    assert {ActivityType.PROCESSING, ActivityType.SCHEDULING, ActivityType.CONTROL_MESSAGE} <= kinds
    assert {"input_rows_per_s", "batch_duration_ms", "state_rows"} <= {
        sample.name for sample in trace.metrics
    }
    assert {left.name for left in tmp_path.iterdir()} == {"event-logs", "output"}
