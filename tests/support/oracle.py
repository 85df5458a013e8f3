"""Critical participation the slow way, from the definitions alone: the kernel is checked against this.

Written without a look at the kernel: times are cut into elementary intervals, events are listed one by one,
the graph is a networkx one, paths are enumerated or counted with whole numbers, shares are fractions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

import networkx as nx

UNKNOWN, WAITING = 11, 12
Row = tuple[int, int, int, int, int, int]  # type, worker, peer, operator, start, end
Vertex = tuple[int, int]  # worker, time


@dataclass(frozen=True)
class Edge:
    """An edge of the program activity graph; ``local`` is false for messages."""

    src: Vertex
    dst: Vertex
    type: int
    operator: int
    local: bool

    @property
    def weight(self) -> int:
        return self.dst[1] - self.src[1]


@dataclass
class Answer:
    """What a window comes to. Groups are keyed as in WindowSummary."""

    status: str = "ok"
    paths: int = 0
    edges: list[Edge] = field(default_factory=list)
    shares: list[Fraction] = field(default_factory=list)
    length: int = 0

    def cp(self, key, edges=None):
        """CP added up by ``key(edge)``; None is left out."""
        sums = defaultdict(Fraction)
        for edge, share in zip(self.edges, self.shares, strict=True):
            if key(edge) is not None:
                sums[key(edge)] += share * edge.weight / self.length
        return dict(sums)

    def conventional(self, key):
        """Durations over the window's length, added up by ``key(edge)``."""
        sums = defaultdict(Fraction)
        for edge in self.edges:
            if key(edge) is not None:
                sums[key(edge)] += Fraction(edge.weight, self.length)
        return dict(sums)


def is_message(row: Row) -> bool:
    return row[2] >= 0


def timeline(worker: int, rows: list[Row], life: tuple[int, int] | None, horizon: float) -> list[Edge]:
    """All local edges of one worker, uncut: activities flattened, gaps classified, life extended."""
    activities = [r for r in rows if not is_message(r) and r[1] == worker]
    events = defaultdict(list)  # time -> [(order, what)], as they happen within that moment
    for r in activities:
        if r[4] == r[5]:
            events[r[4]] += [(3, "start"), (4, "end")]
        else:
            events[r[4]].append((3, "start"))
            events[r[5]].append((0, "end"))
    for r in rows:
        if is_message(r) and r[1] == worker:
            events[r[4]].append((2, "sent"))
        if is_message(r) and r[2] == worker:
            events[r[5]].append((1, "received"))
    times = set(events)
    if life is not None and life[0] <= life[1]:
        times |= {min([life[0], *events]), max([life[1], *events])}
    ordered = sorted(times)
    edges = []
    for a, b in pairwise(ordered):
        covering = [r for r in activities if r[4] <= a and b <= r[5]]
        if covering:
            r = min(covering, key=lambda r: (r[5], -r[4], r[3], r[0]))
            edges.append(Edge((worker, a), (worker, b), r[0], r[3], True))
            continue
        after = max(events[a])[1] if a in events else "birth"
        before = min(events[b])[1] if b in events else "death"
        waits = before == "received" and after in ("end", "sent") and b - a <= horizon
        edges.append(Edge((worker, a), (worker, b), WAITING if waits else UNKNOWN, -1, True))
    return edges


def clip(edge: Edge, ts: int, te: int) -> Edge | None:
    """The projection of an edge on a window, or None if it has none."""
    a, b = max(edge.src[1], ts), min(edge.dst[1], te)
    if edge.weight == 0:
        keep = not edge.local and ts <= a == edge.src[1] <= te and edge.src[0] != edge.dst[0]
    else:
        keep = a < b
    return Edge((edge.src[0], a), (edge.dst[0], b), edge.type, edge.operator, edge.local) if keep else None


def project(rows, lives, ts: int, te: int, horizon: float = float("inf")) -> tuple[list[Edge], bool]:
    """All edges of a window, and whether a message in it was received before it was sent."""
    edges, skewed = [], False
    for worker, life in enumerate(lives):
        edges += timeline(worker, rows, life, horizon)
    for kind, src, peer, operator, sent, received in filter(is_message, rows):
        if received < sent:
            skewed |= received < te and sent > ts
        else:
            edges.append(Edge((src, sent), (peer, received), kind, operator, False))
    clipped = [clip(edge, ts, te) for edge in edges]
    return [edge for edge in clipped if edge is not None], skewed


def passable_graph(edges: list[Edge]) -> nx.MultiDiGraph:
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(v for e in edges for v in (e.src, e.dst))
    for i, e in enumerate(edges):
        if e.type != WAITING:
            graph.add_edge(e.src, e.dst, key=i)
    return graph


def count_exactly(graph: nx.MultiDiGraph, size: int, ts: int, te: int) -> tuple[int, list[int]]:
    """N and c of every edge, by whole-number forward and backward counting."""
    forward = {v: int(v[1] == ts) for v in graph}
    backward = {v: int(v[1] == te) for v in graph}
    order = list(nx.topological_sort(graph))
    for v in order:
        for u, _, _ in graph.in_edges(v, keys=True):
            forward[v] += forward[u]
    for v in reversed(order):
        for _, x, _ in graph.out_edges(v, keys=True):
            backward[v] += backward[x]
    counts = [0] * size
    for u, v, i in graph.edges(keys=True):
        counts[i] = forward[u] * backward[v]
    total = sum(f for v, f in forward.items() if v[1] == te)
    assert total == sum(b for v, b in backward.items() if v[1] == ts)
    return total, counts


def enumerate_paths(graph: nx.MultiDiGraph, size: int, ts: int, te: int) -> tuple[int, list[int]]:
    """N and c of every edge, by walking every path from the window's start to its end."""
    total, counts = 0, [0] * size
    ends = {v for v in graph if v[1] == te}
    for start in (v for v in graph if v[1] == ts):
        for end in ends:
            for path in nx.all_simple_edge_paths(graph, start, end):
                total += 1
                for _, _, i in path:
                    counts[i] += 1
    return total, counts


def solve(rows, lives, ts: int, te: int, *, horizon: float = float("inf"), walk: bool = False) -> Answer:
    """The answer for the window from ``ts`` to ``te``; ``walk`` enumerates paths instead of counting them."""
    edges, skewed = project(rows, lives, ts, te, horizon)
    answer = Answer(edges=edges, shares=[Fraction(0)] * len(edges), length=te - ts)
    graph = passable_graph(edges)
    everything = nx.MultiDiGraph([(e.src, e.dst) for e in edges])
    if skewed:
        answer.status = "clock_skew"
    elif not nx.is_directed_acyclic_graph(everything):
        answer.status = "cycle"
    else:
        count = enumerate_paths if walk else count_exactly
        answer.paths, counts = count(graph, len(edges), ts, te)
        if answer.paths == 0:
            answer.status = "no_critical_path"
        else:
            answer.shares = [Fraction(c, answer.paths) for c in counts]
            assert sum(answer.cp(lambda e: 0).values()) == 1
    return answer
