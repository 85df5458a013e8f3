"""What decoders share: building a batch from names, counting oddities, joining batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from analytics.model.diagnostics import Diagnostic, merge
from analytics.model.metrics import Annotation, MetricSample
from analytics.model.trace import NONE, HalfMessage, Int32, Records, TraceBatch, Worker

MAX_NAME_CHARS = 500
"""Length of the longest name of a worker or operator."""


def clean_name(name: str) -> str | None:
    """A name fit to store: cut to its limit, without NUL or half characters; None if nothing is left."""
    whole = name[:MAX_NAME_CHARS].encode("utf-8", "replace").decode()
    return whole.replace("\0", "?") or None


class Oddities:
    """Counts diagnostics by code and keeps the first example of each."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}

    def add(self, code: str, example: str, count: int = 1) -> None:
        """Count an oddity, or several of one kind."""
        seen, first = self._seen.get(code, (0, example))
        self._seen[code] = (seen + count, first)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything counted so far, sorted by code."""
        return tuple(Diagnostic(code, *self._seen[code]) for code in sorted(self._seen))


class BatchBuilder:
    """Collects records whose workers and operators are known by name, and numbers the names as they come."""

    def __init__(self) -> None:
        self.oddities = Oddities()
        self.halves: list[HalfMessage] = []
        self.metrics: list[MetricSample] = []
        self.annotations: list[Annotation] = []
        self._rows: list[tuple[int, int, int, int, int, int]] = []
        self._positions: dict[str, int] = {}
        self._workers: list[Worker] = []
        self._operators: dict[str, int] = {}

    def worker(self, worker: Worker | str) -> int:
        """Position of this worker; what is newly known about its host and life is kept."""
        new = Worker(worker) if isinstance(worker, str) else worker
        position = self._positions.setdefault(new.name, len(self._workers))
        if position == len(self._workers):
            self._workers.append(new)
        elif new != self._workers[position]:
            self._workers[position] = _told_more(self._workers[position], new)
        return position

    def operator(self, name: str | None) -> int:
        """Position of this operator, ``NONE`` for no operator."""
        return NONE if name is None else self._operators.setdefault(name, len(self._operators))

    def activity(self, kind: int, worker: int, operator: int, start_ns: int, end_ns: int) -> None:
        """Add an interval on one worker."""
        # a plain number: numpy takes ten times as long for a member of an enumeration
        self._rows.append((int(kind), worker, NONE, operator, start_ns, end_ns))

    def message(
        self, kind: int, sender: int, receiver: int, operator: int, sent_ns: int, received_ns: int
    ) -> None:
        """Add a message whose two ends are known."""
        self._rows.append((int(kind), sender, receiver, operator, sent_ns, received_ns))

    def build(self) -> TraceBatch:
        """Everything collected, as one batch."""
        return TraceBatch(
            records=Records.of(self._rows),
            halves=tuple(self.halves),
            workers=tuple(self._workers),
            operators=tuple(self._operators),
            metrics=tuple(self.metrics),
            annotations=tuple(self.annotations),
            diagnostics=self.oddities.diagnostics(),
        )


def merge_batches(batches: Sequence[TraceBatch]) -> TraceBatch:
    """One batch with the content of all, in their order; a name used by several is one worker or operator."""
    names = BatchBuilder()
    records: list[Records] = []
    halves: list[HalfMessage] = []
    for batch in batches:
        workers = _lookup([names.worker(worker) for worker in batch.workers])
        operators = _lookup([names.operator(operator) for operator in batch.operators])
        part = batch.records
        records.append(
            replace(
                part,
                worker=workers[part.worker],
                peer=workers[part.peer],
                operator=operators[part.operator],
            )
        )
        halves += [
            replace(half, worker=int(workers[half.worker]), peer=int(workers[half.peer]))
            for half in batch.halves
        ]
    return replace(
        names.build(),
        records=Records.concat(records),
        halves=tuple(halves),
        metrics=tuple(sample for batch in batches for sample in batch.metrics),
        annotations=tuple(item for batch in batches for item in batch.annotations),
        diagnostics=merge(item for batch in batches for item in batch.diagnostics),
    )


def _lookup(positions: list[int]) -> Int32:
    """Old position to new; NONE, being -1, reads the last entry, which stays NONE."""
    return np.array([*positions, NONE], np.int32)


def _told_more(known: Worker, new: Worker) -> Worker:
    return Worker(
        known.name,
        new.host or known.host,
        known.alive_from_ns if new.alive_from_ns is None else new.alive_from_ns,
        known.alive_until_ns if new.alive_until_ns is None else new.alive_until_ns,
    )
