"""Activities and messages as columns: what decoders give, segments store and analyses take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from analytics.model.diagnostics import Diagnostic
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.rates import RateWindow
from analytics.model.topology import Topology

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt8 = NDArray[np.uint8]

NONE = -1
"""No peer, no operator."""


@dataclass(frozen=True, eq=False)
class Records:
    """Intervals, one an index, in any order. All arrays have one length.

    An activity has ``peer == NONE``: ``worker`` did ``type`` from ``start_ns`` to ``end_ns``. A message has
    a message type and a peer: ``worker`` sent it at ``start_ns``, ``peer`` received it at ``end_ns`` (by
    clocks that may disagree, so ``end_ns < start_ns`` is possible). ``operator`` may be ``NONE``.
    Times are nanoseconds since the Unix epoch.
    """

    type: UInt8
    worker: Int32
    peer: Int32
    operator: Int32
    start_ns: Int64
    end_ns: Int64

    def __len__(self) -> int:
        return len(self.type)

    def take(self, selection: NDArray[np.intp] | NDArray[np.bool_]) -> Records:
        """The records at these positions, or where this mask is true."""
        return Records(*(getattr(self, item.name)[selection] for item in fields(self)))

    @staticmethod
    def of(rows: Sequence[tuple[int, int, int, int, int, int]]) -> Records:
        """Build from ``(type, worker, peer, operator, start_ns, end_ns)`` tuples."""
        columns: Sequence[Sequence[int]] = list(zip(*rows, strict=True)) if rows else [()] * 6
        return Records(
            np.array(columns[0], np.uint8),
            np.array(columns[1], np.int32),
            np.array(columns[2], np.int32),
            np.array(columns[3], np.int32),
            np.array(columns[4], np.int64),
            np.array(columns[5], np.int64),
        )

    @staticmethod
    def concat(parts: Sequence[Records]) -> Records:
        """All records of the parts, in their order."""
        if not parts:
            return Records.of([])
        return Records(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Records)))


@dataclass(frozen=True, slots=True)
class HalfMessage:
    """One end of a message whose other end is reported elsewhere, matched later by ``correlation``.

    ``worker`` is where it was seen; ``peer`` the other end, or ``NONE`` when the source does not know it.
    """

    type: int
    received: bool
    worker: int
    peer: int
    at_ns: int
    correlation: str


@dataclass(frozen=True, slots=True)
class Worker:
    """A timeline (thread, slot, executor core): its name, its host ("" if unknown) and its life.

    ``alive_from_ns`` / ``alive_until_ns`` are None when the source did not report that it was added or
    removed: it then lives from the job's first to the job's last record.
    """

    name: str
    host: str = ""
    alive_from_ns: int | None = None
    alive_until_ns: int | None = None


@dataclass(frozen=True, eq=False)
class TraceBatch:
    """What one decoder call understood.

    ``records.worker``, ``.peer`` and ``.operator`` and those of ``halves`` are positions in ``workers`` and
    ``operators``; they mean something only inside this batch, until the store gives job-wide numbers. ``rates`` are
    what operators did in windows, with the graph as it was then, from sources that tell rates and no activities.
    """

    records: Records
    halves: tuple[HalfMessage, ...] = ()
    workers: tuple[Worker, ...] = ()
    operators: tuple[str, ...] = ()
    metrics: tuple[MetricSample, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    rates: tuple[tuple[Topology, RateWindow], ...] = ()
    diagnostics: tuple[Diagnostic, ...] = field(default=())
