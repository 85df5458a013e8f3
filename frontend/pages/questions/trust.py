"""Is the trace trustworthy? Checks with what they found, and links to where they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from analytics.model.answers import Answer, Check, CheckExample, CheckState, TrustAnswer
from frontend import place, words
from frontend.asked import MS_NS, Wish, about_range
from frontend.components.facts import Cell, choice, table, to_segment, to_window
from frontend.pages.questions.asking import Drawn, Page, Request, Tab
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import Asked

CHECKS = {
    "interaction_by_messages": ("Workers affect each other by messages only", "No trace can show it."),
    "waits_end_in_a_receive": (
        "Waits end in a received message",
        "A wait ended, and no recorded message ended it.",
    ),
    "no_orphans": ("No work starts from nothing", "A worker works before it was reported as added."),
    "not_all_waiting": (
        "Never do all wait",
        "All wait and no message is on its way: something is not recorded.",
    ),
    "received_after_sent": ("Messages arrive after they were sent", "The clocks of two workers disagree."),
    "acyclic": ("Messages form no circle", "Messages of one instant form a circle."),
    "path_exists": ("A path leads through each window", "A wait ended without the message that ended it."),
    "complete": ("No records are missing", "Work starts from nothing."),
    "longest_operator": ("Operator, first to last activity in a window", "Longer than the limit."),
    "longest_message": ("Message, from sent to received", "Longer than the limit."),
    "longest_pause": ("Pause between two control messages of a worker", "Longer than the limit."),
    "progress_to_all_peers": (
        "Workers send each other progress",
        "A worker did not tell every other its progress.",
    ),
}
SIGNS = {
    CheckState.PASSED: ("✓ passes", "good"),
    CheckState.FAILED: ("✕ fails", "harm"),
    CheckState.MEASURED: ("measured, no limit set", "muted"),
    CheckState.NOT_ASKED: ("not asked", "muted"),
    CheckState.NOT_TESTABLE: ("cannot be tested", "muted"),
}
LIMITS = (
    ("longest_operator_ms", "Operator at most"),
    ("longest_message_ms", "Message at most"),
    ("longest_pause_ms", "Pause at most"),
)
WITHOUT_SEGMENT = ("progress_to_all_peers",)
"""What was not sent is no segment."""
NO_EDGE = ("received_after_sent",)
"""Such a message is not in the graph: what its sender did then is shown."""
ORDER = (
    CheckState.FAILED,
    CheckState.PASSED,
    CheckState.MEASURED,
    CheckState.NOT_ASKED,
    CheckState.NOT_TESTABLE,
)


def ask(request: Request) -> Sequence[Asked]:
    """The checks of the page's range, with the limits of the address."""
    wish = request.wish
    limits = {
        "longest_operator_ns": wish.longest_operator_ns,
        "longest_message_ns": wish.longest_message_ns,
        "longest_pause_ns": wish.longest_pause_ns,
    }
    given = {name: limit for name, limit in limits.items() if limit is not None}
    progress = {"progress": True} if wish.progress else {}
    return [about_range(QuestionKind.TRUST, request.view, request.now_ns, **given, **progress)]


def draw(request: Request, answers: Sequence[Answer | None]) -> Page:
    """The sentence, the checks and what reading the records found odd."""
    answer = answers[0] if answers else None
    if not isinstance(answer, TrustAnswer):
        return Page(controls=_controls(request.wish))
    checks = sorted(answer.checks, key=lambda check: ORDER.index(check.state))
    listed = table(
        "Checks of the trace",
        ("Check", "Result", "Found", "Among", "Longest", "Limit", "Where"),
        [_row(check, request) for check in checks],
        wordy=(0, 1, 6),
    )
    ok = f"{answer.windows_ok:,} of {words.count(answer.window_count, 'window')} have a critical path"
    under = f"{ok} · unknown: {words.percent(answer.unknown_share)} of critical paths"
    return Page(
        sentence=sentence(answer),
        controls=_controls(request.wish),
        panels={"checks": Drawn(listed, under)},
        notes=_notes(answer, request),
    )


def sentence(answer: TrustAnswer) -> Any:
    """Whether the trace can be trusted, and what speaks against it."""
    decided = [check for check in answer.checks if check.state in (CheckState.PASSED, CheckState.FAILED)]
    failed = [check for check in decided if check.state is CheckState.FAILED]
    if not failed:
        return [html.Strong("The trace can be trusted"), f": {len(decided)} of {len(decided)} checks pass."]
    named = words.series([f"“{CHECKS[check.code][0]}” ({check.count:,} times)" for check in failed])
    verb = "fails" if len(failed) == 1 else "fail"
    return [html.Strong(f"{len(failed)} of {len(decided)} checks {verb}"), f": {named}."]


def _row(check: Check, request: Request) -> list[Cell]:
    name, meaning = CHECKS[check.code]
    sign, colour = SIGNS[check.state]
    counted = check.tested > 0
    is_failed = check.state is CheckState.FAILED
    return [
        Cell([html.Div(name), html.Div(meaning, className="muted small")], name) if is_failed else Cell(name),
        Cell(html.Span(sign, className=f"verdict {colour}"), check.state.value),
        Cell(f"{check.count:,}" if counted and check.state is not CheckState.MEASURED else "–", check.count),
        Cell(f"{check.tested:,}" if counted else "–", check.tested),
        Cell(words.duration(check.worst_ns) if check.worst_ns else "–", f"{check.worst_ns} ns"),
        Cell(words.duration(check.limit_ns) if check.limit_ns else "–", f"{check.limit_ns} ns"),
        Cell(_examples(check, request), _raw(check, request)),
    ]


def _examples(check: Check, request: Request) -> Any:
    if not check.examples or check.state not in (CheckState.FAILED, CheckState.MEASURED):
        return "–"
    return html.Ul(
        [
            html.Li(
                [
                    _lead(check.code, example, request),
                    f" {_who(example, request)}",
                ]
            )
            for example in check.examples
        ],
        className="places",
    )


def _lead(code: str, example: CheckExample, request: Request) -> Any:
    """To the segment that an example is about, or to its window if it is about no single one."""
    start_ns, shown = request.window_of(example.from_ns), request.clock(example.from_ns)
    if (example.worker < 0 and example.operator < 0) or code in WITHOUT_SEGMENT:
        return to_window(shown, start_ns)
    is_edge = code not in NO_EDGE
    peer, until_ns = (example.peer, example.to_ns) if is_edge else (-1, example.from_ns)
    segment = place.at(example.worker, peer, example.operator, example.from_ns, until_ns)
    return to_segment(shown, start_ns, segment)


def _raw(check: Check, request: Request) -> str:
    return "; ".join(f"{e.from_ns} ns {_who(e, request)}".strip() for e in check.examples)


def _who(example: CheckExample, request: Request) -> str:
    parts = [
        request.worker(example.worker) if example.worker >= 0 else "",
        f"→ {request.worker(example.peer)}" if example.peer >= 0 else "",
        request.operator(example.operator),
    ]
    return " ".join(part for part in parts if part)


def _controls(wish: Wish) -> list[Any]:
    values = {
        "longest_operator_ms": wish.longest_operator_ns,
        "longest_message_ms": wish.longest_message_ns,
        "longest_pause_ms": wish.longest_pause_ns,
    }
    boxes = [
        html.Label(
            [
                html.Span(f"{label}, ms", className="label"),
                dcc.Input(
                    id=f"limit-{param}",
                    type="text",
                    inputMode="decimal",
                    value="" if values[param] is None else f"{(values[param] or 0) / MS_NS:g}",
                    placeholder="no limit",
                    className="short",
                ),
            ],
            className="choices",
            **{"data-param": param},
        )
        for param, label in LIMITS
    ]
    progress = choice(
        "Progress to all",
        [("not asked", {"progress": None}, not wish.progress), ("check", {"progress": "1"}, wish.progress)],
    )
    return [*boxes, progress]


def _notes(answer: TrustAnswer, request: Request) -> list[Any]:
    help_link = html.A("What each check means", href="/help/guide")
    if not answer.diagnostics:
        return [html.P(help_link)]
    odd = [
        html.Li(
            f"{item.code.replace('_', ' ')}: {item.count:,} times, for example {request.in_words(item.example)}"
        )
        for item in answer.diagnostics
    ]
    return [html.P("Odd about the records as they were read:"), html.Ul(odd), html.P(help_link)]


TAB = Tab(
    key="trust",
    label="Trust",
    waiting="Checking the trace …",
    panels={"checks": ("Is the trace trustworthy?", False)},
    ask=ask,
    draw=draw,
    has_fields=True,
)
