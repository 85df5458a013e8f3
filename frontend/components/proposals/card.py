"""A proposal's card: now and proposed, why, what it should bring and costs, and who has a say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dash import html

from analytics.model.plain import from_plain
from analytics.model.reconfigurations import Prediction
from frontend import words
from frontend.components import facts, recommendation
from frontend.components.facts import Cell
from frontend.components.proposals import told
from frontend.state import View
from webapp.accounts.models import User
from webapp.analysis.outlook import Outlook
from webapp.reconfigurations import policies, selectors
from webapp.reconfigurations.execution import described
from webapp.reconfigurations.lifecycle import State
from webapp.reconfigurations.models import EngineKind, Mode, Proposal, Vote
from webapp.reconfigurations.verification import names_of

SKIPPED = ("undoes", "why", "sentences", "reasons", "recommendation")
"""Keys of the evidence that have a place of their own on the card."""


@dataclass(frozen=True)
class Shown:
    """A proposal as one person sees it now. The refusals say why a button would be; "" where it would not."""

    row: Proposal
    person: User
    view: View
    now: datetime
    no_approval: str
    no_rejection: str
    no_break_glass: str
    votes: int
    quorum: int
    waits: str

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return self.row.state == State.PROPOSED


def look(person: User, row: Proposal, view: View, now: datetime) -> Shown:
    """What this person may do with a proposal now, and what stands in the way."""
    return Shown(
        row, person, view, now,
        selectors.why_not(person, row, "approve"),
        selectors.why_not(person, row, "reject"),
        selectors.why_not(person, row, "break_glass"),
        policies.votes_for(row),
        policies.quorum_of(row),
        policies.why_not_now(row, now),
    )  # fmt: skip


def draw(shown: Shown, buttons: Any = None) -> Any:
    """The card."""
    row = shown.row
    return html.Article(
        className="card recommendation proposal",
        id="proposal-card",
        children=[
            html.Div(
                className="card-head",
                children=[
                    html.H2(
                        [
                            html.Span(told.verb(row), className="move rescale"),
                            " ",
                            html.A(row.job.name, href=f"/jobs/{row.job_id}?tab=changes"),
                        ]
                    ),
                    told.badge(row, "proposal-state"),
                ],
            ),
            *_risks(row),
            html.Div([_changes(row), html.Div(buttons, className="decide")], className="card-changes"),
            html.Dl(
                [part for term, said in _rows(shown) for part in (html.Dt(term), html.Dd(said))],
                className="reasons",
            ),
        ],
        **{"aria-label": f"Proposal {row.pk}", "data-proposal": str(row.pk)},
    )


def _risks(row: Proposal) -> list[Any]:
    if not row.risks:
        return []
    head = html.Strong([html.Span("⚠", **{"aria-hidden": "true"}), " Risky: "])
    return [html.P([head, "; ".join(row.risks), ". Approving it needs a reason."], className="warn risky")]


def _changes(row: Proposal) -> Any:
    rows = [
        [Cell(name), Cell(f"{now:,}"), Cell(f"{wanted:,}", None, True), Cell(f"{most:,}" if most else "–")]
        for name, now, wanted, most in told.parallelism(row)
    ]
    if not rows:
        return html.P(described(row), className="changes")
    # Later it runs otherwise, not least because of what was proposed.
    before = "Now" if row.state == State.PROPOSED else "When proposed"
    return facts.table("What is proposed", ("Operator", before, "Proposed", "At most"), rows)


def _rows(shown: Shown) -> list[tuple[str, Any]]:
    row = shown.row
    found = [
        ("Why", why(row)),
        ("After", expected(row)),
        ("Costs", costs(row)),
        ("Bursts", bursts(row)),
        ("Waiting", f"{told.cost_of_waiting(row)}." if shown.is_open else None),
        ("Made by", _made_by(shown)),
        ("Bound to", _bound(shown)),
        ("Decision", _decision(shown)),
    ]
    return [(term, said) for term, said in found if said is not None]


def why(row: Proposal) -> Any:
    """What speaks for it, as its evidence says."""
    evidence: Mapping[str, Any] = row.evidence
    lines = [str(evidence["why"])] if evidence.get("why") else []
    for key in ("sentences", "reasons"):
        lines += [str(item) for item in evidence.get(key) or ()]
    lines += [f"{key.replace('_', ' ')}: {value}" for key, value in evidence.items()
              if key not in SKIPPED and isinstance(value, str | int | float) and value != ""]  # fmt: skip
    parts: list[Any] = [html.Li(text[:1].upper() + text[1:]) for text in lines]
    if row.undoes_id:
        link = html.A(f"proposal {row.undoes_id}", href=f"/proposals/{row.undoes_id}")
        parts.insert(0, html.Li(["It takes back ", link, "."]))
    return html.Ul(parts, className="plain") if parts else "No reason was given."


def expected(row: Proposal) -> Any:
    """The prediction, in words."""
    if not row.prediction:
        return "Nothing was predicted, so nothing can be verified."
    predicted: Prediction = from_plain(Prediction, row.prediction)
    names = names_of(row)
    parts = [
        f"{names.get(key, key)} delivers {words.rate(rate)}" for key, rate in predicted.source_rates_per_s
    ]
    parts += [f"{names.get(key, key)} {words.percent(share)} busy" for key, share in predicted.utilisation]
    if predicted.backlog_change_per_s is not None:
        parts.append(backlog(predicted.backlog_change_per_s))
    return " · ".join(parts) or "Nothing was predicted, so nothing can be verified."


def backlog(per_s: float) -> str:
    """How a backlog changes: the backlog shrinks by 200/s."""
    if abs(per_s) < 0.05:
        return "the backlog stands still"
    return f"the backlog {'grows' if per_s > 0 else 'shrinks'} by {words.rate(abs(per_s))}"


def costs(row: Proposal) -> str:
    """Instances and slots, and that the job restarts."""
    if (foreseen := _outlook(row)) is not None:
        return recommendation.costs(foreseen)
    before = {item["id"]: item["parallelism"] for item in row.binding.get("operators", [])}
    after = before | {key: n for key, n in (row.change.get("parallelism") or {}).items() if key in before}
    if not before:
        return "Not known for this kind of change."
    difference, slots = (
        sum(after.values()) - sum(before.values()),
        (max(before.values()), max(after.values())),
    )
    parts = [f"{difference:+,} instances ({sum(before.values()):,} → {sum(after.values()):,})"]
    if slots[0] != slots[1]:
        parts.append(f"slots, if operators share them, {slots[0]:,} → {slots[1]:,}")
    return " · ".join([*parts, "a restart of the job's tasks"])


def bursts(row: Proposal) -> str | None:
    """What is left for bursts, before and after."""
    told = (row.evidence or {}).get("burst_headroom", {}).get("says", "")
    return f"{told[:1].upper()}{told[1:]}." if told else None


def _outlook(row: Proposal) -> Outlook | None:
    """What was foreseen when it was made; None if nothing was, or another release wrote it."""
    try:
        return from_plain(Outlook, row.evidence["outlook"])  # type: ignore[no-any-return]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _made_by(shown: Shown) -> str:
    row = shown.row
    by = f"{row.proposed_by_name}, by hand" if row.by_hand else words.policy(row.policy)
    version = f", version {row.policy_version}" if row.policy and not row.by_hand else ""
    engine = EngineKind(row.rules["engine"]).label if row.rules.get("engine") else ""
    mode = f"mode {Mode(row.rules['mode']).value}" if row.rules.get("mode") else ""
    return " · ".join(
        part for part in (f"{by}{version}", told.at(row.created_at, shown.view), mode, engine) if part
    )


def _bound(shown: Shown) -> Any:
    bound = shown.row.binding
    since = bound.get("running_since_ms")
    parts: list[Any] = ["job ", html.Code(str(bound.get("engine_job_id", "–")))]
    if since:
        parts.append(
            f" as it runs since {shown.view.time(since * 1_000_000):%Y-%m-%d %H:%M:%S} {shown.view.zone_label}"
        )
    runs = [f"{item['name']} {item['parallelism']}{_at_most(item)}" for item in bound.get("operators", [])]
    return [
        *parts,
        f", with {words.series(runs)}.{' If any of this changes, the proposal is stale.' if shown.is_open else ''}"
        if runs
        else "",
    ]


def _at_most(operator: Mapping[str, Any]) -> str:
    return f" of at most {operator['max_parallelism']}" if operator["max_parallelism"] else ""


def _decision(shown: Shown) -> Any:
    row = shown.row
    if row.automatic:
        return "Approved automatically, within the limits of the job's rules."
    said = [html.Li(_vote(vote, shown.view)) for vote in row.votes.order_by("at")]
    if row.break_glass:
        said.append(
            html.Li([html.Strong("⚠ The glass was broken"), ": rules were passed over."], className="warn")
        )
    if shown.is_open:
        expires = told.at(row.expires_at, shown.view)
        said.append(html.Li(f"Needs {shown.votes} of {shown.quorum} so far · expires at {expires}"
                            f"{f' · once approved: {shown.waits}' if shown.waits else ''}"))  # fmt: skip
    return html.Ul(said, className="plain") if said else "Nobody decided about it."


def _vote(vote: Vote, view: View) -> str:
    did = "approved" if vote.approves else "rejected"
    return (
        f"{vote.voter_name} {did} it at {told.at(vote.at, view)}{f': “{vote.reason}”' if vote.reason else ''}"
    )


def small(rows: Sequence[Proposal], view: View, now: datetime) -> Any:
    """Proposals as a list of lines that lead to their pages."""
    return html.Ul(
        [
            html.Li(
                [
                    told.badge(row),
                    html.A(f"{told.verb(row)} {row.job.name}: {described(row)}", href=f"/proposals/{row.pk}"),
                    html.Span(
                        f"{told.at(row.changed_at, view)} · {told.span(now - row.changed_at)} ago",
                        className="muted",
                    ),
                ]
            )
            for row in rows
        ],
        className="plain proposal-lines",
    )  # fmt: skip
