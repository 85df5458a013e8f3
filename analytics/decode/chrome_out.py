"""Windows as a Chrome trace that Perfetto and chrome://tracing open: the way back of ``chrome_trace``.

One thread a worker, an ``X`` event a local edge, a flow ``s``/``f`` a message; ``args`` has the critical
participation and the share of paths. A thread of its own shows the representative critical path from left to
right. Times are relative to ``baseTimeNanoseconds``, for viewers read them as floats, which have no room for
nanoseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from analytics.decode.chrome_parts import PATH_CATEGORY
from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from analytics.model.trace import NONE

_PATH_PROCESS, _WORKERS_PROCESS = 1, 2


def chrome_trace(
    windows: Iterable[WindowEdges], workers: Sequence[str], operators: Sequence[str]
) -> Iterator[bytes]:
    """The file in pieces, at most one window in memory at a time.

    Parameters
    ----------
    windows
        Edges of each window, in time order; their ``src``, ``dst`` and ``operator`` are positions in the names.
    workers, operators
        Names by position.
    """
    base_ns: int | None = None
    flow = 0
    yield b'{"displayTimeUnit":"ns","traceEvents":[\n'
    yield b",\n".join(_names(workers))
    for edges in windows:
        if not len(edges.src):
            continue
        if base_ns is None:
            base_ns = int(min(edges.src_ns.min(), edges.dst_ns.min()))
        for event in _events(edges, operators, workers, base_ns, flow):
            yield b",\n" + orjson.dumps(event)
        flow += len(edges.src)
    yield b'\n],"baseTimeNanoseconds":%d}\n' % (base_ns or 0)


def _names(workers: Sequence[str]) -> Iterator[bytes]:
    yield _name(_PATH_PROCESS, 0, "process_name", "Critical path")
    yield _name(_PATH_PROCESS, 1, "thread_name", "critical path")
    yield _name(_WORKERS_PROCESS, 0, "process_name", "Workers")
    for at, worker in enumerate(workers):
        yield _name(_WORKERS_PROCESS, at, "thread_name", worker)


def _name(process: int, thread: int, kind: str, name: str) -> bytes:
    return orjson.dumps({"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}})


def _events(
    edges: WindowEdges, operators: Sequence[str], workers: Sequence[str], base_ns: int, flow: int
) -> Iterator[dict[str, Any]]:
    columns = (edges.src, edges.src_ns, edges.dst, edges.dst_ns, edges.type, edges.operator)
    values = (edges.cp, edges.share, edges.on_path)
    rows = zip(*(column.tolist() for column in (*columns, *values)), strict=True)
    for number, (src, src_ns, dst, dst_ns, code, operator, cp, share, on_path) in enumerate(rows, start=flow):
        kind = ActivityType(code)
        known = None if operator == NONE else operators[operator]
        start, length = src_ns - base_ns, dst_ns - src_ns
        event = {
            "name": kind.label if kind.is_message else known or kind.label,
            "cat": kind.label,
            "pid": _WORKERS_PROCESS,
            "args": {"operator": known, "cp": cp, "paths_share": share, "on_path": on_path},
        }
        if kind.is_message:
            yield {**event, "ph": "s", "id": number, "tid": src, "ts": _microseconds(start)}
            yield {
                **event,
                "ph": "f",
                "bp": "e",
                "id": number,
                "tid": dst,
                "ts": _microseconds(start + length),
            }
        else:
            yield {**event, "ph": "X", "tid": src, "ts": _microseconds(start), "dur": _microseconds(length)}
        if on_path and length >= 0:
            where = f"{workers[src]} → {workers[dst]}" if src != dst else workers[src]
            yield {
                "name": f"{where}: {known or kind.label}",
                "cat": PATH_CATEGORY,
                "ph": "X",
                "pid": _PATH_PROCESS,
                "tid": 1,
                "ts": _microseconds(start),
                "dur": _microseconds(length),
                "args": {"type": kind.label, "cp": cp},
            }


def _microseconds(ns: int) -> orjson.Fragment:
    """Exactly, whatever a float would hold."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return orjson.Fragment(f"{sign}{ns // 1000}.{ns % 1000:03d}".encode())
