"""What changed? Two ranges of windows side by side, the differences that matter first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from analytics.model.answers import Answer, Change, Comparison, Confidence, Dimension
from frontend import place, words
from frontend.asked import Range
from frontend.components.facts import Cell, link, table, to_segment, to_window
from frontend.figures import bars, changes
from frontend.pages.questions.asking import Drawn, Page, Request, Tab
from frontend.state import iso
from webapp.analysis.basis import choose
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import BUDGETS, Asked

DRAWN = 12
LISTED = 100
SURE = {
    Confidence.SURE: ("✓ sure", "more than twice its standard error"),
    Confidence.UNSURE: ("unsure", "within what windows differ anyway"),
    Confidence.TOO_FEW: ("too few windows", "a side has fewer than five windows"),
}


def ask(request: Request) -> Sequence[Asked] | str:
    """The page's range against the one before it of the same length, or the two ranges of the address."""
    wish, view = request.wish, request.view
    before, after = ranges(request)
    is_fixed = wish.after is not None or view.is_absolute
    name = {"range": view.range}
    params = {
        "after": list(after) if is_fixed else name,
        "before": list(before) if wish.before is not None or is_fixed else name,
    }
    return [Asked(QuestionKind.COMPARE, params, (before, after), moving=not is_fixed)]


def ranges(request: Request) -> tuple[Range, Range]:
    """Before and after, from the beginning of a window to that of another: no window is on both sides."""
    after = _whole(request.wish.after or request.view.span(request.now_ns), request)
    before = _whole(request.wish.before or (2 * after[0] - after[1], after[0]), request)
    return before, after


def _whole(at: Range, request: Request) -> Range:
    return request.window_of(at[0]), request.window_of(at[1] + request.job.window_ns - 1)


def halves(request: Request) -> Any:
    """If there is nothing before: the windows after, their first half against the second."""
    after = ranges(request)[1]
    side = choose(request.job, *after, BUDGETS[QuestionKind.COMPARE])
    if side.used < 2:
        return None
    middle = request.window_of((side.from_ns + side.to_ns) // 2)
    parts = {"a_from": side.from_ns, "a_to": middle, "b_from": middle, "b_to": side.to_ns}
    text = f"Compare the first half of {words.count(side.used, 'window')} with the second"
    return link(text, {key: iso(at_ns) for key, at_ns in parts.items()})


def draw(request: Request, answers: Sequence[Answer | None]) -> Page:
    """The sentence and the differences."""
    answer = answers[0] if answers else None
    controls = _controls(request)
    if not isinstance(answer, Comparison):
        return Page(controls=controls)
    return Page(sentence(answer, request), controls, {"changes": _changes(answer, request)}, _notes(answer))


def name(change: Change, request: Request) -> str:
    """What a compared group is called among all others."""
    if change.dimension is Dimension.ACTIVITY:
        return f"all {words.activity(change.id)}"
    if change.dimension is Dimension.OPERATOR:
        return f"operator {request.operator(change.id) or 'none'}"
    if change.dimension is Dimension.WORKER:
        return f"worker {request.worker(change.id)}"
    return f"{request.worker(change.id)} → {request.worker(change.peer)}"


def sentence(answer: Comparison, request: Request) -> Any:
    """The differences that matter, or that there are none."""
    if not answer.before.window_count or not answer.after.window_count:
        side = "before" if not answer.before.window_count else "after"
        return f"Nothing can be compared: no window {side} has a critical path."
    sure = [change for change in answer.changes if change.confidence is Confidence.SURE and change.cp_change]
    if not sure:
        few = any(change.confidence is Confidence.TOO_FEW for change in answer.changes)
        why = "there are too few windows to be sure" if few else "windows differ as much anyway"
        return [html.Strong("Nothing changed for sure"), f": {why}."]
    parts: list[Any] = [html.Strong(f"{words.count(len(sure), 'difference')} for sure"), ". Most: "]
    for i, change in enumerate(sure[:2]):
        moved = "rose" if change.cp_change > 0 else "fell"
        parts += [
            " and " if i else "", html.Strong(name(change, request)),
            f" {moved} from {words.percent(change.cp_before)} to {words.percent(change.cp_after)}",
        ]  # fmt: skip
    return [*parts, " of critical paths."]


def points(change: float) -> str:
    """A difference of shares in percentage points, under a header that says so."""
    value = abs(100 * change)
    shown = "0" if value < 0.005 else f"{value:.3g}" if value >= 0.1 else f"{value:.2f}"
    return shown if shown == "0" else f"{'+' if change > 0 else '−'}{shown}"


def _changes(answer: Comparison, request: Request) -> Drawn:
    rows = answer.changes[:DRAWN]
    names = [name(change, request) for change in rows]
    chart = changes.figure(rows, names, request.colours, request.narrow)
    columns = (
        "What", "Change, points", "Sure?", "CP before, %", "CP after, %", "Standard error, points",
        "Change of profile, points",
    )  # fmt: skip
    listed = [_row(change, request) for change in answer.changes[:LISTED]]
    under = (
        "change of CP in percentage points, after less before · solid: sure, pale: not · line: 2 std. errors"
    )
    if len(answer.changes) > DRAWN:
        under += f" · the first {DRAWN} of {len(answer.changes) + answer.left_out:,}"
    told = [f"{n} {points(change.cp_change)}" for n, change in zip(names[:6], rows, strict=False)]
    spoken = f"What changed, in percentage points? {words.series(told) or 'Nothing'}."
    return Drawn(
        table("What changed", columns, listed, wordy=(0, 2)), under, chart, bars.height(len(rows)), spoken
    )


def _row(change: Change, request: Request) -> list[Cell]:
    sure, meaning = SURE[change.confidence]
    good = "verdict good" if change.confidence is Confidence.SURE else "verdict muted"
    return [
        Cell(name(change, request)),
        Cell(points(change.cp_change), change.cp_change, True),
        Cell(html.Span(sure, className=good, title=meaning), change.confidence.value),
        Cell(_most(change, change.cp_before, change.peak_before_ns, request), change.cp_before),
        Cell(_most(change, change.cp_after, change.peak_after_ns, request), change.cp_after),
        Cell(points(change.cp_error).lstrip("+"), change.cp_error),
        Cell(points(change.conventional_change), change.conventional_change),
    ]


def _most(change: Change, cp: float, peak_ns: int | None, request: Request) -> Any:
    """A mean that leads to the window in which it was most, and there to the segment that has most of it."""
    shown = words.percent(cp).removesuffix(" %")
    if peak_ns is None:
        return shown
    if change.id < 0:
        return to_window(shown, request.window_of(peak_ns))
    segment = place.top(change.dimension.value, change.id, change.peer)
    return to_segment(shown, request.window_of(peak_ns), segment)


def _controls(request: Request) -> list[Any]:
    before, after = ranges(request)
    boxes = [
        _moments("Before", "a", before, request.wish.before is not None),
        _moments("After", "b", after, request.wish.after is not None),
    ]
    keep = {"a_from": iso(after[0]), "a_to": iso(after[1])}
    look = [
        link("limits before", _limits(before), "The four summaries of that range"),
        link("limits after", _limits(after), "The four summaries of that range"),
        link("keep after as before", keep, "Compare what comes with what is now after"),
    ]
    fixed = request.wish.before is not None or request.wish.after is not None
    nothing = dict.fromkeys(("a_from", "a_to", "b_from", "b_to"))
    if fixed:
        look.append(link("the page’s range with the one before", nothing))
    return [*boxes, html.Span(look, className="links")]


def _moment(at_ns: int) -> str:
    return iso(at_ns).removesuffix("Z").removesuffix(".000").replace("T", " ")


def _limits(at: Range) -> dict[str, str | None]:
    return {"tab": None, "from": iso(at[0]), "to": iso(at[1])}


def _moments(label: str, letter: str, at: Range, given: bool) -> Any:
    fields = [
        html.Label(
            [
                html.Span(f"{label} {end}, UTC", className="unseen"),
                dcc.Input(id=f"moment-{letter}_{end}", type="text", value=_moment(at_ns)),
            ],
            **{"data-param": f"{letter}_{end}", "data-pair": f"{letter}_{'to' if end == 'from' else 'from'}"},
        )
        for end, at_ns in zip(("from", "to"), at, strict=True)
    ]
    mark = "" if given else " (follows the page)"
    return html.Div(
        [html.Span(f"{label}{mark}, UTC", className="label"), fields[0], html.Span("to"), fields[1]],
        className="choices long",
        role="group",
        **{"aria-label": label},
    )


def _notes(answer: Comparison) -> list[Any]:
    told = []
    for side, facts in (("before", answer.before), ("after", answer.after)):
        if facts.windows_left_out:
            told.append(
                f"{words.count(facts.windows_left_out, 'window')} {side} without a critical path left out."
            )
    told.append("CP before and after lead to the window of that side in which it was most.")
    told.append("Among hundreds of groups a few differences are sure by chance.")
    return [html.P([" ".join(told), " ", html.A("When a difference is sure", href="/help/guide")])]


TAB = Tab(
    key="compare",
    label="Compare",
    waiting="Comparing the two ranges …",
    panels={"changes": ("What changed?", True)},
    ask=ask,
    draw=draw,
    has_fields=True,
    otherwise=halves,
)
