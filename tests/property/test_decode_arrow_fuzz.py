"""Arrow and Parquet files: what was written is read; cut or damaged at any byte, they never fail."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.model import segments
from analytics.model.activity import ActivityType
from analytics.model.trace import Records
from tests.support.formats import (
    activity_table,
    every_cut_is_understood,
    every_flip_is_survived,
    read,
    said,
)
from tests.support.random_traces import random_rows
from tests.support.spark_log import Row

T0 = 1_700_000_000_000_000_001
per_case = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def named(rows: list[tuple[int, ...]]) -> list[Row]:
    found = [
        (
            ActivityType(kind).label,
            f"worker {worker}",
            f"worker {peer}" if peer >= 0 else None,
            f"operator {operator}" if operator >= 0 else None,
            T0 + start_ns,
            T0 + end_ns,
        )
        for kind, worker, peer, operator, start_ns, end_ns in rows
    ]
    return sorted(found, key=repr)


def written(rows: list[tuple[int, ...]], form: str) -> bytes:
    """A table in this form; the streams in batches of two rows."""
    if form == "segment":
        shifted = [(*row[:4], T0 + row[4], T0 + row[5]) for row in rows]
        return segments.encode(Records.of(shifted))
    table = activity_table(named(rows), dictionary=form == "dictionary")
    sink = io.BytesIO()
    if form == "parquet":
        pq.write_table(table, sink, row_group_size=2)
        return sink.getvalue()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if form == "zstd" else None)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


FORMS = ("plain", "dictionary", "zstd", "segment", "parquet")
ROWS = [(4, 0, -1, 7, 0, 9), (10, 0, 1, -1, 3, 5), (12, 1, -1, -1, 0, 2)]
SMALL = {form: written(ROWS, form) for form in FORMS}


@per_case
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from(FORMS))
def test_a_random_trace_is_read_back(tmp_path: Path, seed: int, workers: int, form: str) -> None:
    rows = random_rows(np.random.default_rng(seed), workers, 12)
    batch = read(tmp_path, written(rows, form), "parquet" if form == "parquet" else "arrow")
    assert batch.diagnostics == ()
    assert said(batch) == named(rows)


@pytest.mark.parametrize("form", FORMS)
def test_cut_at_every_byte(tmp_path: Path, form: str) -> None:
    data = SMALL[form]
    if form == "parquet":
        outcomes = every_cut_is_understood(tmp_path, data, "parquet", ())
        assert all(isinstance(outcome, str) for outcome in outcomes)
    else:
        outcomes = every_cut_is_understood(tmp_path, data, "arrow", message_ends(data))
        assert outcomes[-1] == 3


def message_ends(data: bytes) -> list[int]:
    """Lengths at which a stream cannot be told from one whose end mark was left out."""
    source = pa.BufferReader(data)
    reader = pa.ipc.MessageReader.open_stream(source)
    ends = []
    while True:
        try:
            reader.read_next_message()
        except StopIteration:
            return [end + extra for end in ends for extra in range(4)]
        ends.append(source.tell())


@settings(per_case, max_examples=400)
@given(st.sampled_from(FORMS), st.integers(0, 5000), st.integers(1, 255))
def test_damaged_at_any_byte(tmp_path: Path, form: str, at: int, value: int) -> None:
    every_flip_is_survived(tmp_path, SMALL[form], "parquet" if form == "parquet" else "arrow", at, value)
