"""Random traces that look like a streaming job: busy workers, messages, gaps, now and then a long silence."""

import numpy as np

from analytics.model.activity import ActivityType
from analytics.model.trace import Records, TraceBatch, Worker

OPERATORS = ("source", "map", "count", "sink")
KINDS = [int(kind) for kind in (ActivityType.PROCESSING, ActivityType.SERIALIZATION, ActivityType.SCHEDULING)]


def trace(*, seed: int, workers: int, seconds: float, per_second: int, start_ns: int = 0) -> Records:
    """About ``per_second`` activities a second over all workers, one in six followed by a message."""
    rng = np.random.default_rng(seed)
    per_worker = max(2, int(per_second * seconds / workers))
    parts = [_one_worker(rng, worker, workers, seconds, per_worker, start_ns) for worker in range(workers)]
    records = Records.concat(parts)
    return records.take(np.argsort(records.end_ns, kind="stable"))


def _one_worker(
    rng: np.random.Generator, worker: int, workers: int, seconds: float, count: int, start_ns: int
) -> Records:
    mean = seconds * 1e9 / count
    busy = np.maximum(1, rng.exponential(mean * 0.7, count)).astype(np.int64)
    idle = np.where(rng.random(count) < 0.3, rng.exponential(mean, count), 0).astype(np.int64)
    begins = start_ns + np.cumsum(busy + idle) - busy
    ends = begins + busy
    sends = rng.random(count) < 1 / 6
    peers = (worker + rng.integers(1, max(2, workers), count)) % workers
    activities = Records(
        rng.choice(np.array(KINDS, np.uint8), count),
        np.full(count, worker, np.int32),
        np.full(count, -1, np.int32),
        rng.integers(0, len(OPERATORS), count).astype(np.int32),
        begins,
        ends,
    )
    total = int(sends.sum())
    messages = Records(
        np.full(total, int(ActivityType.DATA_MESSAGE), np.uint8),
        np.full(total, worker, np.int32),
        peers[sends].astype(np.int32),
        np.full(total, -1, np.int32),
        ends[sends],
        ends[sends] + rng.integers(1_000, 3_000_000, total),
    )
    return Records.concat([activities, messages])


def batches(records: Records, workers: int, size: int) -> list[TraceBatch]:
    """The records as deliveries of ``size``, in the order in which they ended."""
    names = tuple(Worker(f"w{i}", host=f"host-{i % 4}") for i in range(workers))
    cuts = range(0, len(records), size)
    return [
        TraceBatch(
            records.take(np.arange(cut, min(cut + size, len(records)))), workers=names, operators=OPERATORS
        )
        for cut in cuts
    ]
