"""A window's edges as bytes, for keeping and for sending to a page."""

from dataclasses import fields

import numpy as np
import pyarrow as pa

from analytics.model.results import WindowEdges


def encode(edges: WindowEdges) -> bytes:
    """Edges as a zstd-compressed Arrow IPC stream; one column a field of ``WindowEdges``."""
    batch = pa.record_batch({item.name: pa.array(getattr(edges, item.name)) for item in fields(edges)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def decode(payload: bytes | memoryview) -> WindowEdges:
    """The edges of ``encode``."""
    with pa.ipc.open_stream(payload) as reader:
        table = reader.read_all()
    columns = {item.name: np.ascontiguousarray(table[item.name].to_numpy()) for item in fields(WindowEdges)}
    return WindowEdges(**columns)
