"""Beside HolisticTraceAnalysis' critical path, on the same trace: a CPU thread launches kernels on GPU streams.

It gets an environment of its own below ``.venv``, made by the first run that can download it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from analytics.critical_path import analyse, covering_windows, default_lifetimes
from analytics.decode.formats import read_file

PACKAGES = ("HolisticTraceAnalysis==0.5.0", "pandas<3")
ENVIRONMENT = Path(sys.prefix) / "bench-hta"
STREAMS = 4
LAUNCHES = 20_000


class AbsentError(Exception):
    """HolisticTraceAnalysis is not here and cannot be downloaded; the message says why."""


def measure() -> dict[str, float]:
    """Seconds of both on the same trace, without reading it, and the ratio.

    Raises
    ------
    AbsentError
        If there is no HolisticTraceAnalysis to compare with.
    """
    python = _environment()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "rank0.json"
        path.write_text(json.dumps(pytorch_trace(LAUNCHES)))
        found = _run(python, str(Path(__file__).with_name("hta_runner.py")), directory)
        if found.returncode:
            raise AbsentError(f"it failed: {found.stderr.strip().splitlines()[-1]}")
        theirs = json.loads(found.stdout.strip().splitlines()[-1])
        batch = read_file(path, "chrome")
    windows = covering_windows(batch.records, 1 << 62)
    lives = default_lifetimes(batch.records, len(batch.workers))
    analyse(batch.records, *lives, windows)
    begin = time.perf_counter()
    (summary,), _ = analyse(batch.records, *lives, windows)
    seconds = time.perf_counter() - begin
    assert summary.status.value == "ok", summary
    return {
        "records": len(batch.records),
        "hta_edges": theirs["edges"],
        "hta_seconds": theirs["seconds"],
        "seconds": seconds,
        "ratio": theirs["seconds"] / seconds,
    }


def _environment() -> Path:
    python = ENVIRONMENT / "bin" / "python"
    if python.exists() and not _run(python, "-c", "import hta").returncode:
        return python
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    made = _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES)
    if made.returncode:
        raise AbsentError(f"it could not be downloaded: {made.stderr.strip().splitlines()[-1]}")
    return python


def _run(python: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *arguments], check=False, capture_output=True, text=True, timeout=1200)


def pytorch_trace(launches: int, seed: int = 1) -> dict[str, Any]:
    """One training step as PyTorch's profiler writes it: operators on a CPU thread, a kernel launched by each."""
    rng = np.random.default_rng(seed)
    cpu_us = rng.integers(20, 60, launches)
    kernel_us = rng.integers(10, 150, launches)
    events: list[dict[str, Any]] = []
    at = 1000
    free = [at] * STREAMS
    for i in range(launches):
        stream = i % STREAMS
        length = int(cpu_us[i])
        launched = at + length // 2
        begin = max(launched + 8, free[stream] + 1)
        free[stream] = begin + int(kernel_us[i])
        events += [
            _event("cpu_op", f"aten::op{i % 40}", 1, 1, at, length, {"External id": i}),
            _event("cuda_runtime", "cudaLaunchKernel", 1, 1, launched, 5,
                   {"External id": i, "correlation": i + 1, "cbid": 211}),
            _event("kernel", f"kernel{i % 40}", 0, 7 + stream, begin, int(kernel_us[i]),
                   {"External id": i, "correlation": i + 1, "device": 0, "stream": 7 + stream}),
            {"ph": "s", "id": i + 1, "pid": 1, "tid": 1, "ts": launched, "cat": "ac2g", "name": "ac2g"},
            {"ph": "f", "id": i + 1, "pid": 0, "tid": 7 + stream, "ts": begin, "cat": "ac2g", "name": "ac2g",
             "bp": "e"},
        ]  # fmt: skip
        at += length + 1
    end = max(at, *free)
    sync = _event(
        "cuda_runtime",
        "cudaDeviceSynchronize",
        1,
        1,
        at,
        end - at + 5,
        {"correlation": launches + 1, "cbid": 165},
    )
    step = _event("user_annotation", "ProfilerStep#1", 1, 1, 990, end - 980, {"External id": launches})
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "device", "totalGlobalMem": 1}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 1},
        "traceEvents": [step, *events, sync],
    }


def _event(
    category: str, name: str, pid: int, tid: int, ts_us: int, dur_us: int, args: dict[str, Any]
) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts_us,
        "dur": dur_us,
        "args": args,
    }


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
