"""What if: one window's critical path as it is and as it would be, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import html

from analytics.model.answers import PathStep, WhatIfPaths
from analytics.model.results import WindowStatus
from frontend import place, words
from frontend.components.facts import Cell, table, to_segment, to_window
from frontend.figures import bars, paths
from frontend.pages.questions import targets
from frontend.pages.questions.asking import Drawn, Request

LISTED = 200
TOLD = 3


def drawn(answer: WhatIfPaths, request: Request) -> Drawn:
    """The panel of one window."""
    window = answer.window
    start_ns = request.window_of(window.start_ns)
    at = request.clock(window.start_ns)

    def name(step: PathStep) -> str:
        return request.work(step.type, step.operator, step.src)

    def lead(step: PathStep) -> Mapping[str, str | None]:
        return {"tab": "timeline", "window": str(start_ns), "segment": _place(step), "zoom": None}

    figure = paths.figure(answer, name, lead, request.colours, request.narrow)
    if window.status is not WindowStatus.OK:
        none = html.P(f"The window has no critical path: {words.status(window.status)}.", className="muted")
        return Drawn(
            none, f"window of {at}", figure, bars.height(2), f"The window of {at} has no critical path."
        )
    length = words.duration(window.end_ns - window.start_ns)
    by = f"{targets.name(answer.target, request)} at {targets.times(answer.factor)}"
    done = (
        f"{words.duration(window.saved_ns)} of {length} saved"
        if window.saved_ns
        else f"nothing of {length} saved"
    )
    under = f"window of {at} {request.view.zone_label}: {done} by {by} · click: the segment in its timeline"
    told = [
        f"{row}, {_mostly(steps, name)}"
        for row, steps in ((paths.NOW, answer.now), (paths.THEN, window.path))
    ]
    spoken = f"How would the critical path of the window of {at} change? {'; '.join(told)}; {done}."
    return Drawn(_listed(answer, request, start_ns), under, figure, paths.HEIGHT_PX, spoken)


def _place(step: PathStep) -> str:
    peer = step.dst if step.dst != step.src else -1
    return place.at(step.src, peer, step.operator, step.was_src_ns, step.was_dst_ns)


def _mostly(steps: tuple[PathStep, ...], name: Any) -> str:
    sums: dict[str, int] = {}
    for step in steps:
        sums[name(step)] = sums.get(name(step), 0) + step.dst_ns - step.src_ns
    longest = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:TOLD]
    return words.series([f"{what} {words.duration(ns)}" for what, ns in longest if ns]) or "nothing"


def _listed(answer: WhatIfPaths, request: Request, start_ns: int) -> Any:
    window = answer.window
    sides = ((paths.NOW, answer.now, answer.now_left_out), (paths.THEN, window.path, window.steps_left_out))
    rows = [_row(row, step, request, start_ns) for row, steps, _ in sides for step in steps[-LISTED:]]
    more = [
        f"{left_out + max(len(steps) - LISTED, 0):,} earlier steps of the path {row} are not listed."
        for row, steps, left_out in sides
        if left_out + len(steps) > LISTED
    ]
    here = to_window(f"timeline of {request.clock(window.start_ns)}", start_ns)
    columns = ("Step", "Path", "From, ms", "To, ms", "Takes", "Took")
    return [
        html.P([here, *[f" · {text}" for text in more]], className="muted"),
        table("Critical path as it is and then", columns, rows, wordy=(0, 1)),
    ]


def _row(row: str, step: PathStep, request: Request, start_ns: int) -> list[Cell]:
    what = request.work(step.type, step.operator, step.src)
    to = f" to {request.worker(step.dst)}" if step.dst != step.src else ""
    takes, took = step.dst_ns - step.src_ns, step.was_dst_ns - step.was_src_ns
    return [
        Cell(to_segment(f"{what}{to}", start_ns, _place(step)), f"{what}{to}"),
        Cell(row),
        Cell(f"{(step.src_ns - start_ns) / 1e6:,.3f}", f"{step.src_ns} ns"),
        Cell(f"{(step.dst_ns - start_ns) / 1e6:,.3f}", f"{step.dst_ns} ns"),
        Cell(words.duration(takes) if takes else "0 s", f"{takes} ns", takes != took),
        Cell(words.duration(took) if took else "0 s", f"{took} ns"),
    ]
