"""Rows for PostgreSQL's binary COPY, with numpy arrays as SQL arrays.

psycopg turns every element of an array into a Python object and text; a run's rows hold millions of them.
Format: PostgreSQL manual, COPY, "Binary Format", and the array's own send format.
"""

import struct
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)

# numpy kind and size → type oid and the element's wire type
_ELEMENTS = {"f8": (701, ">f8"), "i4": (23, ">i4"), "i2": (21, ">i2"), "u1": (21, ">i2")}


def row(values: Iterable[int | float | str | NDArray[np.generic]]) -> bytes:
    """One row. An int is a bigint, a float a double precision, a str a text, a one-dimensional array an array.

    Arrays of float64, int32, int16 and uint8 become double precision[], integer[] and smallint[] (twice).
    """
    fields = [_field(value) for value in values]
    return struct.pack(">h", len(fields)) + b"".join(fields)


def _field(value: int | float | str | NDArray[np.generic]) -> bytes:
    if isinstance(value, np.ndarray):
        data = _array(value)
    elif isinstance(value, str):
        data = value.encode()
    elif isinstance(value, float):
        data = struct.pack(">d", value)
    else:
        data = struct.pack(">q", value)
    return struct.pack(">i", len(data)) + data


def _array(values: NDArray[np.generic]) -> bytes:
    oid, wire = _ELEMENTS[values.dtype.str[1:]]
    if not len(values):
        return struct.pack(">iii", 0, 0, oid)
    elements = np.empty(len(values), np.dtype([("size", ">i4"), ("value", wire)]))
    elements["size"] = np.dtype(wire).itemsize
    elements["value"] = values
    return struct.pack(">iiiii", 1, 0, oid, len(values), 1) + elements.tobytes()
