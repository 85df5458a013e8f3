"""What the questions' tabs have in common: asking, waiting, trying again, and saying what an answer rests on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from dash import ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from analytics.model.answers import Answer
from frontend import freshness, palette, words
from frontend.addressed import job_at
from frontend.asked import Wish
from frontend.components import facts, panel, states
from frontend.figures.base import Figure
from frontend.palette import Palette
from frontend.state import View
from webapp.analysis import questions, selectors
from webapp.analysis.basis import Basis
from webapp.analysis.models import Question, TimelineState
from webapp.analysis.questions import Asked
from webapp.jobs.models import Job

POLL_MS = 400


@dataclass(frozen=True)
class Request:
    """Who asks what about which job, and names for the answer's numbers."""

    job: Job
    view: View
    wish: Wish
    narrow: bool
    now_ns: int

    @cached_property
    def workers(self) -> dict[int, str]:
        """Names by number."""
        return {worker.number: worker.name for worker in selectors.workers(self.job)}

    @cached_property
    def operators(self) -> dict[int, str]:
        """Names by number."""
        return selectors.operators(self.job)

    @property
    def colours(self) -> Palette:
        """Of the page's theme."""
        return palette.of(self.view.theme)

    def worker(self, number: int) -> str:
        """A worker's name."""
        return self.workers.get(number, f"worker {number}")

    def operator(self, number: int) -> str:
        """An operator's name, "" for none."""
        return "" if number < 0 else self.operators.get(number, f"operator {number}")

    def work(self, kind: int, operator: int, worker: int) -> str:
        """What is done, by whom and where: ``processing of count on executor 1 core 0``."""
        is_message = "message" in words.activity(kind)
        of = f" of {self.operator(operator)}" if operator >= 0 else ""
        return f"{words.activity(kind)}{of} {'from' if is_message else 'on'} {self.worker(worker)}"

    def clock(self, at_ns: int) -> str:
        """A time of day in the reader's zone, to the millisecond."""
        return f"{self.view.time(at_ns):%H:%M:%S.%f}"[:-3]

    def between(self, from_ns: int, to_ns: int) -> str:
        """A range in the reader's zone: ``from 2026-01-02 10:00:00 to 11:00:00 UTC``."""
        first, last = self.view.time(from_ns), self.view.time(to_ns)
        until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
        return f"from {first:%Y-%m-%d %H:%M:%S} to {until} {self.view.zone_label}"

    def in_words(self, text: str) -> str:
        """A diagnostic's example with names and times of day for its numbers."""
        named = re.sub(r"\bworker (\d+)", lambda found: self.worker(int(found[1])), text)
        return re.sub(r"\b(\d{17,19}) ns", lambda found: self.clock(int(found[1])), named)

    def window_of(self, at_ns: int) -> int:
        """Start of the window a time lies in."""
        return at_ns // self.job.window_ns * self.job.window_ns


@dataclass(frozen=True)
class Drawn:
    """A panel's values; without a chart only the list and what is under the title."""

    listed: Any
    under: str
    figure: Figure | None = None
    height_px: int = 0
    spoken: str = ""


@dataclass(frozen=True)
class Page:
    """A tab's values. Panels without values get a skeleton again."""

    sentence: Any = ""
    controls: Any = ()
    panels: Mapping[str, Drawn] = field(default_factory=dict)
    notes: Any = ()


@dataclass(frozen=True)
class Tab:
    """One tab: its name, its panels ``{key: (question, with a chart)}``, and how it asks and is drawn.

    ``ask`` gives what to ask, or in words why it cannot be asked; ``draw`` gets the answers in the same order;
    ``otherwise`` offers something else if a range has no windows. Controls that have fields to write in stay while
    the question does.
    """

    key: str
    label: str
    waiting: str
    panels: Mapping[str, tuple[str, bool]]
    ask: Callable[[Request], Sequence[Asked] | str]
    draw: Callable[[Request, Sequence[Answer | None]], Page]
    otherwise: Callable[[Request], Any] | None = None
    has_fields: bool = False


_CHART_PROPS = (
    ("chart", "figure"), ("frame", "aria-label"), ("wait", "hidden"), ("chart", "style"), ("frame", "style"),
)  # fmt: skip
_LIST_PROPS = (("list", "children"), ("under", "children"))


def layout(tab: Tab) -> Any:
    """The tab before its values come."""
    key = tab.key
    return html.Div(
        className="asked",
        children=[
            dcc.Interval(id=f"{key}-poll", interval=POLL_MS, disabled=True),
            dcc.Store(id=f"{key}-again"),
            dcc.Store(id=f"{key}-drawn"),
            html.P(tab.waiting, id=f"{key}-sentence", className="answer"),
            html.P("…", id=f"{key}-basis", className="basis muted", role="status"),
            html.Div(id=f"{key}-controls", className="controls"),
            html.Div(id=f"{key}-message"),
            html.Div(
                [_panel(f"{key}-{part}", *how) for part, how in tab.panels.items()],
                id=f"{key}-body",
                className="asked-body",
            ),
            html.Div(id=f"{key}-notes", className="notes muted"),
        ],
    )


def _panel(key: str, question: str, charted: bool) -> Any:
    return panel.panel(key, question) if charted else facts.sheet(key, question)


def _props(tab: Tab) -> list[tuple[str, str]]:
    found = []
    for part, (_, charted) in tab.panels.items():
        props = (*_LIST_PROPS, *(_CHART_PROPS if charted else ()))
        found += [(f"{piece}-{tab.key}-{part}", prop) for piece, prop in props]
    return found


def register(app: Dash, tab: Tab) -> None:
    """Callbacks of a tab."""
    key = tab.key
    heads = (
        ("sentence", "children"), ("basis", "children"), ("controls", "children"), ("message", "children"),
        ("body", "hidden"), ("notes", "children"), ("poll", "disabled"), ("drawn", "data"),
    )  # fmt: skip
    place = (State("url", "search"), State("url", "pathname"), State("screen", "data"))

    def refresh(query: str, _tick: int, _poll: int, screen: str, path: str, drawn: str | None) -> list[Any]:
        return _refresh(tab, _request(query, path, screen), drawn)

    def retry(clicks: int | None, query: str, path: str, screen: str) -> Any:
        return _retry(tab, _request(query, path, screen)) if clicks else no_update

    app.callback(
        [*(Output(f"{key}-{part}", prop) for part, prop in heads), *(Output(*pair) for pair in _props(tab))],
        Input("url", "search"), Input("tick", "n_intervals"), Input(f"{key}-again", "data"),
        Input("screen", "data"), State("url", "pathname"), State(f"{key}-drawn", "data"),
    )(refresh)  # fmt: skip
    # Polls pass only while nothing is under way: Dash throws an answer away if the same is asked again meanwhile,
    # and a server that takes longer than the time between two polls would never be heard.
    app.clientside_callback(
        ClientsideFunction("weir", "again"),
        Output(f"{key}-again", "data"),
        Input(f"{key}-poll", "n_intervals"),
    )
    app.callback(
        Output(f"{key}-poll", "disabled", allow_duplicate=True),
        Input(f"{key}-retry", "n_clicks"),
        *place,
        prevent_initial_call=True,
    )(retry)


def _request(query: str, path: str, screen: str) -> Request:
    return Request(
        job_at(path), View.parse(query or ""), Wish.parse(query or ""), screen == "narrow", freshness.now_ns()
    )


def _refresh(tab: Tab, request: Request, drawn: str | None) -> list[Any]:
    from frontend.pages.job import draw_head

    if ctx.triggered_id != f"{tab.key}-again":  # a poll asks for the answer only
        draw_head(selectors.limits(request.job, *request.view.span(request.now_ns)), request.view)
    asked = tab.ask(request)
    if isinstance(asked, str):
        return _without(
            tab, request, "This cannot be asked.", states.empty(asked, "Choose something else above.")
        )
    rows = [questions.ask(request.job, item) for item in asked]
    if any(row is None for row in rows):
        return _without(tab, request, "There is nothing to ask about yet.", _nothing(tab, request, asked))
    return _with(tab, request, [row for row in rows if row is not None], drawn)


def _nothing(tab: Tab, request: Request, asked: Sequence[Asked]) -> Any:
    empty = next((i for item in asked for i, side in enumerate(item.sides(request.job)) if not side.used), 0)
    ranges = asked[0].ranges_ns
    span = request.view.span_words if len(ranges) < 2 else request.between(*ranges[empty])
    more = tab.otherwise(request) if tab.otherwise else None
    return states.empty(
        f"No window {span}",
        "Questions are answered from windows with records. Choose a range that has some; the first line of this"
        " page leads to the newest.",
        *([more] if more is not None else []),
    )


def _without(tab: Tab, request: Request, sentence: str, message: Any) -> list[Any]:
    rest = [no_update] * len(_props(tab))
    controls: Any = tab.draw(request, []).controls
    key = f"{_state(request)}\n{None}"
    return [sentence, "", controls, message, True, (), True, key, *rest]


def _with(tab: Tab, request: Request, rows: list[Question], drawn: str | None) -> list[Any]:
    waits = any(row.state == TimelineState.QUEUED for row in rows)
    failed = next((row for row in rows if row.state == TimelineState.FAILED), None)
    message = None if failed is None else _failed(tab, failed)
    widest = max(reversed(rows), key=lambda row: sum(side.used for side in questions.sides_of(row.basis)))
    basis = " · ".join(
        [_rests_on(request, widest), *(["computing again …"] if waits and widest.payload else [])]
    )
    answers = [questions.answer_of(row) for row in rows]
    nothing_to_show = failed is not None and not any(answers)
    key = f"{_state(request)}\n{[str(row.answered_at) for row in rows]} {len(rows)}"
    if key == drawn:
        rest = [no_update] * len(_props(tab))
        return [no_update, basis, no_update, message, nothing_to_show, no_update, not waits, key, *rest]
    page = tab.draw(request, answers)
    panels = [
        value
        for part, (_, charted) in tab.panels.items()
        for value in _values(page.panels.get(part), charted, tab)
    ]
    sentence = page.sentence or ("There is no answer." if nothing_to_show else tab.waiting)
    controls = no_update if tab.has_fields and _is_asked_already(drawn, request) else page.controls
    return [sentence, basis, controls, message, nothing_to_show, page.notes, not waits, key, *panels]


def _state(request: Request) -> str:
    return f"{request.job.pk} {request.view} {request.wish} {request.narrow}"


def _is_asked_already(drawn: str | None, request: Request) -> bool:
    """Whether a whole answer to the same question was shown."""
    state, _, answered = (drawn or "").partition("\n")
    return state == _state(request) and answered != "" and str(None) not in answered


def _values(drawn: Drawn | None, charted: bool, tab: Tab) -> list[Any]:
    if drawn is None:
        words_only = [html.P(tab.waiting, className="muted"), tab.waiting]
        return [*words_only, *((panel.BLANK, tab.waiting, False, no_update, no_update) if charted else ())]
    if not charted:
        return [drawn.listed, drawn.under]
    height = {"height": drawn.height_px}
    return [drawn.listed, drawn.under, drawn.figure, drawn.spoken, True, height, height]


def _failed(tab: Tab, row: Question) -> Any:
    before = " What is shown is the answer of before." if row.payload else ""
    return html.Div(
        className="state",
        role="alert",
        children=[
            html.H2("The question could not be answered"),
            html.P(f"{row.error}.{before}"),
            html.Button("Try again", id=f"{tab.key}-retry", className="primary"),
        ],
    )


def _retry(tab: Tab, request: Request) -> Any:
    asked = tab.ask(request)
    for item in () if isinstance(asked, str) else asked:
        questions.retry(request.job, item)
    return False


def _rests_on(request: Request, row: Question) -> str:
    sides = questions.sides_of(row.answered_basis or row.basis)
    parts = [_side(side, request) for side in sides]
    told = f"Rests on {parts[0]}" if len(parts) == 1 else f"Before: {parts[0]} · after: {parts[1]}"
    if row.answered_at is None:
        return told
    return f"{told} · computed at {request.view.time(int(row.answered_at.timestamp() * 1e9)):%H:%M:%S}"


def _side(side: Basis, request: Request) -> str:
    span = request.between(side.from_ns, side.to_ns)
    if side.used < side.of:
        return f"the newest {side.used:,} of {side.of:,} windows {span}"
    return f"{words.count(side.used, 'window')} {span}"
