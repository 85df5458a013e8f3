"""What if it were faster? What is worth optimising, and what one change would save in each window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from analytics.model.answers import (
    Answer,
    PathPart,
    Target,
    TargetKind,
    WhatIfAnswer,
    WhatIfPaths,
    WhatIfRanking,
    WhatIfRow,
    WhatIfWindow,
)
from analytics.model.results import WindowStatus
from frontend import words
from frontend.asked import NO_FACTOR, about_range, about_window
from frontend.components.facts import Cell, choice, link, select, table, to_window
from frontend.figures import bars, marks, savings
from frontend.pages.questions import paths, targets
from frontend.pages.questions.asking import Drawn, Page, Request, Tab
from webapp.analysis import questions
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import Asked
from webapp.reconfigurations.standing import applied_changes

DRAWN_ROWS = 10
LISTED_ROWS = 100
LISTED_WINDOWS = 60
PARTS = 8
GROUPS = (
    (TargetKind.OPERATOR, "Operators"),
    (TargetKind.WORKER, "Workers"),
    (TargetKind.ACTIVITY, "Activity types"),
)
WRONG_FACTOR = "How many times faster is a number of at least 1, or ∞."
NO_TARGET = "This job has no operator, worker or activity type of the name “{}” that could be made faster."


def ask(request: Request) -> Sequence[Asked] | str:
    """The ranking and, for what is chosen or else first in it, the windows one by one and the paths of one."""
    if request.wish.factor == NO_FACTOR:
        return WRONG_FACTOR
    ranking = about_range(QuestionKind.RANKING, request.view, request.now_ns)
    if request.wish.target:
        target = targets.read(request.wish.target, request)
        if target is None:
            return NO_TARGET.format(request.wish.target)
    else:
        target = _first(questions.answer_of(questions.ask(request.job, ranking)))
    if target is None:
        return [ranking]
    factor = request.wish.factor
    said = targets.factor_text(factor) if math.isinf(factor) else factor
    faster = {"target_kind": target.kind.value, "target": target.id, "factor": said}
    one = about_range(QuestionKind.WHAT_IF, request.view, request.now_ns, **faster)
    start_ns = _window(request, one)
    return [
        ranking,
        one,
        *([] if start_ns is None else [about_window(QuestionKind.WHAT_IF, start_ns, **faster)]),
    ]


def _window(request: Request, one: Asked) -> int | None:
    """The window whose paths are shown: that of the address if it has records, else one that has much to tell.

    That is, of those in which at least half as much would be saved as in the best, the one with the most different
    parts on its new path.
    """
    if request.wish.window_ns is not None:
        start_ns = request.window_of(request.wish.window_ns)
        if about_window(QuestionKind.WHAT_IF, start_ns).sides(request.job)[0].used:
            return start_ns
    answer = questions.answer_of(questions.ask(request.job, one))
    if not isinstance(answer, WhatIfAnswer):
        return None
    fine = [window for window in answer.windows if window.status is WindowStatus.OK]
    most_ns = max((window.saved_ns for window in fine), default=0)
    telling = [window for window in fine if 2 * window.saved_ns >= most_ns]
    chosen = max(
        telling, key=lambda window: (len(window.limits), window.saved_ns, window.start_ns), default=None
    )
    return None if chosen is None else request.window_of(chosen.start_ns)


def _first(answer: Answer | None) -> Target | None:
    return answer.rows[0].target if isinstance(answer, WhatIfRanking) and answer.rows else None


def draw(request: Request, answers: Sequence[Answer | None]) -> Page:
    """The sentence and, as far as they are known, the ranking and the windows."""
    ranking = answers[0] if answers else None
    one = answers[1] if len(answers) > 1 else None
    panels: dict[str, Drawn] = {}
    sentence: Any = ""
    if isinstance(ranking, WhatIfRanking):
        panels["rank"] = _ranking(ranking, one, request)
        if not ranking.rows:
            sentence = "Nothing can be told: none of these windows has a critical path."
            panels |= {part: _blank(part, request) for part in ("windows", "then", "paths")}
    if isinstance(one, WhatIfAnswer):
        sentence = said(one, request)
        panels["windows"], panels["then"] = _windows(one, request), _then(one, request)
        if not one.length_ns:
            panels["paths"] = _blank("paths", request)
    if len(answers) > 2 and isinstance(answers[2], WhatIfPaths):
        panels["paths"] = paths.drawn(answers[2], request)
    return Page(sentence, _controls(request, ranking, one), panels, _notes(one))


def said(answer: WhatIfAnswer, request: Request) -> Any:
    """What would be saved, in a sentence."""
    name = html.Strong(targets.name(answer.target, request))
    made: list[Any] = (
        ["Making ", name, f" {targets.times(answer.factor)} faster"]
        if not math.isinf(answer.factor)
        else ["If ", name, " took no time at all, that"]
    )
    if not answer.length_ns:
        return ["Nothing can be told about ", name, ": none of these windows has a critical path."]
    if not answer.saved_ns:
        return [
            *made,
            " would save ",
            html.Strong("nothing"),
            " in these windows: other work runs beside it to their ends.",
        ]
    share = words.percent(answer.saved_ns / answer.length_ns)
    spared = f"{words.duration(answer.saved_ns)} of {words.duration(answer.length_ns)}"
    return [*made, " would save ", html.Strong(share), f" of the time of these windows ({spared})."]


def _none(what: str) -> Any:
    return html.P(what, className="muted")


def _blank(part: str, request: Request) -> Drawn:
    blank = bars.figure([], [], request.colours, request.narrow)
    return Drawn(
        _none("No window has a critical path."),
        "nothing to show",
        blank,
        bars.height(2),
        f"{part}: nothing to show.",
    )


def _ranking(answer: WhatIfRanking, one: Answer | None, request: Request) -> Drawn:
    rows = answer.rows[:DRAWN_ROWS]
    names = [targets.full(row.target, request) for row in rows]
    chosen = one.target if isinstance(one, WhatIfAnswer) else None
    drawn = savings.ranking(
        rows, names, answer, chosen, _leads(rows, request), request.colours, request.narrow
    )
    at = answer.factors.index(2.0)
    others = [f"Saved at {targets.times(f)}, %" for f in answer.factors if f != 2.0]
    columns = ("What", "Saved at 2×, %", *others, "CP, %", "Saved at 2×")
    listed = [_listed(row, answer, at, request) for row in answer.rows[:LISTED_ROWS]]
    under = "share of the windows’ time saved · solid: 2×, pale: ∞×, line: 1.5×, frame: CP, the most there could be"
    if len(answer.rows) > DRAWN_ROWS:
        under += f" · the first {DRAWN_ROWS} of {len(answer.rows)}"
    if answer.windows_left_out:
        under += f" · {words.count(answer.windows_left_out, 'window')} without a critical path left out"
    best = [
        f"{name} {words.percent(row.saved_ns[at] / max(answer.length_ns, 1))}"
        for row, name in zip(rows[:6], names, strict=False)
    ]
    spoken = f"What is worth optimising? Saved at 2×: {words.series(best) or 'nothing'}."
    return Drawn(
        table("What is worth optimising", columns, listed), under, drawn, bars.height(len(rows)), spoken
    )


def _leads(rows: Sequence[WhatIfRow], request: Request) -> list[dict[str, str | None]]:
    return [{"target": targets.write(row.target, request)} for row in rows]


def _listed(row: WhatIfRow, answer: WhatIfRanking, at: int, request: Request) -> list[Cell]:
    length = max(answer.length_ns, 1)
    name = targets.full(row.target, request)
    ordered = [row.saved_ns[at], *(ns for i, ns in enumerate(row.saved_ns) if i != at)]
    saved = [Cell(_number(ns / length), ns / length, i == 0) for i, ns in enumerate(ordered)]
    return [
        Cell(
            link(name, {"target": targets.write(row.target, request)}, "What this would save in each window"),
            name,
        ),
        *saved,
        Cell(_number(row.cp), row.cp),
        Cell(_time(row.saved_ns[at]), f"{row.saved_ns[at]} ns"),
    ]


def _number(share: float) -> str:
    """A share in percent, under a header that says so."""
    return words.percent(share).removesuffix(" %")


def _time(length_ns: int) -> str:
    return words.duration(length_ns) if length_ns else "0 s"


def _windows(answer: WhatIfAnswer, request: Request) -> Drawn:
    windows = sorted(answer.windows, key=lambda window: -window.start_ns)
    rows = [_listed_window(window, request) for window in windows[:LISTED_WINDOWS]]
    columns = ("Window", "Saved, %", "Saved", "Then limited by")
    more = len(windows) - LISTED_WINDOWS
    listed = [
        table("What would be saved in each window", columns, rows, wordy=(0, 3)),
        *(
            [html.P(f"and {more:,} earlier windows, which are in the chart.", className="muted")]
            if more > 0
            else []
        ),
    ]
    by = f"{targets.name(answer.target, request)} at {targets.times(answer.factor)}"
    under = f"share of each window saved by {by} · click: its critical path, below"
    worst = max((w.saved_ns / max(w.end_ns - w.start_ns, 1) for w in windows), default=0.0)
    each = words.count(len(windows), "window")
    spoken = f"What would be saved in each of {each}? At most {words.percent(worst)}."
    drawn = savings.windows(answer, request.job.window_ns, request.view, request.colours)
    starts = [window.start_ns for window in answer.windows]
    changes = applied_changes(request.job, min(starts), max(starts) + request.job.window_ns) if starts else []
    return Drawn(
        listed,
        under,
        marks.mark(drawn, changes, request.view.axis_ms, request.colours),
        260,
        f"{spoken}{marks.spoken(changes, request.view)}",
    )


def _listed_window(window: WhatIfWindow, request: Request) -> list[Cell]:
    share = window.saved_ns / max(window.end_ns - window.start_ns, 1)
    is_fine = window.status is WindowStatus.OK
    start = request.window_of(window.start_ns)
    return [
        Cell(to_window(request.clock(window.start_ns), start), f"{window.start_ns} ns"),
        Cell(_number(share) if is_fine else "–", share, True),
        Cell(_time(window.saved_ns) if is_fine else "–", f"{window.saved_ns} ns"),
        Cell(
            link(
                _then_words(window.limits, request), {"window": str(start)}, "Its critical path, now and then"
            )
            if is_fine
            else words.status(window.status),
            _then_words(window.limits, request) if is_fine else None,
        ),
    ]


def _then_words(limits: Sequence[PathPart], request: Request) -> str:
    if not limits:
        return "nothing"
    first = limits[0]
    return f"{request.work(first.type, first.operator, first.worker)} ({words.duration(first.duration_ns)})"


def _then(answer: WhatIfAnswer, request: Request) -> Drawn:
    sums: dict[tuple[int, int, int], int] = {}
    for part in (part for window in answer.windows for part in window.limits):
        key = part.type, part.operator, part.worker
        sums[key] = sums.get(key, 0) + part.duration_ns
    left = max(answer.length_ns - answer.saved_ns, 1)
    ordered = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:PARTS]
    names = [request.work(*key) for key, _ in ordered]
    rows = [
        [Cell(name), Cell(words.duration(ns), f"{ns} ns"), Cell(_number(ns / left), ns / left, True)]
        for name, (_, ns) in zip(names, ordered, strict=True)
    ]
    y = bars.labels(names, request.narrow)
    colours = [request.colours.activity(key[0]) for key, _ in ordered]
    hover = "%{hovertext}: %{x:.3p}<extra></extra>"
    shares = [ns / left for _, ns in ordered]
    trace = bars.bar("share", y, shares, colours, hovertemplate=hover, hovertext=names)
    drawn = bars.figure([trace], y, request.colours, request.narrow)
    listed = (
        table("What would limit these windows then", ("What", "Time", "Share, %"), rows)
        if rows
        else _none("Nothing.")
    )
    under = "share of the new critical paths, all windows together"
    best = [f"{name} {words.percent(ns / left)}" for name, (_, ns) in zip(names[:5], ordered, strict=False)]
    spoken = f"What would limit these windows then? {words.series(best) or 'Nothing'}."
    return Drawn(listed, under, drawn, bars.height(len(rows)), spoken)


def _controls(request: Request, ranking: Answer | None, one: Answer | None) -> list[Any]:
    chosen = request.wish.target
    possible = (
        [row.target for row in ranking.rows] if isinstance(ranking, WhatIfRanking) else targets.every(request)
    )
    groups: list[tuple[str, list[tuple[str, str]]]] = [("", [("", "what saves most")])]
    for kind, label in GROUPS:
        mine = [target for target in possible if target.kind is kind]
        options = [(targets.write(target, request), targets.name(target, request)) for target in mine]
        if options:
            groups.append((label, options))
    if not any(chosen == value for _, options in groups for value, _ in options):
        groups.insert(1, ("", [(chosen, chosen.partition(":")[2] or chosen)]))
    pressed = [
        (targets.times(f), {"factor": None if f == 2.0 else targets.factor_text(f)}, f == request.wish.factor)
        for f in targets.FACTORS
    ]
    return [
        select("Make faster", "target", groups, chosen),
        choice("How many times", pressed),
        _any_factor(request.wish.factor),
    ]


def _any_factor(factor: float) -> Any:
    """Any number of times; ∞ for no time at all."""
    shown = "" if factor == NO_FACTOR else "∞" if math.isinf(factor) else f"{factor:g}"
    field = dcc.Input(id="what-if-factor", type="text", inputMode="decimal", value=shown, className="short")
    return html.Label(
        [html.Span("or any number", className="label"), field],
        className="choices",
        **{"data-param": "factor"},
    )


def _notes(one: Answer | None) -> list[Any]:
    if not isinstance(one, WhatIfAnswer):
        return []
    left_out = sum(window.status is not WindowStatus.OK for window in one.windows)
    lost = f"{words.count(left_out, 'window')} without a critical path left out. " if left_out else ""
    return [
        html.P(
            [
                f"{lost}Savings suppose that the order of work, its amount and the time messages take stay. ",
                html.A("What this assumes", href="/help/guide"),
            ]
        )
    ]


TAB = Tab(
    key="what-if",
    label="What if",
    waiting="Computing what would be saved …",
    panels={
        "rank": ("What is worth optimising?", True),
        "windows": ("What would be saved in each window?", True),
        "then": ("What would limit it then?", True),
        "paths": ("How would the critical path of one window change?", True),
    },
    ask=ask,
    draw=draw,
    has_fields=True,
)
