"""A window's edges, ordered so that what a range of time shows is found without looking at the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analytics.model.results import WindowEdges

Picked = NDArray[np.intp]
"""Positions in the edges."""


@dataclass(frozen=True, eq=False)
class EdgeIndex:
    """Edges with their orders. ``workers`` are all ids that appear, ascending; ``worker_cp`` (the CP of a worker's
    own activities) and ``worker_critical`` (whether the critical path touches it) are parallel to it.

    ``path`` holds the edges of the critical path in order of time.
    """

    edges: WindowEdges
    workers: NDArray[np.int64]
    worker_cp: NDArray[np.float64]
    worker_critical: NDArray[np.bool_]
    path: Picked
    _local: Picked
    """Activities by worker, then time; a worker's do not overlap."""
    _first: Picked
    """Where in ``_local`` each of ``workers`` begins, and the end."""
    _begin_ns: NDArray[np.int64]
    _end_ns: NDArray[np.int64]
    _messages: Picked
    """Messages by the time they were sent."""
    _sent_ns: NDArray[np.int64]
    _longest_ns: int
    """The longest message: none sent earlier than that before a range reaches into it."""

    def activities(self, workers: NDArray[np.int64], from_ns: int, to_ns: int) -> Picked:
        """The activities of these workers that overlap the range, by worker in the order given, then by time."""
        parts = []
        for k in np.searchsorted(self.workers, workers).tolist():
            mine = slice(self._first[k], self._first[k + 1])
            low = np.searchsorted(self._end_ns[mine], from_ns, "right")
            high = np.searchsorted(self._begin_ns[mine], to_ns, "left")
            parts.append(self._local[mine][low:high])
        return np.concatenate(parts) if parts else self._local[:0]

    def messages(self, from_ns: int, to_ns: int) -> Picked:
        """The messages under way in the range, by the time they were sent."""
        low = np.searchsorted(self._sent_ns, from_ns - self._longest_ns, "left")
        high = np.searchsorted(self._sent_ns, to_ns, "right")
        near = self._messages[low:high]
        return near[self.edges.dst_ns[near] >= from_ns]

    def covering(
        self, worker: int | None, peer: int | None, operator: int | None, from_ns: int, to_ns: int
    ) -> int | None:
        """The edge that covers most of a time; of several the one whose ends are nearest to it, then the first.

        Without a ``peer`` an activity is meant, with one a message to it; None says nothing of worker or operator.
        """
        edges = self.edges
        fits = edges.src == edges.dst if peer is None else edges.dst == peer
        for column, wanted in ((edges.src, worker), (edges.operator, operator)):
            if wanted is not None:
                fits &= column == wanted
        first, last = min(from_ns, to_ns), max(from_ns, to_ns)
        fits &= (edges.src_ns <= last) & (edges.dst_ns >= first)
        found = np.flatnonzero(fits)
        if not len(found):
            return None
        covered = np.minimum(edges.dst_ns[found], last) - np.maximum(edges.src_ns[found], first)
        apart = np.abs(edges.src_ns[found] - first) + np.abs(edges.dst_ns[found] - last)
        return int(found[np.lexsort((apart, -covered))[0]])

    def most_critical(self, dimension: str, group: int, peer: int | None = None) -> int | None:
        """The edge of an activity type, worker, operator or channel with the highest CP; of several the longest.

        A worker's and an operator's are activities, a channel's the messages from ``group`` to ``peer``, a pair's
        those both ways.
        """
        edges = self.edges
        other = -1 if peer is None else peer
        local = edges.src == edges.dst
        there = ~local & (edges.src == group) & (edges.dst == other)
        back = ~local & (edges.src == other) & (edges.dst == group)
        fits = {
            "activity": edges.type == group,
            "worker": local & (edges.src == group),
            "operator": local & (edges.operator == group),
            "channel": there,
            "pair": there | back,
        }[dimension]
        found = np.flatnonzero(fits)
        if not len(found):
            return None
        length = edges.dst_ns[found] - edges.src_ns[found]
        return int(found[np.lexsort((-length, -edges.cp[found]))[0]])


def index(edges: WindowEdges) -> EdgeIndex:
    """Order the edges, once a window."""
    is_local = edges.src == edges.dst
    local, messages = np.flatnonzero(is_local), np.flatnonzero(~is_local)
    local = local[np.lexsort((edges.src_ns[local], edges.src[local]))]
    messages = messages[np.argsort(edges.src_ns[messages], kind="stable")]
    workers = np.union1d(edges.src, edges.dst).astype(np.int64)
    cp = np.zeros(len(workers))
    np.add.at(cp, np.searchsorted(workers, edges.src[local]), edges.cp[local])
    path = np.flatnonzero(edges.on_path)
    path = path[np.lexsort((edges.dst_ns[path], edges.src_ns[path]))]
    touched = np.isin(workers, np.concatenate([edges.src[path], edges.dst[path]]))
    longest_ns = int((edges.dst_ns[messages] - edges.src_ns[messages]).max(initial=0))
    first = np.searchsorted(edges.src[local], np.append(workers, np.iinfo(np.int64).max))
    return EdgeIndex(
        edges, workers, cp, touched, path, local, first, edges.src_ns[local], edges.dst_ns[local], messages,
        edges.src_ns[messages], longest_ns,
    )  # fmt: skip
