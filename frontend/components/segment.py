"""The panel beside a timeline: the selected segment, or the critical path as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from dash import html

from analytics.model.activity import ActivityType
from analytics.model.results import WindowEdges
from frontend import words
from frontend.components.facts import link
from frontend.state import View


def path(edges: WindowEdges) -> list[Any]:
    """What the representative critical path consists of."""
    on_path = np.flatnonzero(edges.on_path)
    if not len(on_path):
        return [html.H2("No critical path"), html.P("No path leads from the window's start to its end.")]
    lengths = edges.dst_ns[on_path] - edges.src_ns[on_path]
    whole = max(1, int(lengths.sum()))
    kinds = sorted(
        (
            (int(lengths[edges.type[on_path] == code].sum()), int(code))
            for code in np.unique(edges.type[on_path])
        ),
        reverse=True,
    )
    items = [
        html.Li(
            [
                html.I(className=f"swatch {ActivityType(code).label}"),
                f"{words.activity(code)}: {words.duration(length)}, {words.percent(length / whole)}",
            ]
        )
        for length, code in kinds
    ]
    return [
        html.H2(f"Critical path: {words.count(len(on_path), 'segment')}"),
        html.P("One path that most critical paths share, by time spent in:"),
        html.Ul(items, className="parts"),
        html.P("Choose a segment in the chart, or step through with the buttons (n, p).", className="muted"),
    ]


def details(
    edges: WindowEdges, chosen: int, names: dict[int, str], hosts: dict[int, str], operators: dict[int, str],
    start_ns: int, view: View,
) -> list[Any]:  # fmt: skip
    """Everything known about one segment."""
    kind = ActivityType(int(edges.type[chosen]))
    first_ns, last_ns = int(edges.src_ns[chosen]), int(edges.dst_ns[chosen])
    sender, receiver = int(edges.src[chosen]), int(edges.dst[chosen])
    rows = [
        ("Operator", operators.get(int(edges.operator[chosen]), "none")),
        *_who(sender, receiver, names, hosts),
        ("Duration", words.duration(last_ns - first_ns)),
        ("From", f"{_offset(first_ns - start_ns)}, at {view.time(first_ns):%H:%M:%S.%f} {view.zone_label}"),
        ("To", f"{_offset(last_ns - start_ns)}"),
        ("CP", f"{words.percent(float(edges.cp[chosen]))} of all critical paths × time"),
        ("Paths", f"{words.percent(float(edges.share[chosen]))} of all paths use it"),
        ("Critical path", _place(edges, chosen)),
    ]
    note = []
    if kind == ActivityType.WAITING:
        note = [
            html.P(
                "Waiting never is critical: what ended the wait is, the message that arrives here.",
                className="muted",
            ),
            html.P(_why(names.get(sender, ""), first_ns, start_ns)),
        ]
    elif kind != ActivityType.UNKNOWN:
        note = [html.P(_what_if(kind, operators.get(int(edges.operator[chosen]), ""), start_ns))]
    return [
        html.H2([html.I(className=f"swatch {kind.label}"), words.activity(kind).capitalize()]),
        html.Dl([part for term, text in rows for part in (html.Dt(term), html.Dd(text))]),
        *note,
    ]


def _why(worker: str, at_ns: int, start_ns: int) -> Any:
    asked = {"tab": "why", "worker": worker, "at": str(at_ns), "window": str(start_ns)}
    return link("Why did it wait?", asked, "What this wait waited for, hop by hop")


def _what_if(kind: ActivityType, operator: str, start_ns: int) -> Any:
    own = kind != ActivityType.SCHEDULING and "message" not in kind.label
    target = f"operator:{operator}" if operator and own else f"activity:{kind.label}"
    asked = {"tab": "what-if", "target": target, "window": str(start_ns), "segment": None}
    return link("What if it were faster?", asked, "What it would save, and this window's critical path then")


def _who(sender: int, receiver: int, names: dict[int, str], hosts: dict[int, str]) -> list[tuple[str, str]]:
    def full(worker: int) -> str:
        host = hosts.get(worker, "")
        name = names.get(worker, f"worker {worker}")
        return f"{name} on {host}" if host else name

    if sender == receiver:
        return [("Worker", full(sender))]
    return [("Sender", full(sender)), ("Receiver", full(receiver))]


def _offset(ns: int) -> str:
    return f"{ns / 1e6:.3f} ms"


def _place(edges: WindowEdges, chosen: int) -> str:
    if not edges.on_path[chosen]:
        return "not on it"
    critical = np.flatnonzero(edges.on_path)
    before = (edges.src_ns[critical] < edges.src_ns[chosen]).sum()
    return f"segment {before + 1} of {len(critical)}"
