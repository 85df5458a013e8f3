"""What became of a prediction: the verdict in words, the numbers, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dash import dcc, html

from analytics.verification.judge import Finding
from frontend import palette, words
from frontend.components import facts
from frontend.components.facts import Cell
from frontend.components.panel import GRAPH_CONFIG
from frontend.components.proposals import told
from frontend.components.proposals.card import Shown, backlog
from frontend.figures import outcome as figures
from webapp.jobs.models import Role
from webapp.jobs.policies import may
from webapp.reconfigurations import outcome
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import Proposal
from webapp.reconfigurations.outcome import Seen

KINDS = {"source_rate_per_s": "delivers", "utilisation": "busy", "backlog_change_per_s": "backlog"}
AGREES = {True: ("✓ yes", "good"), False: ("✕ no", "harm"), None: ("? unknown", "muted")}
GOING_BACK = (State.REGRESSED, State.REVERTING, State.REVERTED, State.REVERT_FAILED)


def draw(shown: Shown) -> Any:
    """The panel; nothing before the change was applied."""
    seen = outcome.outcome(shown.row, shown.now)
    if seen is None:
        return None
    height = figures.height_px(seen)
    figure = figures.figure(seen, shown.view, palette.of(shown.view.theme))
    return html.Section(
        className="card panel as-rows",
        id="panel-outcome",
        **{"data-file": f"weir-proposal-{shown.row.pk}-outcome", "aria-labelledby": "title-outcome"},
        children=[
            html.Div(
                [
                    html.Div(
                        [
                            html.H2("Did it come true?", id="title-outcome"),
                            html.P(_under(seen, shown), className="under"),
                        ]
                    ),
                    html.Div(
                        html.Button(
                            "CSV", className="tool", title="Save the numbers as a table", **{"data-act": "csv"}
                        ),
                        className="tools",
                    ),
                ],
                className="panel-head",
            ),
            html.P(verdict(shown.row), id="outcome-verdict", className="answer"),
            *_way_back(shown),
            html.Div(
                dcc.Graph(id="chart-outcome", config=GRAPH_CONFIG, figure=figure, style={"height": height}),
                role="img",
                className="chart",
                style={"height": height},
                **{"aria-label": spoken(seen, shown.row)},
            ),
            _legend(seen, shown),
            _numbers(seen),
        ],
    )  # fmt: skip


def _under(seen: Seen, shown: Shown) -> str:
    began = shown.view.time(seen.began_ns)
    slack = seen.tolerance
    return (
        f"Change at {began:%Y-%m-%d %H:%M:%S} {shown.view.zone_label} (the line); what is measured in the shaded"
        f" time does not count. Bands: rates within {words.percent(slack.rate_ratio)}, busy within"
        f" {100 * slack.utilisation:.0f} points of what was predicted."
    )


def verdict(row: Proposal) -> list[Any]:
    """What came of it, in a sentence."""
    sign = html.Span(told.badge(row))
    if row.verdict is None:
        return [sign, " The job settles; the verdict comes once enough was measured."]
    reasons = [str(item) for item in row.verdict.get("reasons", [])]
    said = {
        "verified": "The prediction came true",
        "regressed": "The job does worse than before",
        "inconclusive": "Whether the prediction came true cannot be told",
    }.get(str(row.verdict.get("outcome")), "There is a verdict")
    return [sign, " ", html.Strong(said), f": {'; '.join(reasons)}." if reasons else "."]


def spoken(seen: Seen, row: Proposal) -> str:
    """The chart in a line, for who cannot see it."""
    lines = [item.says for item in seen.findings]
    if not lines:
        lines = [
            f"{line[0]} {words.number(line[1].samples[-1][1])} last"
            for line in figures.rows(seen)[0].lines if line[1].samples
        ] if figures.rows(seen) else []  # fmt: skip
    measured = "; ".join(lines) or "Nothing measured"
    return f"Predicted and observed around the change {described(row)}. {measured}."


def _legend(seen: Seen, shown: Shown) -> Any:
    """Whose each line is, chart by chart; beside the chart, where long names do not take its place."""
    colours = palette.of(shown.view.theme)
    found = [
        html.Li(
            [f"{row.title.partition(',')[0]}: ", *[part for rank, line in enumerate(row.lines) for part in (
                html.B(f"{figures.SIGN_TEXTS[rank]} ", style={"color": figures.colour_of(rank, colours)}),
                html.Span(f"{line[0]}  "),
            )]]
        )
        for row in figures.rows(seen)
    ]  # fmt: skip
    dashes = html.B("╌╌ ", style={"color": colours.surface("open")})
    return html.Ul([*found, html.Li([dashes, html.Span("predicted, with its band")])], className="legend")


def _way_back(shown: Shown) -> list[Any]:
    row = shown.row
    if row.state not in GOING_BACK:
        return []
    back = row.ways_back.order_by("-id").first()
    parts: list[Any] = []
    if back is not None:
        link = html.A(f"proposal {back.pk}", href=f"/proposals/{back.pk}", id="way-back")
        parts.append(html.P(["The way back: ", link, " ", told.badge(back)]))
    under_way = back is not None and back.state in (State.PROPOSED, State.APPROVED, State.APPLYING)
    if row.state == State.REGRESSED and not under_way:
        if may(shown.person, row.job, Role.OPERATOR):
            parts.append(html.Button("Propose the way back", id="proposal-way-back", className="primary"))
        else:
            needs = f"To propose the way back you need the role operator on {row.job.name}."
            parts.append(html.P(needs, className="muted"))
    return [html.Div(parts, className="decide back")]


def _numbers(seen: Seen) -> Any:
    columns = ("What", "Came true", "Before", "Predicted", "After", "Off by")
    rows = [_row(item, seen.names) for item in seen.findings]
    if not rows:
        return html.P("The numbers come with the verdict.", className="muted")
    return facts.table("Predicted and observed", columns, rows, wordy=(0, 1))


def _row(item: Finding, names: Mapping[str, str]) -> list[Cell]:
    name = names.get(item.operator_id, item.operator_id)
    what = (
        "backlog grows by, /s"
        if not item.operator_id
        else f"{name} {KINDS.get(item.what, item.what)}{_unit(item)}"
    )
    sign, kind = AGREES[item.agrees]
    return [
        Cell(what), Cell(html.Span(sign, className=kind), sign), _value(item, item.before),
        _value(item, item.predicted), _value(item, item.after), Cell(off_by(item)),
    ]  # fmt: skip


def _unit(item: Finding) -> str:
    return ", /s" if item.what == "source_rate_per_s" else ", %" if item.what == "utilisation" else ""


def _value(item: Finding, value: float | None) -> Cell:
    if value is None:
        return Cell("–", "")
    shown = 100 * value if item.what == "utilisation" else value
    return Cell(f"{shown:,.3g}" if abs(shown) < 1000 else f"{shown:,.0f}", shown)


def off_by(item: Finding) -> str:
    """How far the observation is from the prediction: +1.2 %, -3 points."""
    if item.predicted is None or item.after is None:
        return "–"
    if item.what == "utilisation":
        return f"{100 * (item.after - item.predicted):+.0f} points"
    if item.what == "source_rate_per_s" and item.predicted:
        return f"{100 * (item.after / item.predicted - 1):+.1f} %"
    return backlog(item.after - item.predicted) if item.after != item.predicted else "0"
