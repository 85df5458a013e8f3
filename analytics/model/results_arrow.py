"""Window summaries as Arrow rows, the way they leave a Spark job."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from analytics.model.results import WindowStatus, WindowSummary

_FLOATS, _INTS, _BYTES = pa.list_(pa.float64()), pa.list_(pa.int32()), pa.list_(pa.int16())

RESULT_SCHEMA = pa.schema(
    [
        ("job_id", pa.int64()),
        ("index", pa.int64()),
        ("start_ns", pa.int64()),
        ("end_ns", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("log10_paths", pa.float64()),
        ("cp_total", pa.float64()),
        ("record_count", pa.int64()),
        ("activity_cp", _FLOATS),
        ("activity_conventional", _FLOATS),
        ("worker_ids", _INTS),
        ("worker_cp", _FLOATS),
        ("worker_conventional", _FLOATS),
        ("operator_ids", _INTS),
        ("operator_types", _BYTES),
        ("operator_cp", _FLOATS),
        ("operator_conventional", _FLOATS),
        ("operator_workers", _INTS),
        ("channel_src", _INTS),
        ("channel_dst", _INTS),
        ("channel_types", _BYTES),
        ("channel_cp", _FLOATS),
        ("channel_conventional", _FLOATS),
    ]
)
_DTYPE = {_FLOATS: np.float64, _INTS: np.int32, _BYTES: np.uint8}


def to_batch(job_id: int, summaries: Iterable[WindowSummary]) -> pa.RecordBatch:
    """One row a summary."""
    rows = list(summaries)
    columns = [pa.array([job_id] * len(rows), pa.int64())]
    for item in list(RESULT_SCHEMA)[1:]:
        values = [getattr(row, item.name) for row in rows]
        if item.type == _BYTES:
            values = [value.astype(np.int16) for value in values]
        columns.append(pa.array(values, item.type))
    return pa.record_batch(columns, schema=RESULT_SCHEMA)


def from_table(table: Any) -> list[tuple[int, WindowSummary]]:
    """``(job id, summary)`` for every row of an Arrow table with ``RESULT_SCHEMA``; arrays are views of it."""
    columns: dict[str, list[Any]] = {}
    for item in RESULT_SCHEMA:
        column = table[item.name].combine_chunks()
        columns[item.name] = _slices(column, _DTYPE[item.type]) if item.type in _DTYPE else column.to_pylist()
    jobs = columns.pop("job_id")
    columns["status"] = [WindowStatus(value) for value in columns["status"]]
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return [(job_id, WindowSummary(**row)) for job_id, row in zip(jobs, rows, strict=True)]


def _slices(column: Any, dtype: Any) -> list[Any]:
    """The lists of a list column as numpy views, without a Python object an element."""
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy().astype(dtype, copy=False)
    return [values[start:stop] for start, stop in pairwise(offsets)]
