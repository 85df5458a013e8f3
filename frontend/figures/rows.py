"""The rows of a timeline: workers grouped under their hosts, and which of them are shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.model.results import WindowEdges

MAX_LANES = 40


@dataclass(frozen=True, eq=False)
class Rows:
    """``place`` gives each shown worker its row; ``titles`` has the text of every row, hosts included."""

    place: dict[int, int]
    titles: list[str]
    left_out: str

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.titles)

    def shows(self, workers: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these workers have a row."""
        return np.isin(workers, list(self.place))


def arrange(
    edges: WindowEdges, names: dict[int, str], hosts: dict[int, str], everybody: bool, name_length: int = 19
) -> Rows:
    """Rows for the workers of the edges. Unless ``everybody``, at most forty: first those of the critical path."""
    workers = np.union1d(edges.src, edges.dst)
    left_out = ""
    if len(workers) > MAX_LANES and not everybody:
        weight = np.zeros(int(workers.max()) + 1)
        np.add.at(weight, edges.src, edges.cp + 2.0 * edges.on_path)
        np.add.at(weight, edges.dst, 2.0 * edges.on_path)
        kept = workers[np.argsort(-weight[workers], kind="stable")[:MAX_LANES]]
        left_out = f"{len(workers) - len(kept)} of {len(workers)} workers, with the least CP, are not shown"
        workers = np.sort(kept)
    ordered = sorted(workers.tolist(), key=lambda worker: (hosts.get(worker, ""), worker))
    grouped = len({hosts.get(worker, "") for worker in ordered}) > 1
    place: dict[int, int] = {}
    titles: list[str] = []
    host = None
    for worker in ordered:
        here = hosts.get(worker, "")
        if grouped and here != host:
            titles.append(f"<b>{_short(here or 'host unknown', name_length)}</b>")
            host = here
        place[worker] = len(titles)
        titles.append(_short(names.get(worker, f"worker {worker}"), name_length))
    return Rows(place, titles, left_out)


def _short(name: str, length: int) -> str:
    half = length // 2
    return name if len(name) <= length else f"{name[:half]}…{name[-half:]}"
