"""Which workers belong together? Those whose messages across hosts are critical, as proposals to move them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import html

from analytics.model.answers import Answer, CollocationAnswer, CollocationProposal
from frontend import place, words
from frontend.asked import about_range
from frontend.components.facts import Cell, link, table, to_segment
from frontend.figures import bars
from frontend.pages.questions.asking import Drawn, Page, Request, Tab
from webapp.analysis.models import QuestionKind
from webapp.analysis.questions import Asked


def ask(request: Request) -> Sequence[Asked]:
    """About the page's range."""
    return [about_range(QuestionKind.TOGETHER, request.view, request.now_ns)]


def draw(request: Request, answers: Sequence[Answer | None]) -> Page:
    """The sentence and the proposals."""
    answer = answers[0] if answers else None
    if not isinstance(answer, CollocationAnswer):
        return Page()
    return Page(sentence(answer, request), (), {"proposals": _proposals(answer, request)}, _notes(answer))


def sentence(answer: CollocationAnswer, request: Request) -> Any:
    """The first proposal, or that there is none."""
    if not answer.window_count:
        return "Nothing can be told: none of these windows has a critical path."
    if not answer.proposals:
        across = words.percent(answer.cp_across_hosts)
        return [
            html.Strong("No worker need move"),
            f": messages between hosts are {across} of critical paths.",
        ]
    first = answer.proposals[0]
    return [
        "Put ", html.Strong(request.worker(first.worker)), " beside ", _beside(first, request),
        ": removes up to ", html.Strong(words.percent(first.cp_removed)), " of critical paths.",
    ]  # fmt: skip


def _beside(proposal: CollocationProposal, request: Request) -> str:
    names = [request.worker(partner.worker) for partner in proposal.beside]
    return words.series([*names[:4], *([f"{len(names) - 4} more"] if len(names) > 4 else [])])


def _proposals(answer: CollocationAnswer, request: Request) -> Drawn:
    names = [request.worker(proposal.worker) for proposal in answer.proposals]
    y = bars.labels(names, request.narrow)
    colours = request.colours
    found, surface = answer.proposals, colours.surface
    traces = [
        _bar("beside all of them", y, names, [p.cp_removed for p in found], surface("muted"), 0.35),
        _bar(
            "at the best host", y, names, [p.cp_removed_at_best_host for p in found], surface("accent"), 1.0
        ),
        _bar("put across hosts", y, names, [-p.cp_at_risk for p in found], surface("harm"), 1.0),
    ]
    chart = bars.figure(traces, y, colours, request.narrow)
    chart["layout"]["xaxis"] |= {"rangemode": "normal", "zeroline": True, "zerolinecolor": surface("text")}
    columns = ("Put", "Beside", "Removes up to, %", "Best host", "Removes there, %", "Puts across hosts, %")
    rows = [_row(proposal, answer, request) for proposal in answer.proposals]
    none = html.P("No messages between hosts are critical enough to move a worker.", className="muted")
    under = (
        "share of critical paths removed · pale: beside all of them, solid: at the best host alone · left of zero:"
        " what that would put across hosts"
    )
    told = [
        f"{name} {words.percent(p.cp_removed)}" for name, p in zip(names[:6], answer.proposals, strict=False)
    ]
    spoken = f"Which workers belong together? Moving removes up to: {words.series(told) or 'nothing'}."
    listed = table("Which workers belong together", columns, rows, wordy=(0, 1, 3)) if rows else none
    return Drawn(listed, under if rows else "nothing to move", chart, bars.height(len(rows)), spoken)


def _bar(
    name: str, y: Sequence[str], names: Sequence[str], x: Sequence[float], colour: str, opacity: float
) -> dict[str, Any]:
    hover = f"%{{hovertext}}: %{{x:.3p}}<extra>{name}</extra>"
    return bars.bar(name, y, x, colour, opacity=opacity, hovertext=list(names), hovertemplate=hover)


def _row(proposal: CollocationProposal, answer: CollocationAnswer, request: Request) -> list[Cell]:
    partners = [
        f"{request.worker(partner.worker)} ({words.percent(partner.cp)})" for partner in proposal.beside
    ]
    leads = [
        to_segment(
            name,
            request.window_of(partner.peak_ns),
            place.top("pair", proposal.worker, partner.worker),
        )
        for name, partner in zip(partners, proposal.beside, strict=True)
    ]
    host = answer.hosts[proposal.best_host] or "host unknown"
    return [
        Cell(request.worker(proposal.worker)),
        Cell([html.Div(lead) for lead in leads], ", ".join(partners)),
        Cell(_number(proposal.cp_removed), proposal.cp_removed, True),
        Cell(host),
        Cell(_number(proposal.cp_removed_at_best_host), proposal.cp_removed_at_best_host),
        Cell(_number(proposal.cp_at_risk), proposal.cp_at_risk),
    ]


def _number(share: float) -> str:
    return words.percent(share).removesuffix(" %")


def _notes(answer: CollocationAnswer) -> list[Any]:
    told = [
        f"Messages are {words.percent(answer.cp_messages)} of critical paths, those between hosts"
        f" {words.percent(answer.cp_across_hosts)}. What is removed is an upper bound: messages within a host take"
        " time too."
    ]
    if answer.unknown_host_count:
        told.append(
            f"{words.count(answer.unknown_host_count, 'worker')} of unknown host count as a host each."
        )
    if answer.windows_left_out:
        told.append(f"{words.count(answer.windows_left_out, 'window')} without a critical path left out.")
    channels = link("All channels between workers", {"tab": None})
    return [
        html.P(
            [" ".join(told), " ", channels, " · ", html.A("How workers are put together", href="/help/guide")]
        )
    ]


TAB = Tab(
    key="together",
    label="Together",
    waiting="Looking at the messages between hosts …",
    panels={"proposals": ("Which workers belong together?", True)},
    ask=ask,
    draw=draw,
)
