"""What a stretch of a timeline is labelled with: one small integer for each (operator, activity type).

Label 0 means that the worker is not alive. The others are numbered by operator, then type, so that comparing
two labels compares those, whatever other labels a trace has.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analytics.critical_path.jit import kernel
from analytics.model.activity import TYPE_COUNT, ActivityType
from analytics.model.trace import NONE, Int32, Records, UInt8

DEAD = 0
"""The label of a stretch where the worker is not alive."""

_DENSE_LIMIT = 1 << 20
_UNKNOWN = int(ActivityType.UNKNOWN)
_WAITING = int(ActivityType.WAITING)


class Labels(NamedTuple):
    """Operator and type of every label, and the label of every record's (operator, type).

    ``table[row * TYPE_COUNT + type]`` is the label; an operator's row is ``operator + 1`` if ``operators`` is
    empty, else its position in ``operators``. ``blocked`` marks what carries no path: waiting, and not being alive.
    """

    operator: Int32
    type: UInt8
    blocked: NDArray[np.bool_]
    table: Int32
    operators: Int32
    unknown: int
    waiting: int


@kernel
def _mark_used(used: NDArray[np.bool_], rows: Int32, shift: int, types: UInt8) -> None:
    for i in range(len(types)):
        if types[i] < TYPE_COUNT:
            used[(rows[i] + shift) * TYPE_COUNT + types[i]] = True


def label_records(records: Records) -> tuple[Labels, Int32]:
    """Number the (operator, type) pairs of a trace.

    Returns the labels and, per record, the row of its operator in ``labels.table`` minus one.
    """
    rows = records.operator
    operators = np.empty(0, np.int32)
    if len(rows) and (int(rows.max()) > _DENSE_LIMIT or int(rows.min()) < NONE):
        operators = np.unique(np.append(np.maximum(rows, NONE), np.int32(NONE)))
        rows = np.searchsorted(operators, np.maximum(rows, NONE)).astype(np.int32) - np.int32(1)
    row_count = len(operators) or int(rows.max(initial=NONE)) + 2
    used = np.zeros(row_count * TYPE_COUNT, np.bool_)
    used[[_UNKNOWN, _WAITING]] = True
    _mark_used(used, rows, 1, records.type)
    pairs = np.flatnonzero(used)
    table = np.zeros(len(used), np.int32)
    table[pairs] = np.arange(1, len(pairs) + 1)
    row, kind = np.divmod(pairs, TYPE_COUNT)
    operator = np.append(NONE, operators[row] if len(operators) else row - 1).astype(np.int32)
    types = np.append(0, kind).astype(np.uint8)
    blocked = (types == _WAITING) | (types == 0)
    blocked[DEAD] = True
    labels = Labels(operator, types, blocked, table, operators, int(table[_UNKNOWN]), int(table[_WAITING]))
    return labels, rows
