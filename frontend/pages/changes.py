"""A job's changes: what is proposed or under way, proposing by hand, and all that was proposed before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import ALL, Dash, Input, Output, State, dcc, html, no_update, set_props
from django.utils import timezone

from frontend import freshness, words
from frontend.addressed import job_at
from frontend.components import states
from frontend.components.proposals import body, card, target
from frontend.request import person
from frontend.state import View
from webapp.analysis import advice
from webapp.analysis import selectors as analysis
from webapp.analysis.models import Recommendation
from webapp.jobs.models import Job, Role
from webapp.jobs.policies import may
from webapp.reconfigurations import policies, proposing, selectors
from webapp.reconfigurations.errors import RefusedError
from webapp.reconfigurations.lifecycle import IN_FLIGHT
from webapp.reconfigurations.lifecycle import State as Stands
from webapp.reconfigurations.models import Mode, Proposal

KEY = "changes"
LABEL = "Changes"
MOST_SHOWN = 50
MOST_INSTANCES = 2**31 - 1


def layout(job: Job) -> Any:
    """The tab before its values come; the form keeps what is written."""
    return html.Div(
        className="asked changes-tab",
        children=[
            place(),
            _form(job),
            html.Section(
                [
                    html.H2("What was proposed and done", id="changes-title"),
                    html.Div(states.skeleton(120), id="changes-list"),
                    dcc.Store(id="changes-drawn"),
                ],
                className="card",
                **{"aria-labelledby": "changes-title"},
            ),
        ],
    )


def place() -> Any:
    """Where the open proposal stands, or the way to one; on the Scaling tab too."""
    return html.Div(
        [
            html.Div(id="offer", className="stack"),
            html.P("", id="offer-said", role="status", className="harm"),
            dcc.Store(id="offer-drawn"),
        ]
    )


def _form(job: Job) -> Any:
    bound = selectors.current_binding(job)
    if bound is None:
        inside: list[Any] = [
            html.P("How the job runs is unknown: its engine was never asked. ", className="muted"),
            html.A("Add its cluster", href="/connections"),
        ]
    else:
        allowed = may(person(), job, Role.OPERATOR)
        fields = [
            html.Label(
                [
                    html.Span(item.name, className="source-name", title=item.name),
                    dcc.Input(
                        id={"type": "hand", "operator": item.id}, type="text", inputMode="numeric", value="",
                        placeholder=f"{item.parallelism} now", disabled=not allowed,
                    ),
                    html.Span(_at_most(item.max_parallelism), className="muted"),
                ],
                className="target",
            )
            for item in bound.operators
        ]  # fmt: skip
        why = f"To propose something you need the role operator on {job.name}."
        inside = [
            html.P(why, hidden=allowed, id="hand-denied", className="muted"),
            html.Fieldset([html.Legend("Instances; empty: as it is"), *fields]),
            html.Label("Why", htmlFor="hand-reason"),
            dcc.Textarea(id="hand-reason", rows=2, disabled=not allowed),
            html.Div(
                [
                    html.Button("Propose", id="propose-by-hand", className="primary", disabled=not allowed),
                    html.P("", id="hand-said", role="status"),
                ],
                className="setup-end",
            ),
        ]
    return html.Section(
        [html.H2("Propose something else", id="hand-title"), *inside],
        className="card by-hand",
        **{"aria-labelledby": "hand-title"},
    )


def _at_most(count: int | None) -> str:
    return f"of at most {count:,}" if count else ""


def register(app: Dash) -> None:
    """Callbacks of the tab, and of its part on the Scaling tab."""
    where = State("url", "pathname")
    moments = (Input("url", "search"), Input("tick", "n_intervals"), Input("decided", "data"))
    app.callback(
        Output("offer", "children"), Output("offer-drawn", "data"), *moments, where, State("offer-drawn", "data")
    )(offer)  # fmt: skip
    app.callback(
        Output("changes-list", "children"), Output("changes-drawn", "data"), *moments, where,
        State("changes-drawn", "data"),
    )(listed)  # fmt: skip
    app.callback(
        Output("offer-said", "children"), Input("propose-this", "n_clicks"), where, prevent_initial_call=True,
        running=[(Output("propose-this", "disabled"), True, False)],
    )(propose_this)  # fmt: skip
    app.callback(
        Output("hand-said", "children"), Output("hand-said", "className"), Input("propose-by-hand", "n_clicks"),
        State({"type": "hand", "operator": ALL}, "value"), State({"type": "hand", "operator": ALL}, "id"),
        State("hand-reason", "value"), where, prevent_initial_call=True,
        running=[(Output("propose-by-hand", "disabled"), True, False)],
    )(propose_by_hand)  # fmt: skip


def offer(query: str, _tick: int, _decided: Any, path: str, drawn: str | None) -> list[Any]:
    """The proposal that is open or under way; else the recommendation, to be proposed."""
    job, view = job_at(path), View.parse(query or "")
    row = selectors.listed(person(), job, [Stands.PROPOSED, *IN_FLIGHT]).first()
    if row is not None:
        link = html.A("Open with history and outcome", href=f"/proposals/{row.pk}")
        return body.changed(drawn, [body.draw(body.shown(row, view)), link])
    return body.changed(drawn, _nothing_open(job))


def _nothing_open(job: Job) -> Any:
    recommended = advice.current(job)
    mode = policies.rules_of(job).mode
    told = {
        Mode.OBSERVE: "Weir only observes this job: people may propose; before anything is approved an admin has to"
        " change its mode.",
        Mode.RECOMMEND: "What a policy recommends is proposed by itself within half a minute.",
        Mode.AUTOMATIC: "What is within the job's limits is proposed and done without asking.",
    }[Mode(mode)]
    line = html.P(
        ["Nothing is proposed. ", told, " ", html.A("Rules", href=f"/jobs/{job.pk}?tab=rules")],
        className="muted",
    )
    return [line, *_propose_this(job, recommended)]


def _propose_this(job: Job, recommended: Recommendation | None) -> list[Any]:
    if recommended is None or not recommended.changes:
        return []
    asks = words.series(
        words.changes((one["name"], one["now"], one["proposed"]) for one in recommended.changes)
    )
    if not may(person(), job, Role.OPERATOR):
        needs = f"To propose it you need the role operator on {job.name}."
        return [
            html.P(f"{words.policy(recommended.policy)} recommends {asks}. {needs}", id="propose-why-not")
        ]
    label = f"Propose this: {asks}"
    return [html.Button(label, id="propose-this", className="primary")]


def propose_this(clicks: int | None, path: str) -> Any:
    """Propose what is recommended, in the reader's name."""
    if not clicks:
        return no_update
    job = target.job_at(path)
    if job is None:
        return f"Not proposed: {target.NONE}."
    try:
        row = proposing.propose_recommended(person(), job)
    except RefusedError as error:
        return f"Not proposed: {error}."
    _tell(row)
    return ""


def propose_by_hand(
    clicks: int | None, values: Sequence[str | None], ids: Sequence[dict[str, str]], reason: str | None, path: str
) -> list[Any]:  # fmt: skip
    """Propose what the form says."""
    if not clicks:
        return [no_update, no_update]
    job = target.job_at(path)
    if job is None:
        return [f"Not proposed: {target.NONE}.", "harm"]
    wanted = {}
    for item, text in zip(ids, values, strict=True):
        written = (text or "").replace(",", "").strip()
        if not written:
            continue
        if not written.isdecimal() or not 0 < int(written) <= MOST_INSTANCES:
            return [f"Not proposed: “{text}” is no number of instances.", "harm"]
        wanted[item["operator"]] = int(written)
    try:
        row = proposing.propose_by_hand(person(), job, wanted, str(reason or "")[:2000])
    except RefusedError as error:
        return [f"Not proposed: {error}.", "harm"]
    _tell(row)
    return ["Proposed. Somebody else must approve it.", "good"]


def _tell(row: Proposal) -> None:
    """Draw what follows from it at once."""
    set_props("decided", {"data": {"said": f"✓ Proposed: proposal {row.pk}.", "good": True, "row": row.pk}})


def listed(query: str, _tick: int, _decided: Any, path: str, drawn: str | None) -> list[Any]:
    """All proposals of the job, and the head of the page."""
    from frontend.pages.job import draw_head

    job, view = job_at(path), View.parse(query or "")
    draw_head(analysis.limits(job, *view.span(freshness.now_ns())), view)
    rows = list(selectors.listed(person(), job)[:MOST_SHOWN])
    if not rows:
        return body.changed(drawn, html.P("Nothing was proposed for this job yet.", className="muted"))
    return body.changed(drawn, card.small(rows, view, timezone.now()))
