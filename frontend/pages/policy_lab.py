"""The policy lab: one job's history, or a published dataflow, through every policy, a lane each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, no_update

from analytics.scaling.lab import MODELS, Lab, Lane, NexmarkRow
from frontend import freshness, palette, words
from frontend.components import facts, panel, states, verdict
from frontend.components.facts import Cell
from frontend.figures import marks, parallelism
from frontend.request import actor
from frontend.state import View, integer
from webapp.analysis import policy_lab, selectors
from webapp.analysis.models import Replay, TimelineState
from webapp.analysis.policy_lab import LabRange
from webapp.jobs.models import Job
from webapp.reconfigurations.standing import applied_changes

POLL_MS = 500
DEFAULT_RESTART_S = 30.0
HELP = "/help/guide"
PANELS = {
    "lanes": "What would each policy have done?",
    "steps": "Which steps did they take?",
    "nexmark": "Does DS2 converge as published?",
}
_HEAD = (
    ("sentence", "children"), ("basis", "children"), ("controls", "children"), ("message", "children"),
    ("body", "hidden"), ("notes", "children"), ("poll", "disabled"), ("drawn", "data"),
)  # fmt: skip
_BODY = (
    ("chart-lab-lanes", "figure"), ("chart-lab-lanes", "style"), ("frame-lab-lanes", "style"),
    ("frame-lab-lanes", "aria-label"), ("wait-lab-lanes", "hidden"), ("under-lab-lanes", "children"),
    ("list-lab-lanes", "children"), ("under-lab-steps", "children"), ("list-lab-steps", "children"),
    ("whole-lab-nexmark", "hidden"), ("under-lab-nexmark", "children"), ("list-lab-nexmark", "children"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be replayed, as it stands in the address; a model goes before a job."""

    job_id: int | None
    model: str
    start: int
    restart_s: float

    @staticmethod
    def parse(query: str) -> Wish:
        """Read a query string; values that make no sense count as absent."""
        fields = {key: values[-1] for key, values in parse_qs(query.lstrip("?")).items()}
        model = fields.get("model", "")
        start = integer(fields.get("start")) or 0
        starts = MODELS[model].starts if model in MODELS else ()
        wanted = [value for value in policy_lab.RESTARTS_S if f"{value:g}" == fields.get("restart")]
        return Wish(
            integer(fields.get("job")),
            model if model in MODELS else "",
            start if 0 <= start < len(starts) else 0,
            wanted[0] if wanted else DEFAULT_RESTART_S,
        )


def layout() -> Any:
    """The page before its values come."""
    return html.Div(
        className="asked lab",
        children=[
            html.Div(html.H1("Policy lab"), className="page-head"),
            dcc.Interval(id="lab-poll", interval=POLL_MS, disabled=True),
            dcc.Store(id="lab-again"),
            dcc.Store(id="lab-drawn"),
            html.P("Reading …", id="lab-sentence", className="sentence", role="status"),
            html.P("…", id="lab-basis", className="basis muted"),
            html.Div(id="lab-controls", className="controls"),
            html.Div(id="lab-message"),
            html.Div(
                id="lab-body",
                className="asked-body one",
                children=[
                    panel.panel("lab-lanes", PANELS["lanes"], height_px=parallelism.height(4)),
                    facts.sheet("lab-steps", PANELS["steps"]),
                    html.Div(facts.sheet("lab-nexmark", PANELS["nexmark"]), id="whole-lab-nexmark", hidden=True),
                ],
            ),
            html.Div(id="lab-notes", className="notes muted"),
        ],
    )  # fmt: skip


def register(app: Dash) -> None:
    """Callbacks of the page."""
    outputs = [*(Output(f"lab-{part}", prop) for part, prop in _HEAD), *(Output(*pair) for pair in _BODY)]
    app.callback(
        outputs,
        Input("url", "search"), Input("tick", "n_intervals"), Input("lab-again", "data"),
        Input("screen", "data"), State("lab-drawn", "data"),
    )(refresh)  # fmt: skip
    # Polls pass only while nothing is under way, else the answers of a slow server would never be heard.
    app.clientside_callback(
        ClientsideFunction("weir", "again"), Output("lab-again", "data"), Input("lab-poll", "n_intervals")
    )
    app.callback(
        Output("lab-poll", "disabled", allow_duplicate=True),
        Input("lab-retry", "n_clicks"),
        State("url", "search"),
        prevent_initial_call=True,
    )(retry)


def refresh(query: str, _tick: int, _poll: int, screen: str, drawn: str | None) -> list[Any]:
    """The page's values, and the stamp."""
    view, wish = View.parse(query or ""), Wish.parse(query or "")
    freshness.stamp()
    if wish.model:
        return _published(view, wish, screen == "narrow", drawn)
    job = selectors.job(actor(), wish.job_id) if wish.job_id is not None else None
    if job is None:
        said = "Choose a job, or a dataflow of the DS2 paper, to see what each policy makes of it."
        return _without(said, _controls(wish, job), _choose(wish), f"{view} {wish}", drawn)
    row = policy_lab.ask_history(job, _span(view), wish.restart_s)
    if row is None:
        nothing = ["Nothing can be replayed for ", html.Em(job.name), " yet."]
        return _without(nothing, _controls(wish, job), _no_rates(job, view), f"{view} {wish}", drawn)
    return _shown(row, (), view, wish, job, screen == "narrow", drawn)


def retry(clicks: int | None, query: str) -> Any:
    """Compute again what failed."""
    if not clicks:
        return no_update
    for row in _rows(View.parse(query or ""), Wish.parse(query or "")):
        policy_lab.retry(row.key)
    return False


def _rows(view: View, wish: Wish) -> list[Replay]:
    """The replays that the page rests on."""
    if wish.model:
        asked = [policy_lab.ask_published(wish.model, wish.start)]
        return [*asked, policy_lab.ask_nexmark()] if _is_nexmark(wish) else asked
    job = selectors.job(actor(), wish.job_id) if wish.job_id is not None else None
    row = policy_lab.ask_history(job, _span(view), wish.restart_s) if job is not None else None
    return [row] if row is not None else []


def _span(view: View) -> LabRange:
    return LabRange(*view.span(freshness.now_ns()), "" if view.is_absolute else view.range)


def _is_nexmark(wish: Wish) -> bool:
    return wish.model.startswith(policy_lab.NEXMARK_KEY)


def _published(view: View, wish: Wish, narrow: bool, drawn: str | None) -> list[Any]:
    row, *more = _rows(view, wish)
    return _shown(row, more, view, wish, None, narrow, drawn)


def _shown(
    row: Replay,
    more: Sequence[Replay],
    view: View,
    wish: Wish,
    job: Job | None,
    narrow: bool,
    drawn: str | None,
) -> list[Any]:  # fmt: skip
    rows = (row, *more)
    waits = any(item.state == TimelineState.QUEUED for item in rows)
    failed = next((item for item in rows if item.state == TimelineState.FAILED), None)
    key = (
        f"{view} {wish} {narrow} {[str(item.answered_at) for item in rows]} {waits} {failed and failed.error}"
    )
    if key == drawn:
        return [no_update] * (len(_HEAD) - 2) + [not waits, key] + [no_update] * len(_BODY)
    found = policy_lab.lab_of(row)
    message = _failed(failed) if failed is not None else None
    controls = _controls(wish, job)
    said: Any
    if found is None:
        said = "The replay failed." if failed is not None else "Replaying every policy …"
        hidden = failed is not None
        return [said, "", controls, message, hidden, (), not waits, key, *[no_update] * len(_BODY)]
    if job is not None and (short := _too_little(found, view)) is not None:
        said = ["Nothing can be told about ", html.Em(job.name), " yet."]
        return [said, _basis(found, row, view, waits), controls, short, True, (), not waits, key,
                *[no_update] * len(_BODY)]  # fmt: skip
    told = (
        verdict.of_history(found, job.name) if job else verdict.of_published(found, MODELS[wish.model].name)
    )
    if job is not None and len(found.lanes) < 2:
        message = message or states.empty(
            "The history tells too little", verdict.why_not(found), _settle(job)
        )
    table = policy_lab.table_of(more[0]) if more else None
    return [
        told, _basis(found, row, view, waits), controls, message, False, _notes(found), not waits, key,
        *_values(found, job, view, narrow), *_nexmark(table, bool(more)),
    ]  # fmt: skip


def _values(found: Lab, job: Job | None, view: View, narrow: bool) -> list[Any]:
    height = {"height": parallelism.height(len(found.lanes))}
    figure, told = _marked(found, job, view, narrow)
    drawn = parallelism.drawn_operators(found)
    left_out = len(found.operators) - len(drawn)
    rest = (
        f" · the {len(drawn)} operators with most instances, {left_out} more in the table" if left_out else ""
    )
    under = f"parallelism by operator over time, one scale for all · red line at 0: a source under its target{rest}"
    return [
        figure, height, height, f"{_spoken(found)}{told}", True, under, _lanes(found), _counted(found),
        _steps(found, view),
    ]  # fmt: skip


def _marked(found: Lab, job: Job | None, view: View, narrow: bool) -> tuple[dict[str, Any], str]:
    """The lanes with every change that was applied meanwhile, and those changes in words."""
    colours = palette.of(view.theme)
    figure = parallelism.figure(found, colours, narrow)
    start_ns = found.start_ns
    if job is None or start_ns is None:
        return figure, ""
    end_ns = start_ns + int(max(lane.length_s for lane in found.lanes) * 1e9)
    changes = applied_changes(job, start_ns, end_ns)
    unit_ns = parallelism.unit_s(found) * 1e9
    return marks.mark(figure, changes, lambda at: (at - start_ns) / unit_ns, colours), marks.spoken(
        changes, view
    )


def _lanes(found: Lab) -> Any:
    columns = (
        "Policy",
        "Steps",
        "Last step after",
        "Under target",
        "Instance-hours",
        "On target at the end, %",
        "Ends at",
    )
    best = min((lane for lane in found.lanes), key=verdict.order)
    rows = [
        [
            Cell(words.policy(lane.policy)),
            Cell(f"{len(lane.steps):,}", len(lane.steps)),
            Cell(words.seconds(lane.converged_s) if lane.steps else "–", lane.converged_s),
            Cell(words.seconds(lane.under_target_s), lane.under_target_s, lane is best),
            Cell(words.number(lane.instance_hours), lane.instance_hours),
            Cell(words.percent(lane.least_achieved).removesuffix(" %"), 100 * lane.least_achieved),
            Cell(verdict.end_words(found, lane)),
        ]
        for lane in found.lanes
    ]  # fmt: skip
    return facts.table("What each policy did and what it cost", columns, rows, wordy=(0, 6))


def _counted(found: Lab) -> str:
    total = sum(len(lane.steps) for lane in found.lanes)
    return f"{words.count(total, 'change')} of parallelism, by time since the start"


def _steps(found: Lab, view: View) -> Any:
    rows = [row for lane in found.lanes for row in _lane_steps(found, lane, view)]
    if not rows:
        return html.P("Nothing was changed, and no policy would have.", className="muted")
    columns = ("Policy", "After", "Change", "")
    return facts.table("Every step of every policy", columns, rows, wordy=(0, 2, 3))


def _lane_steps(found: Lab, lane: Lane, view: View) -> list[list[Cell]]:
    names = dict(found.operators)
    rows = []
    for step in lane.steps:
        changes = ", ".join(f"{names.get(key, key)} {was} → {now}" for key, was, now in step.changes)
        note = "rolled back" if step.rolled_back else ""
        rows.append([
            Cell(words.policy(lane.policy)), Cell(words.seconds(step.at_s), step.at_s), Cell(changes), Cell(note)
        ])  # fmt: skip
    return rows


def _nexmark(table: tuple[NexmarkRow, ...] | None, wanted: bool) -> list[Any]:
    if not wanted:
        return [True, "", None]
    if table is None:
        return [False, "computing …", states.skeleton(240)]
    queries = list(dict.fromkeys(row.query for row in table))
    starts = sorted({row.start for row in table})
    known = {(row.query, row.start): row for row in table}
    cells = [[Cell(str(start)), *(_decided(known[query, start]) for query in queries)] for start in starts]
    same = sum(row.found == row.published for row in table)
    most = max(len(row.found) for row in table)
    under = (
        f"decisions of DS2 for the main operator, by where it starts · {same} of {len(table)} runs as published,"
        f" the others say what was published · at most {most} steps"
    )
    columns = ["Start", *(f"{query}" for query in queries)]
    return [False, under, facts.table(PANELS["nexmark"], columns, cells, wordy=range(len(columns)))]


def _decided(row: NexmarkRow) -> Cell:
    path = " → ".join(map(str, row.found))
    if row.found == row.published:
        return Cell(path, strong=True)
    published = " → ".join(map(str, row.published))
    return Cell([html.Div(path), html.Div(f"published: {published}", className="muted small")], path)


def _basis(found: Lab, row: Replay, view: View, waits: bool) -> str:
    windows = f"{words.count(found.interval_count, 'window')} of {words.seconds(found.interval_s)}"
    told = f"Rests on {windows}"
    if found.start_ns is not None:
        told += f" from {view.time(found.start_ns):%Y-%m-%d %H:%M:%S} {view.zone_label} on"
    if row.answered_at is not None:
        told += f" · replayed at {view.time(int(row.answered_at.timestamp() * 1e9)):%H:%M:%S}"
    return told + (" · replaying again …" if waits else "")


def _notes(found: Lab) -> list[Any]:
    odd = [
        html.Li(f"{verdict.ODD.get(item.code, item.code)}: {item.count:,} ({item.example})")
        for item in found.diagnostics
    ]
    taken = ["The replay takes for granted: ", "; ".join(verdict.assumptions(found)), ". "]
    return [
        html.P([*taken, html.A("How policies differ", href=HELP)]),
        *([html.P("Odd about the history:"), html.Ul(odd)] if odd else []),
    ]  # fmt: skip


def _spoken(found: Lab) -> str:
    told = [
        f"{words.policy(lane.policy)} {words.count(len(lane.steps), 'step')}, under target"
        f" {words.seconds(lane.under_target_s)}, ends at {verdict.end_words(found, lane)}"
        for lane in found.lanes
    ]
    return f"{PANELS['lanes']} {'; '.join(told)}."


def _too_little(found: Lab, view: View) -> Any:
    if found.interval_count >= policy_lab.FEWEST_WINDOWS:
        return None
    return states.empty(
        f"Only {words.count(found.interval_count, 'window')} {view.span_words}",
        f"A replay needs at least {policy_lab.FEWEST_WINDOWS} windows; policies that wait before they act"
        " need an hour.",
        _longer(),
    )


def _longer() -> Any:
    return html.Div(
        [
            facts.link(f"Look at the last {label}", {"range": key, "from": None, "to": None})
            for key, label in (("1h", "1 h"), ("6h", "6 h"), ("24h", "24 h"))
        ],
        className="links",
    )


def _no_rates(job: Job, view: View) -> Any:
    if policy_lab.has_rates(job):
        return states.empty(f"No rates {view.span_words}", "The job has rates at other times.", _longer())
    return states.empty(
        "This job has no rates",
        "A replay needs what operators processed and how long they were busy. Weir gets it from the REST interface"
        " of a Flink cluster; rates come about a minute after it was added.",
        html.A("Add a Flink cluster", href="/connections", className="primary"),
    )


def _settle(job: Job) -> Any:
    return html.A("Set the targets of its sources", href=f"/jobs/{job.pk}?tab=scaling", className="primary")


def _choose(wish: Wish) -> Any:
    missing = wish.job_id is not None
    title = f"There is no job {wish.job_id}, or you may not see it" if missing else "Nothing chosen yet"
    return states.empty(
        title,
        "A job's stored history is replayed through every policy, to choose one before it is turned on.",
        html.A(
            "Try it on the word count of the DS2 paper", href="/policy-lab?model=heron", className="primary"
        ),
    )


def _failed(row: Replay) -> Any:
    before = " What is shown is the answer of before." if row.payload else ""
    return html.Div(
        className="state",
        role="alert",
        children=[
            html.H2("The replay failed"),
            html.P(f"{row.error}.{before}"),
            html.Button("Try again", id="lab-retry", className="primary"),
        ],
    )


def _without(sentence: Any, controls: Any, message: Any, key: str, drawn: str | None) -> list[Any]:
    """Nothing to show; what can be chosen is left alone while somebody may be choosing."""
    rest = [no_update] * len(_BODY)
    if key == drawn:
        return [no_update] * len(_HEAD) + rest
    return [sentence, "", controls, message, True, (), True, key, *rest]


def _controls(wish: Wish, job: Job | None) -> list[Any]:
    jobs, count = policy_lab.jobs_with_history(actor())
    if job is not None and job.pk not in {item.pk for item in jobs}:
        jobs = [job, *jobs]
    chosen = "" if wish.model or job is None else str(job.pk)
    listed = [("", "choose …"), *((str(item.pk), item.name) for item in jobs)]
    more = f" (newest {len(jobs)} of {count:,})" if count > len(jobs) else ""
    models = [("", "choose …"), *((key, model.name) for key, model in MODELS.items())]
    found = [
        facts.select(f"Job{more}", "job", [("", listed)], chosen, clears="model start"),
        facts.select("Dataflow of the DS2 paper", "model", [("", models)], wish.model, clears="job start"),
    ]
    if wish.model and len(MODELS[wish.model].starts) > 1:
        starts = [
            (str(start[0][1]), {"start": str(place) if place else None}, place == wish.start)
            for place, start in enumerate(MODELS[wish.model].starts)
        ]
        found.append(facts.choice("Starts with", starts))
    if chosen:
        stops = [
            (words.seconds(value), {"restart": None if value == DEFAULT_RESTART_S else f"{value:g}"},
             value == wish.restart_s)
            for value in policy_lab.RESTARTS_S
        ]  # fmt: skip
        found.append(facts.choice("A change stops the job for", stops))
    return found
