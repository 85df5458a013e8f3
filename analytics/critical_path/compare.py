"""What changed? Two ranges of windows side by side, the differences that matter first.

Every group's participation and profile is a mean over a range's windows, weighted with their effective lengths (a
job's first and last window are shorter). Windows without a trustworthy critical path are left out on both counts
and counted. A group that a window does not have is 0 there.

**How sure.** The standard error of a weighted mean is sqrt(s² / n), where s² is the weighted variance between the
windows and n = (Σw)² / Σw² their effective number, corrected by n/(n-1). Neighbouring windows resemble one
another, so n shrinks by (1 - r) / (1 + r) if r, the correlation of a window with the next, is positive. A
difference is *sure* if it is more than twice its standard error and each side has at least `FEWEST` windows. That
is a rule of thumb for ordering, not a test: with hundreds of groups some are sure by chance.

**Order.** Sure before unsure, then by the size of the change of participation, then of the profile.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from analytics.model.answers import Change, Comparison, Confidence, Dimension, RangeFacts
from analytics.model.results import Float64, WindowStatus, WindowSummary
from analytics.model.trace import NONE, Int32, Int64

FEWEST = 5
MOST_CHANGES = 200
MOST_CANDIDATES = 2_000
"""Of each dimension, how many groups get a standard error: those whose participation or profile changed most."""
_SURE_ERRORS = 2.0
_SMALLEST = 1e-12

Columns = tuple[Int32, Int32 | None, Float64, Float64]
Read = Callable[[WindowSummary], Columns]


class _Side(NamedTuple):
    """One range: its windows with a result, and their lengths in ns."""

    windows: list[WindowSummary]
    length_ns: Float64


class _Mean(NamedTuple):
    value: float
    spread: float
    error: float


def compare(
    before: Sequence[WindowSummary], after: Sequence[WindowSummary], *, most: int = MOST_CHANGES
) -> Comparison:
    """The groups of two ranges by how much they differ; at most ``most``, those that matter first.

    Workers and operators must have the same ids on both sides. Groups that are 0 on both sides are left out.
    """
    sides = _side(before), _side(after)
    changes: list[Change] = []
    left_out = 0
    for dimension, read in _DIMENSIONS.items():
        found, small = _changes(dimension, read, sides)
        changes += found
        left_out += small
    changes.sort(key=_importance)
    return Comparison(
        before=_facts(before, sides[0]),
        after=_facts(after, sides[1]),
        changes=tuple(changes[:most]),
        left_out=left_out + max(len(changes) - most, 0),
    )


def _side(summaries: Sequence[WindowSummary]) -> _Side:
    fine = [window for window in summaries if window.status is WindowStatus.OK]
    return _Side(fine, np.array([window.end_ns - window.start_ns for window in fine], np.float64))


def _facts(summaries: Sequence[WindowSummary], side: _Side) -> RangeFacts:
    return RangeFacts(
        window_count=len(side.windows),
        windows_left_out=len(summaries) - len(side.windows),
        length_ns=int(side.length_ns.sum()),
        start_ns=min((window.start_ns for window in summaries), default=0),
        end_ns=max((window.end_ns for window in summaries), default=0),
    )


def _activities(window: WindowSummary) -> Columns:
    ids = np.arange(len(window.activity_cp), dtype=np.int32)
    return ids, None, window.activity_cp, window.activity_conventional


def _workers(window: WindowSummary) -> Columns:
    return window.worker_ids, None, window.worker_cp, window.worker_conventional


def _operators(window: WindowSummary) -> Columns:
    return window.operator_ids, None, window.operator_cp, window.operator_conventional


def _channels(window: WindowSummary) -> Columns:
    return window.channel_src, window.channel_dst, window.channel_cp, window.channel_conventional


_DIMENSIONS: dict[Dimension, Read] = {
    Dimension.ACTIVITY: _activities,
    Dimension.WORKER: _workers,
    Dimension.OPERATOR: _operators,
    Dimension.CHANNEL: _channels,
}


class _Table(NamedTuple):
    """Rows of one side: group key, position of the window, participation and profile."""

    key: Int64
    window: Int64
    cp: Float64
    conventional: Float64


def _table(side: _Side, read: Read) -> _Table:
    parts = [read(window) for window in side.windows]
    if not parts:
        return _Table(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))
    ids = np.concatenate([part[0] for part in parts]).astype(np.int64)
    peers = np.concatenate([np.full(len(part[0]), NONE) if part[1] is None else part[1] for part in parts])
    window = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    cp, conventional = (np.concatenate([part[column] for part in parts]) for column in (2, 3))
    return _Table(((ids + 1) << 32) | (peers.astype(np.int64) + 1), window, cp, conventional)


def _changes(dimension: Dimension, read: Read, sides: tuple[_Side, _Side]) -> tuple[list[Change], int]:
    """The candidates of one dimension, and how many more groups differ less."""
    tables = tuple(_table(side, read) for side in sides)
    keys = np.unique(np.concatenate([table.key for table in tables]))
    difference, size = np.zeros((2, len(keys))), np.zeros(len(keys))
    for side, table, sign in zip(sides, tables, (-1.0, 1.0), strict=True):
        weight = side.length_ns[table.window] / max(side.length_ns.sum(), 1.0)
        group = np.searchsorted(keys, table.key)
        for row, values in enumerate((table.cp, table.conventional)):
            difference[row] += sign * np.bincount(group, weight * values, len(keys))
            size += np.bincount(group, weight * values, len(keys))
    present = np.flatnonzero(size >= _SMALLEST)
    importance = np.abs(difference).max(axis=0)[present]
    chosen = present[np.argsort(-importance, kind="stable")][:MOST_CANDIDATES]
    keys = np.sort(keys[chosen])
    rows = [_matrices(side, table, keys) for side, table in zip(sides, tables, strict=True)]
    found = []
    for i, key in enumerate(keys.tolist()):
        cp, profile = (
            [_mean(matrix[column][i], side.length_ns) for matrix, side in zip(rows, sides, strict=True)]
            for column in (0, 1)
        )
        few = min(len(side.windows) for side in sides) < FEWEST
        peaks = [_peak(matrix[0][i], side) for matrix, side in zip(rows, sides, strict=True)]
        found.append(_change(dimension, (key >> 32) - 1, (key & 0xFFFFFFFF) - 1, cp, profile, few, peaks))
    return found, len(present) - len(chosen)


def _matrices(side: _Side, table: _Table, keys: Int64) -> tuple[Float64, Float64]:
    """Participation and profile as ``(keys, windows)``; types of one operator or channel add up."""
    group = np.searchsorted(keys, table.key)
    mine = (group < len(keys)) & (np.append(keys, -1)[np.minimum(group, len(keys))] == table.key)
    cp, conventional = (np.zeros((len(keys), len(side.windows))) for _ in range(2))
    np.add.at(cp, (group[mine], table.window[mine]), table.cp[mine])
    np.add.at(conventional, (group[mine], table.window[mine]), table.conventional[mine])
    return cp, conventional


def _peak(cp: Float64, side: _Side) -> int | None:
    """When the window begins in which a group's participation is largest; of equal ones the last."""
    if not cp.any():
        return None
    return side.windows[len(cp) - 1 - int(np.argmax(cp[::-1]))].start_ns


def _change(
    dimension: Dimension,
    group: int,
    peer: int,
    cp: list[_Mean],
    profile: list[_Mean],
    few: bool,
    peaks: list[int | None],
) -> Change:
    cp_error, profile_error = (float(np.hypot(a.error, b.error)) for a, b in (cp, profile))
    stands_out = abs(cp[1].value - cp[0].value) > max(_SURE_ERRORS * cp_error, _SMALLEST)
    confidence = Confidence.SURE if stands_out else Confidence.UNSURE
    return Change(
        dimension, group, peer, cp[0].value, cp[1].value, cp_error, cp[0].spread, cp[1].spread,
        profile[0].value, profile[1].value, profile_error, Confidence.TOO_FEW if few else confidence, *peaks,
    )  # fmt: skip


def _importance(change: Change) -> tuple[bool, float, float, int, int, int]:
    dimension = list(Dimension).index(change.dimension)
    sizes = -abs(change.cp_change), -abs(change.conventional_change)
    return change.confidence is not Confidence.SURE, *sizes, dimension, change.id, change.peer


def _mean(values: Float64, weights: Float64) -> _Mean:
    """Weighted mean, standard deviation and standard error of one group; all 0 without windows."""
    if not len(weights):
        return _Mean(0.0, 0.0, 0.0)
    total = weights.sum()
    mean = float((weights * values).sum() / total)
    count = float(total**2 / (weights**2).sum())
    if len(values) < 2 or count <= 1:
        return _Mean(mean, 0.0, 0.0)
    residual = values - mean
    variance = float((weights * residual**2).sum() / total) * count / (count - 1)
    kinship = _correlation(residual)
    independent = max(count * (1 - kinship) / (1 + kinship), 1.0)
    return _Mean(mean, float(np.sqrt(variance)), float(np.sqrt(variance / independent)))


def _correlation(residual: Float64) -> float:
    """Of a window with the next, if positive; 0 where there are too few windows to tell."""
    if len(residual) < FEWEST or not residual.any():
        return 0.0
    return float(np.clip((residual[1:] * residual[:-1]).sum() / (residual**2).sum(), 0.0, 0.99))
