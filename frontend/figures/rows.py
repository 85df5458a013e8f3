"""The rows of a timeline: which workers are shown, in what order, under which hosts, and which are not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from frontend import words
from webapp.analysis.edge_index import EdgeIndex

MAX_LANES = 40
MAX_THIN_LANES = 400


@dataclass(frozen=True, slots=True)
class Choice:
    """Which lanes a reader wants.

    ``by_cp`` sorts by CP instead of by host and number, ``find`` is part of a worker's or host's name, and without
    ``everybody`` at most forty are shown. ``needed`` are shown in any case.
    """

    by_cp: bool = False
    find: str = ""
    critical_only: bool = False
    everybody: bool = False
    needed: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """``workers[i]`` is on row ``places[i]``; ``titles`` has the text of every row, hosts included.

    ``weights`` says how much each title matters when there is no room for all. ``hidden`` is how many workers
    are not shown, ``left_out`` says it with their CP.
    """

    workers: NDArray[np.int64]
    places: NDArray[np.int64]
    titles: list[str]
    weights: list[float]
    hidden: int
    left_out: str

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.titles)

    def shows(self, workers: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these workers have a row."""
        return self.of(workers) >= 0

    def of(self, workers: NDArray[Any]) -> NDArray[np.int64]:
        """The row of each of these workers, -1 for one that is not shown."""
        size = 1 + max(int(self.workers.max(initial=0)), int(workers.max(initial=0)))
        row: NDArray[np.int64] = np.full(size, -1, np.int64)
        row[self.workers] = self.places
        places: NDArray[np.int64] = row[workers]
        return places


def arrange(
    index: EdgeIndex, names: dict[int, str], hosts: dict[int, str], choice: Choice, name_length: int = 24
) -> Rows:
    """Rows for the workers of a window; if there are too many, first those of the critical path, then by CP."""
    workers, cp = index.workers, index.worker_cp
    needed = np.isin(workers, choice.needed)
    wanted = np.array([_matches(w, names, hosts, choice.find) for w in workers.tolist()], np.bool_)
    if choice.critical_only:
        wanted &= index.worker_critical
    rank = np.lexsort((workers, -cp, ~index.worker_critical, ~needed, ~(wanted | needed)))
    room = MAX_THIN_LANES if choice.everybody else MAX_LANES
    kept = rank[: min(room, int((wanted | needed).sum()))]
    kept_mask = np.isin(np.arange(len(workers)), kept)
    share = {int(w): float(c) for w, c in zip(workers[kept], cp[kept], strict=True)}
    hidden = int((~kept_mask).sum())
    left_out = ""
    if hidden:
        together = words.percent(float(cp[~kept_mask].sum()))
        of_all = words.count(len(workers), "worker")
        left_out = f"{hidden:,} of {of_all} not shown, with {together} of CP together"
    if choice.by_cp:
        order = sorted(share, key=lambda w: (-share[w], w))
    else:
        order = sorted(share, key=lambda w: (_natural(hosts.get(w, "")), w))
    grouped = not choice.by_cp and len({hosts.get(w, "") for w in order}) > 1
    return _rows(order, share, names, hosts, grouped, name_length, hidden, left_out)


def _rows(
    order: list[int], share: dict[int, float], names: dict[int, str], hosts: dict[int, str], grouped: bool,
    name_length: int, hidden: int, left_out: str,
) -> Rows:  # fmt: skip
    places: list[int] = []
    titles: list[str] = []
    weights: list[float] = []
    host = None
    for worker in order:
        here = hosts.get(worker, "")
        if grouped and here != host:
            titles.append(f"<b>{_short(here or 'host unknown', name_length)}</b>")
            weights.append(2.0)
            host = here
        places.append(len(titles))
        percent = f" · {words.percent(share[worker])}" if share[worker] >= 0.0005 and name_length > 16 else ""
        titles.append(f"{_short(names.get(worker, f'worker {worker}'), name_length - len(percent))}{percent}")
        weights.append(share[worker])
    ids, rows = np.array(order, np.int64), np.array(places, np.int64)
    return Rows(ids, rows, titles, weights, hidden, left_out)


def _matches(worker: int, names: dict[int, str], hosts: dict[int, str], find: str) -> bool:
    if not find:
        return True
    return find.lower() in f"{names.get(worker, f'worker {worker}')} {hosts.get(worker, '')}".lower()


def _natural(name: str) -> list[tuple[int, str]]:
    """host-2 comes before host-10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]


def _short(name: str, length: int) -> str:
    half = length // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
