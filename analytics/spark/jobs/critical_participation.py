"""Critical participation of the closed windows of all jobs, as one Spark job without a shuffle.

The driver cuts the windows into chunks and hands out segment ids; a Python worker reads the bytes itself,
computes, and sends back one row a window. Windows are independent, so any cut gives the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from analytics.critical_path import analyse
from analytics.model.results import Windows, WindowSummary
from analytics.model.results_arrow import RESULT_SCHEMA, from_table, to_batch
from analytics.spark.context import read_with_context
from analytics.spark.lifetimes import alive
from analytics.spark.sources import PostgresSegments, SegmentRef

ALGORITHM_VERSION = 1
"""Rises whenever the same input may give other results."""

CHUNK_RECORDS = 400_000
"""Read and computed at a time: bounds memory, and how often progress is told."""

PARTITION_CHUNKS = 16
MIN_PARTITIONS = 4
"""A Spark task costs 0.15 s besides its work, as much as a chunk. So a partition takes several chunks, as
long as there are enough partitions to keep the cores of a small machine evenly busy."""


@dataclass(frozen=True, slots=True)
class Task:
    """Windows ``[first, first + count)`` of one job, with what is known of the job as a whole (all in ns)."""

    job_id: int
    window_ns: int
    horizon_ns: int
    bounds_ns: tuple[int, int]
    first: int
    count: int

    @property
    def from_ns(self) -> int:
        """Start of the first window."""
        return self.first * self.window_ns

    @property
    def to_ns(self) -> int:
        """End of the last window."""
        return (self.first + self.count) * self.window_ns


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a task, with the segments that overlap it widened by the horizon."""

    task: Task
    refs: tuple[SegmentRef, ...]


def run(
    session: SparkSession, segments: PostgresSegments, tasks: Sequence[Task], run_id: int | None = None
) -> list[tuple[int, WindowSummary]]:
    """Analyse the tasks' windows.

    Returns ``(job id, summary)`` for every window, in order of job and window. With ``run_id``, progress is
    reported to that run as chunks end.
    """
    chunks = [chunk for task in tasks for chunk in cut(task, _refs(segments, task))]
    # The largest first, so that no core ends up alone with one at the end.
    chunks.sort(key=lambda chunk: (-sum(r.count for r in chunk.refs), chunk.task.job_id, chunk.task.first))
    partitions = min(len(chunks), max(MIN_PARTITIONS, -(-len(chunks) // PARTITION_CHUNKS)))

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for chunk in chunks[number::partitions]:
                    yield to_batch(chunk.task.job_id, summaries(segments, chunk))
                    if run_id is not None:
                        segments.report_progress(run_id, chunk.task.count)

    rows = session.range(0, partitions, 1, partitions).mapInArrow(compute, from_arrow_schema(RESULT_SCHEMA))
    found = from_table(rows.toArrow())
    return sorted(found, key=lambda item: (item[0], item[1].index))


def cut(task: Task, refs: Sequence[SegmentRef], records_a_chunk: int = CHUNK_RECORDS) -> list[Chunk]:
    """The task in chunks of about ``records_a_chunk`` records, judged by the segments' counts and ranges."""
    density = np.zeros(task.count)
    for ref in refs:
        first = min(max(ref.min_ns // task.window_ns - task.first, 0), task.count - 1)
        stop = min(max(ref.max_ns // task.window_ns - task.first + 1, first + 1), task.count)
        density[first:stop] += ref.count / (stop - first)
    bins = (np.cumsum(density) // records_a_chunk).astype(np.int64)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    chunks = []
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), task.count], strict=True):
        part = Task(
            task.job_id, task.window_ns, task.horizon_ns, task.bounds_ns, task.first + start, stop - start
        )
        low, high = part.from_ns - task.horizon_ns, part.to_ns + task.horizon_ns
        near = tuple(ref for ref in refs if ref.max_ns >= low and ref.min_ns <= high)
        chunks.append(Chunk(part, near))
    return chunks


def summaries(segments: PostgresSegments, chunk: Chunk) -> list[WindowSummary]:
    """The summaries of one chunk, read and computed here."""
    task = chunk.task
    alive_from, alive_until = alive(segments.lifetimes(task.job_id), task.bounds_ns)
    records = read_with_context(chunk.refs, task.from_ns, task.to_ns, len(alive_from), segments.read)
    windows = Windows(width_ns=task.window_ns, first=task.first, count=task.count)
    found, _ = analyse(
        records, alive_from, alive_until, windows, bounds_ns=task.bounds_ns, horizon_ns=task.horizon_ns
    )
    return found


def _refs(segments: PostgresSegments, task: Task) -> list[SegmentRef]:
    return segments.index(task.job_id, task.from_ns - task.horizon_ns, task.to_ns + task.horizon_ns)
