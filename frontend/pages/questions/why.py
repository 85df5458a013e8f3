"""Why was it waiting? The chain of what waits waited for: of one wait, of a worker, or of all in the range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from dash import html

from analytics.model.answers import Answer, WhyAnswer, WhyGroup
from frontend import place, words
from frontend.asked import DEFAULT_HOPS, about_range, about_window
from frontend.components.facts import Cell, choice, link, select, table, to_segment, to_window
from frontend.figures import bars, hops
from frontend.pages.questions.asking import Drawn, Page, Request, Tab
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import Asked

LISTED = 200
HOPS = (5, 10, 20)
WEIGH = {
    "during": ("Time while waiting", "time of the chain within the waits themselves"),
    "duration": ("Duration", "how long it took, also before the wait began"),
    "count": ("Count", "number of (wait, activity or message) pairs"),
}
VALUE: dict[str, Callable[[WhyGroup], int]] = {
    "during": lambda group: group.during_ns,
    "duration": lambda group: group.duration_ns,
    "count": lambda group: group.count,
}


def ask(request: Request) -> Sequence[Asked] | str:
    """About one wait, one window or the page's range, and about one worker or all."""
    wish = request.wish
    number = next((n for n, name in request.workers.items() if name == wish.worker), None)
    if wish.worker and number is None:
        return f"This job has no worker “{wish.worker}”."
    chosen = {"hops": wish.hops} if number is None else {"hops": wish.hops, "worker": number}
    if number is not None and wish.at_ns is not None:
        return [Asked(QuestionKind.WHY, {**chosen, "at_ns": wish.at_ns}, at_ns=wish.at_ns)]
    if wish.window_ns is not None:
        return [about_window(QuestionKind.WHY, request.window_of(wish.window_ns), **chosen)]
    return [about_range(QuestionKind.WHY, request.view, request.now_ns, **chosen)]


def draw(request: Request, answers: Sequence[Answer | None]) -> Page:
    """The sentence and the chain."""
    answer = answers[0] if answers else None
    controls = _controls(request)
    if not isinstance(answer, WhyAnswer):
        return Page(controls=controls)
    return Page(sentence(answer, request), controls, {"chain": _chain(answer, request)}, _notes(answer))


def sentence(answer: WhyAnswer, request: Request) -> Any:
    """How long was waited, and for what most of all."""
    wish = request.wish
    who = wish.worker or ("The workers" if len(request.workers) > 1 else "The worker")
    if not answer.wait_count:
        at = f" at {request.clock(wish.at_ns)} {request.view.zone_label}" if wish.at_ns is not None else ""
        lost = answer.uncaused_count + answer.cut_count
        why = " that a recorded message ended" if lost else ""
        return [html.Strong(who), f" did not wait{at}{why}."]
    times = "" if wish.at_ns is not None else f" in {words.count(answer.wait_count, 'wait')}"
    first: list[Any] = [html.Strong(who), f" waited {words.duration(answer.wait_ns)}{times}"]
    top = sorted(answer.groups, key=lambda group: -group.during_ns)
    if not top or not top[0].during_ns:
        return [*first, "; nothing recorded went on meanwhile that led to its end."]
    share = words.percent(min(1.0, _by_work(answer)[0][1] / max(answer.wait_ns, 1)))
    name = _by_work(answer)[0][0]
    return [*first, ", most of all for ", html.Strong(request.work(*name)), f": {share} of that time."]


def _by_work(answer: WhyAnswer) -> list[tuple[tuple[int, int, int], int]]:
    """The time while waiting by (type, operator, worker), whatever the hop; most first."""
    sums: dict[tuple[int, int, int], int] = {}
    for group in answer.groups:
        key = group.type, group.operator, group.worker
        sums[key] = sums.get(key, 0) + group.during_ns
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def _chain(answer: WhyAnswer, request: Request) -> Drawn:
    weigh = request.wish.weigh
    value = VALUE[weigh]
    by_hop = {hop: list(found) for hop, found in groupby(answer.groups, lambda group: group.hop)}
    names = {id(group): request.work(group.type, group.operator, group.worker) for group in answer.groups}
    chart = hops.figure(
        by_hop, lambda group: names[id(group)], value, weigh == "count", request.colours, request.narrow
    )
    columns = ("What was waited for", "Hop", "While waiting", "Duration", "Count", "Longest")
    rows = [_row(group, request) for group in answer.groups[:LISTED]]
    more = len(answer.groups) - len(rows) + answer.groups_left_out
    listed = [
        table("What was waited for", columns, rows) if rows else html.P("Nothing.", className="muted"),
        *([html.P(f"and {more:,} smaller groups.", className="muted")] if more else []),
    ]
    under = f"{WEIGH[weigh][1]} · {'count' if weigh == 'count' else 'time'} by hop; hop 1 ended the wait"
    tops = [
        f"hop {hop}: {names[id(max(found, key=value))]}"
        for hop, found in by_hop.items()
        if any(map(value, found))
    ]
    spoken = f"What was waited for, hop by hop? Most of it at {words.series(tops) or 'no hop'}."
    return Drawn(listed, under, chart, bars.height(len(by_hop)) + 8 * len(by_hop), spoken)


def _row(group: WhyGroup, request: Request) -> list[Cell]:
    example = group.example
    last_ns = max(example.dst_ns - 1, example.src_ns)
    peer = example.dst if example.dst != example.src else -1
    segment = place.at(example.src, peer, group.operator, example.src_ns, example.dst_ns)
    longest = words.duration(example.dst_ns - example.src_ns) if example.dst_ns > example.src_ns else "0 s"
    return [
        Cell(request.work(group.type, group.operator, group.worker)),
        Cell(group.hop),
        Cell(_time(group.during_ns), f"{group.during_ns} ns", request.wish.weigh == "during"),
        Cell(_time(group.duration_ns), f"{group.duration_ns} ns", request.wish.weigh == "duration"),
        Cell(f"{group.count:,}", group.count, request.wish.weigh == "count"),
        Cell(
            [
                to_segment(request.clock(example.src_ns), request.window_of(last_ns), segment),
                f" {longest}",
            ],
            f"{example.src_ns} ns to {example.dst_ns} ns",
        ),
    ]


def _time(length_ns: int) -> str:
    return words.duration(length_ns) if length_ns else "0 s"


def _controls(request: Request) -> list[Any]:
    wish = request.wish
    names = sorted(request.workers.values())
    workers = [("", "all workers"), *((name, name) for name in names)]
    weighs = [
        (WEIGH[key][0], {"weigh": None if key == "during" else key}, key == wish.weigh) for key in WEIGH
    ]
    reach = sorted({*HOPS, wish.hops})
    far = [(str(n), {"hops": None if n == DEFAULT_HOPS else str(n)}, n == wish.hops) for n in reach]
    parts = [
        select("Waits of", "worker", [("", workers)], wish.worker),
        choice("Weighed by", weighs),
        choice("Hops", far),
    ]
    if wish.at_ns is not None and wish.worker:
        at = f"the wait at {request.clock(wish.at_ns)}"
        start = str(request.window_of(wish.at_ns))
        return [
            *parts,
            html.Span([f"Only {at} · ", to_window("show it", int(start)), " · "], className="muted"),
            link("all waits of this worker", {"at": None, "window": None}),
        ]
    if wish.window_ns is not None:
        start_ns = request.window_of(wish.window_ns)
        window = to_window(request.clock(start_ns), start_ns)
        here = html.Span(["Only the window of ", window, " · "], className="muted")
        return [*parts, here, link(f"all windows {request.view.span_words}", {"window": None})]
    return parts


def _notes(answer: WhyAnswer) -> list[Any]:
    told = []
    if answer.cut_count:
        told.append(
            f"{words.count(answer.cut_count, 'more wait')} ({words.duration(answer.cut_ns)}) went on after their"
            " window and count where they end."
        )
    if answer.uncaused_count:
        told.append(
            f"{words.count(answer.uncaused_count, 'more wait')} ({words.duration(answer.uncaused_ns)}) ended"
            " without a recorded message."
        )
    if answer.begun_before_count:
        told.append(
            f"Of {words.count(answer.begun_before_count, 'wait')} only the part inside its window counts."
        )
    if answer.stopped_at_hop:
        told.append(f"Hop {answer.stopped_at_hop} is too wide to follow.")
    meaning = html.A("How a chain is followed", href="/help/guide")
    return [html.P([" ".join(told), " " if told else "", meaning])]


TAB = Tab(
    key="why",
    label="Why",
    waiting="Following what the workers waited for …",
    panels={"chain": ("What was waited for, hop by hop?", True)},
    ask=ask,
    draw=draw,
)
