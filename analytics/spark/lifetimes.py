"""When each worker of a job was alive."""

from collections.abc import Iterable

import numpy as np

from analytics.model.trace import Int64


def alive(
    rows: Iterable[tuple[int, int | None, int | None]], bounds_ns: tuple[int, int]
) -> tuple[Int64, Int64]:
    """Lifetimes by worker number; what the source did not report is the job's own span.

    A number that is not among the rows has no life (0 until -1): only the lost half of a message named it.
    """
    listed = list(rows)
    size = max((number for number, _, _ in listed), default=-1) + 1
    alive_from, alive_until = np.full(size, 0), np.full(size, -1)
    for number, from_ns, until_ns in listed:
        alive_from[number] = bounds_ns[0] if from_ns is None else from_ns
        alive_until[number] = bounds_ns[1] if until_ns is None else until_ns
    return alive_from.astype(np.int64), alive_until.astype(np.int64)
