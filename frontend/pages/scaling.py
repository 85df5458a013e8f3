"""How many instances each operator should have: the recommendation, the numbers behind it, and how it is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dash_mantine_components as dmc
from dash import ALL, Dash, Input, Output, State, dcc, html, no_update
from django.core.exceptions import PermissionDenied, ValidationError

from analytics.model.decisions import Move
from frontend import freshness, words
from frontend.addressed import job_at
from frontend.components import facts, recommendation, states
from frontend.components.facts import Cell
from frontend.components.recommendation import Card
from frontend.pages import changes
from frontend.request import actor
from frontend.state import View
from webapp.accounts.models import User
from webapp.analysis import advice, outlook, recomputing, scaling_setup, selectors
from webapp.analysis.models import Recommendation, ScalingSetup
from webapp.analysis.scaling_setup import NEEDED_ROLE, WantedSetup
from webapp.jobs import reports
from webapp.jobs.models import Job
from webapp.jobs.policies import may

KEY = "scaling"
LABEL = "Scaling"
HISTORY = 20
_OUTPUTS = (
    ("sentence", "children"), ("basis", "children"), ("message", "children"), ("body", "hidden"),
    ("card", "children"), ("numbers", "children"), ("history", "children"), ("drawn", "data"),
)  # fmt: skip


def layout(job: Job) -> Any:
    """The tab before its values come; the form has its own from the beginning, and keeps what is written."""
    return html.Div(
        className="asked scaling",
        children=[
            dcc.Store(id="scaling-drawn"),
            html.P("Reading …", id="scaling-sentence", className="answer", role="status"),
            html.P("…", id="scaling-basis", className="basis muted"),
            html.Div(id="scaling-message"),
            html.Div(
                id="scaling-body",
                hidden=True,
                children=[
                    html.Article(
                        className="card recommendation",
                        children=[
                            html.Div(id="scaling-card"),
                            html.Div(_buttons(job), className="tools"),
                            html.P("", id="scaling-recomputed", role="status"),
                            _fold("numbers", "Numbers", "the rates it rests on"),
                            _fold("history", "History", "what was said before"),
                        ],
                        **{"aria-label": "Recommendation"},
                    )
                ],
            ),
            changes.place(),
            _form(job),
        ],
    )


def _buttons(job: Job) -> list[Any]:
    return [
        html.Button("Recompute", id="scaling-recompute", className="tool",
                    title="Compute the decision again from its stored evidence"),
        html.A("Policy lab", href=f"/policy-lab?job={job.pk}", className="tool",
               title="Replay this job's history through every policy"),
    ]  # fmt: skip


def _fold(key: str, label: str, what: str) -> Any:
    head = html.Summary([label, html.Span(f" {what}", className="muted")])
    return html.Details([head, html.Div(id=f"scaling-{key}")], className="fold", id=f"scaling-fold-{key}")


def _form(job: Job) -> Any:
    """How the job is advised. Sources are those of the newest rates."""
    setup = scaling_setup.setup_of(job)
    measured = reports.newest_rates(job)
    operators = measured.topology.sources() if measured is not None else ()
    sources = list(dict.fromkeys(operator.name for operator in operators))
    allowed = may(actor(), job, NEEDED_ROLE)
    denied = "" if allowed else f"To change this you need the role {NEEDED_ROLE.value} on {job.name}."
    return html.Section(
        className="card panel",
        **{"aria-labelledby": "scaling-form-title"},
        children=[
            html.H2("How should this job be advised?", id="scaling-form-title"),
            html.P(denied, className="muted", hidden=allowed, id="scaling-denied"),
            html.Div(
                className="setup",
                children=[
                    html.Fieldset(
                        [html.Legend("Policy"), *_policies(setup, disabled=not allowed)],
                        className="setup-policies",
                    ),
                    html.Fieldset(
                        [
                            html.Legend("What sources should deliver, records/s"),
                            *_targets(setup, sources, allowed),
                        ]
                    ),
                ],
            ),
            html.Div(
                [
                    html.Button("Save", id="scaling-save", className="primary", disabled=not allowed),
                    html.P("", id="scaling-saved", role="status"),
                ],
                className="setup-end",
            ),
        ],
    )


def _policies(setup: ScalingSetup, *, disabled: bool) -> list[Any]:
    options = [dmc.Radio(label=words.policy(name), value=name, disabled=disabled) for name in POLICIES]
    return [
        dmc.RadioGroup(
            html.Div(options, className="radios"),
            id="scaling-policy",
            value=setup.policy,
            **{"aria-label": "Policy"},
        )
    ]


def _targets(setup: ScalingSetup, sources: Sequence[str], allowed: bool) -> list[Any]:
    if not sources:
        return [html.P("Its sources are known once it has reported rates.", className="muted")]
    return [
        html.Label(
            [
                html.Span(name, className="source-name", title=name),
                dcc.Input(
                    id={"type": "scaling-target", "source": name},
                    type="text",
                    inputMode="decimal",
                    value=f"{setup.targets_per_s[name]:.15g}" if name in setup.targets_per_s else "",
                    placeholder="as measured",
                    disabled=not allowed,
                ),
            ],
            className="target",
        )
        for name in sources
    ]


POLICIES = ("ds2", "flink-autoscaler", "dhalion")


def register(app: Dash) -> None:
    """Callbacks of the tab."""
    place = State("url", "pathname")
    app.callback(
        [Output(f"scaling-{part}", prop) for part, prop in _OUTPUTS],
        Input("url", "search"), Input("tick", "n_intervals"), Input("scaling-saved", "children"),
        place, State("scaling-drawn", "data"),
    )(refresh)  # fmt: skip
    app.callback(
        Output("scaling-recomputed", "children"),
        Output("scaling-recomputed", "className"),
        Input("scaling-recompute", "n_clicks"),
        place,
        State("url", "search"),
        prevent_initial_call=True,
    )(recompute)
    app.callback(
        Output("scaling-saved", "children"),
        Output("scaling-saved", "className"),
        Input("scaling-save", "n_clicks"),
        State("scaling-policy", "value"),
        State({"type": "scaling-target", "source": ALL}, "value"),
        State({"type": "scaling-target", "source": ALL}, "id"),
        place,
        prevent_initial_call=True,
    )(save)


def refresh(query: str, _tick: int, _saved: Any, path: str, drawn: str | None) -> list[Any]:
    """The recommendation as it is now, and the head of the page."""
    from frontend.pages.job import draw_head

    job, view = job_at(path), View.parse(query or "")
    draw_head(selectors.limits(job, *view.span(freshness.now_ns())), view)
    row = advice.current(job)
    setup = scaling_setup.setup_of(job)
    if row is None:
        said, message = _nothing(job, setup)
        key = f"{view} nothing {said} {setup.error}"
        return (
            [no_update] * len(_OUTPUTS) if key == drawn else [said, "", message, True, None, None, None, key]
        )
    now_ns = freshness.now_ns()
    is_old = now_ns - row.window_end_ns >= recommendation.OLD_NS
    key = f"{view} {is_old} {row.pk} {row.confirmed_at} {setup.error} {setup.policy} {setup.enabled} {job.finished}"
    if key == drawn:
        return [no_update, _basis(row, view, now_ns), *[no_update] * (len(_OUTPUTS) - 3), key]
    try:
        told = advice.tell(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        said = [
            "What was recommended for ",
            html.Em(job.name),
            " was stored by another release and cannot be read.",
        ]
        return [said, _basis(row, view, now_ns), None, True, None, None, _history(job, view), key]
    said_at = f"{view.time(int(row.made_at.timestamp() * 1e9)):%Y-%m-%d %H:%M:%S} {view.zone_label}"
    expected = outlook.outlook(job, told.seen, dict(told.action.changes))
    others = advice.opinions(row, told.seen)
    card = Card(row, told, expected, others, job.name, _between(row, view), said_at, now_ns)
    return [
        recommendation.sentence(card), _basis(row, view, now_ns), _warnings(job, setup, card), False,
        recommendation.draw(card), recommendation.numbers(card), _history(job, view), key,
    ]  # fmt: skip


def _basis(row: Recommendation, view: View, now_ns: int) -> str:
    old = words.seconds(float(max(0, (now_ns - row.window_end_ns) // 1_000_000_000)))
    return f"{words.policy(row.policy)} · rests on the rates from {_between(row, view)}, {old} old"


def _between(row: Recommendation, view: View) -> str:
    first, last = view.time(row.window_start_ns), view.time(row.window_end_ns)
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:%H:%M:%S} {view.zone_label}"


def _warnings(job: Job, setup: ScalingSetup, card: Card) -> Any:
    """What keeps the card from being the newest word."""
    told = []
    if setup.error:
        told.append(f"The newest rates gave no advice: {setup.error}. What is shown is the advice of before.")
    if not setup.enabled:
        told.append("Advice for this job is turned off; what is shown is the last that was given.")
    if job.finished:
        told.append("The job has finished.")
    elif card.age_ns >= recommendation.OLD_NS:
        told.append(
            f"There are no newer rates since {words.duration(card.age_ns)}: this may not hold any more."
        )
    if setup.policy != card.row.policy:
        told.append(f"{words.policy(setup.policy)} was chosen since; it speaks with the next rates.")
    return [html.P(text, className="warn") for text in told] or None


def _nothing(job: Job, setup: ScalingSetup) -> tuple[list[Any], Any]:
    name = html.Em(job.name)
    if setup.error:
        said = [html.Strong("No advice"), " about ", name, ": its rates make no sense to the policy."]
        return said, states.empty("The policy could not decide anything", setup.error)
    if reports.newest_rates(job) is None:
        said = ["Nothing can be said about the parallelism of ", name, ": it has reported no rates."]
        more = states.empty(
            "No rates yet",
            "A recommendation needs what every operator processed and how long it was busy. Weir gets it from the"
            " REST interface of a Flink cluster; rates come about a minute after it was added, and the"
            " recommendation half a minute after them.",
            html.A("Add a Flink cluster", href="/connections", className="primary"),
        )
        return said, more
    if job.finished or not setup.enabled:
        why = "the job has finished" if job.finished else "advice for it is turned off"
        return ["Nothing is recommended for ", name, f": {why}."], None
    said = ["The rates of ", name, " are there; no policy has looked at them yet."]
    return said, states.empty(
        "Waiting for the first recommendation", "Policies look at new rates every half minute."
    )


def _history(job: Job, view: View) -> Any:
    rows = [
        [
            Cell(f"{view.time(int(item.made_at.timestamp() * 1e9)):%Y-%m-%d %H:%M:%S}", item.made_at.isoformat()),
            Cell("now" if item.superseded_at is None
                 else words.seconds(max(1.0, round((item.superseded_at - item.made_at).total_seconds(), 0)))),
            Cell(words.policy(item.policy)),
            Cell(recommendation.TITLES[Move(item.move)]),
            Cell(", ".join(words.changes(_pairs(item))) or "–"),
            Cell(item.why),
        ]
        for item in advice.history(job)[:HISTORY]
    ]  # fmt: skip
    columns = (f"Said at ({view.zone_label})", "Stood for", "Policy", "Move", "Changes", "Because")
    return facts.table("What was recommended before", columns, rows, wordy=range(len(columns)))


def _pairs(row: Recommendation) -> list[tuple[str, int | None, int]]:
    return [(one["name"], one["now"], one["proposed"]) for one in row.changes]


def recompute(clicks: int | None, path: str, query: str) -> list[Any]:
    """Compute the shown decision again from its stored evidence, and say whether it is the same."""
    row = advice.current(job_at(path)) if clicks else None
    if row is None:
        return [no_update, no_update]
    found = recomputing.difference(row)
    at = f"{View.parse(query or '').time(freshness.now_ns()):%H:%M:%S}"
    if found is not None:
        return [f"✕ Computed again at {at}: not the same. {found}.", "harm"]
    told = words.series(words.changes(_pairs(row))) or "no change"
    return [
        f"✓ Computed again at {at} from the stored evidence: {told}. Equal to what is stored, bit for bit.",
        "good",
    ]


def save(
    clicks: int | None, policy: str, values: list[str], ids: list[dict[str, str]], path: str
) -> list[Any]:
    """Have the job advised as the form says."""
    if not clicks:
        return [no_update, no_update]
    job, person = job_at(path), actor()
    setup = scaling_setup.setup_of(job)
    try:
        written = {
            item["source"]: _rate(item["source"], value) for item, value in zip(ids, values, strict=True)
        }
        kept = {name: rate for name, rate in setup.targets_per_s.items() if name not in written}
        targets = kept | {name: rate for name, rate in written.items() if rate is not None}
        settings = setup.settings if policy == setup.policy else {}
        if not isinstance(person, User):
            raise PermissionDenied("sign in first")
        wanted = WantedSetup(policy, settings, targets, setup.enabled)
        scaling_setup.change_setup(person, job, wanted)
    except PermissionDenied as error:
        return [f"Not saved: {error}.", "harm"]
    except ValidationError as error:
        return [f"Not saved: {'; '.join(error.messages)}.", "harm"]
    return [f"Saved at {_clock()}. The next look at its rates, within half a minute, goes by it.", "good"]


def _clock() -> str:
    return f"{View().time(freshness.now_ns()):%H:%M:%S} UTC"


def _rate(source: str, text: str | None) -> float | None:
    written = (text or "").replace(",", "").strip()
    if not written:
        return None
    try:
        return float(written)
    except ValueError:
        raise ValidationError(f"{source}: “{text}” is no number of records per second") from None
