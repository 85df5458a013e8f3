"""The recommendation card: what is proposed, why, what it brings and costs, what others say, and how sure it is.

"No change, because …" is told as fully as a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dash import html

from analytics.model.decisions import Decision, Move, OperatorDecision, Reason
from frontend import words
from frontend.components import facts, memory
from frontend.components.facts import Cell
from webapp.analysis.advice import Opinion, Told
from webapp.analysis.models import Recommendation
from webapp.analysis.outlook import Outlook, headroom

TITLES = {
    Move.RESCALE: "Rescale",
    Move.ROLL_BACK: "Go back",
    Move.KEEP: "No change",
    Move.WAIT: "Waiting",
}
OLD_NS = 5 * 60 * 1_000_000_000
"""Evidence older than this says little about now."""

MOST_LINES = 12
"""Formulas and utilisations at first sight; the rest is folded or counted."""

NUMBERS = (
    "Operator", "Parallelism", "Proposed", "Target input, /s", "True rate, /s", "… of an instance, /s",
    "Observed, /s", "Out per record in", "Need", "Useful, %", "Held back, %", "Reported",
)  # fmt: skip


@dataclass(frozen=True)
class Card:
    """A recommendation with all that the card says about it.

    ``rates_between`` and ``said_at`` are times in the reader's zone; ``now_ns`` is when it is read.
    """

    row: Recommendation
    told: Told
    outlook: Outlook
    opinions: Sequence[Opinion]
    job_name: str
    rates_between: str
    said_at: str
    now_ns: int

    @property
    def move(self) -> Move:
        """What is proposed."""
        return self.told.action.move

    @property
    def names(self) -> dict[str, str]:
        """The operators' names by id."""
        return {operator.id: operator.name for operator in self.told.seen.topology.operators}

    @property
    def changes(self) -> list[str]:
        """``split 1 → 6`` for every operator to be changed; of many the largest changes."""
        return words.changes((item["name"], item["now"], item["proposed"]) for item in self.row.changes)

    @property
    def age_ns(self) -> int:
        """How old the newest rates are that it rests on."""
        return max(0, self.now_ns - self.row.window_end_ns)


def sentence(card: Card) -> list[Any]:
    """The first line of the tab: what to do, or why not."""
    job = html.Em(card.job_name)
    if card.move in (Move.RESCALE, Move.ROLL_BACK):
        verb = "Rescale " if card.move is Move.RESCALE else "Go back on "
        return [html.Strong(verb), job, ": ", html.Strong(words.series(card.changes)), f". {_brings(card)}"]
    undecided = _undecided(card)
    if undecided:
        return [
            html.Strong("No change"), " for ", job, f", because it cannot be decided: {undecided[0]}.",
            _others(card, undecided),
        ]  # fmt: skip
    start = html.Strong("No change" if card.move is Move.KEEP else "No change yet")
    return [start, " for ", job, f", because {card.told.action.why}. {_now(card)}"]


def _brings(card: Card) -> str:
    out = card.outlook
    if card.move is Move.ROLL_BACK:
        return _capital(card.told.action.why)
    if out.target_per_s is None or not out.after.complete:
        return ""
    target, then = words.rate(out.target_per_s), words.rate(out.target_per_s * out.after.achieved_ratio)
    what = f"all of {target}" if out.after.achieved_ratio == 1 else f"{then} of {target}"
    was = f" instead of {words.rate(out.delivered_per_s)}" if out.delivered_per_s is not None else ""
    return f"It would then process {what}{was}."


def _now(card: Card) -> str:
    spare = headroom(card.outlook.before)
    return "" if not spare else f"Its input may grow by {words.percent(spare)} before something must be done."


def _undecided(card: Card) -> list[str]:
    decision = card.told.action.decision
    found = decision.undecided if decision is not None else ()
    first = [
        item for item in found if item.reason is not None and item.reason is not Reason.UPSTREAM_UNDECIDED
    ]
    return [
        f"{card.names[item.operator_id]} ({item.reason.words})" for item in first if item.reason
    ]  # fmt: skip


def _others(card: Card, undecided: Sequence[str]) -> str:
    more = len(undecided) - 1
    told = f" {words.count(more, 'other operator')} cannot be decided either." if more else ""
    decision = card.told.action.decision
    reasons = {item.reason for item in decision.undecided} if decision is not None else set()
    return f"{told} Say below what it should deliver." if Reason.NO_SOURCE_TARGET in reasons else told


def draw(card: Card) -> Any:
    """The card."""
    return [
        html.Div(
            className="card-head",
            children=[
                html.H2(
                    [html.Span(_title(card), className=f"move move-{card.move.value}"), " ", card.job_name]
                ),
                html.Span(_said(card), className="muted number"),
            ],
        ),
        html.Div(
            className="card-changes",
            children=[
                html.Ul([html.Li(item) for item in card.changes], className="changes")
                if card.changes
                else html.P("Every operator keeps its parallelism.", className="changes"),
            ],
        ),
        html.Dl(
            [part for term, said in _rows(card) for part in (html.Dt(term), html.Dd(said))],
            className="reasons",
        ),
    ]


def _title(card: Card) -> str:
    return "Cannot decide" if card.move is Move.KEEP and _undecided(card) else TITLES[card.move]


def _said(card: Card) -> str:
    policy = f"{words.policy(card.row.policy)}, version {card.row.version}"
    return f"{policy} · first said at {card.said_at}"


def _rows(card: Card) -> list[tuple[str, Any]]:
    return [
        ("Why", _why(card)),
        ("After" if card.changes else "Now", _after(card)),
        ("Costs", costs(card.outlook) if card.changes else "nothing: the job is left alone"),
        (
            "Others",
            html.Ul([html.Li(_opinion(item, card.names)) for item in card.opinions], className="plain"),
        ),
        ("Evidence", _evidence(card)),
    ]


def _why(card: Card) -> Any:
    if not card.told.sentences:
        return _capital(card.told.action.why)
    changed = {item["operator_id"] for item in card.row.changes}
    decision = card.told.action.decision
    ids = [item.operator_id for item in decision.operators] if decision is not None else []
    both = sorted(zip(ids, card.told.sentences, strict=True), key=lambda pair: pair[0] not in changed)
    first, more = both[:MOST_LINES], both[MOST_LINES:]
    parts = [html.Ul([html.Li(text) for _, text in first], className="plain formulas")]
    if more:
        rest = html.Ul([html.Li(text) for _, text in more], className="plain formulas")
        parts.append(html.Details([html.Summary(words.count(len(more), "more operator")), rest]))
    if not changed and not _undecided(card):
        parts.insert(0, html.P(_capital(card.told.action.why)))
    return parts


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _after(card: Card) -> Any:
    out, names = card.outlook, card.names
    if not out.after.utilisation:
        return "Cannot be predicted: what the operators need is not known."
    parts = []
    if out.target_per_s is not None:
        was = f" (from {words.rate(out.delivered_per_s)})" if out.delivered_per_s is not None else ""
        parts.append(
            f"{words.rate(out.target_per_s * out.after.achieved_ratio)}{was if card.changes else ''}"
        )
    if out.after.limiter is not None:
        parts.append(
            f"{names[out.after.limiter]} still limits it to {words.percent(out.after.achieved_ratio)} of its target"
        )
    busy = list(out.after.utilisation)
    if len(busy) > MOST_LINES:
        busy = sorted(busy, key=lambda pair: -pair[1])[:MOST_LINES]
    parts += [f"{names[key]} {words.percent(share)} busy" for key, share in busy]
    if len(busy) < len(out.after.utilisation):
        parts.append(f"{len(out.after.utilisation) - len(busy)} more, less busy")
    unknown = "" if out.after.complete else " · not all operators could be predicted"
    return " · ".join(parts) + unknown


def costs(out: Outlook) -> str:
    """Instances, slots, the restart, the backlog and headroom, before and after."""
    before, after = out.instances
    parts = [f"{after - before:+,} instances ({before:,} → {after:,})"]
    if out.slots[0] != out.slots[1]:
        parts.append(f"slots, if operators share them, {out.slots[0]:,} → {out.slots[1]:,}")
    if out.restart_ns is not None:
        parts.append(f"a restart, the last ones took {words.duration(out.restart_ns)}")
    else:
        parts.append("a restart, of unknown length: no rescale of this job was seen yet")
    if out.lag_records:
        until = f", worked off in {words.seconds(out.catch_up_s)}" if out.catch_up_s is not None else ""
        parts.append(f"backlog {words.number(out.lag_records)} records{until}")
    was, will = headroom(out.before), headroom(out.after)
    if was is not None and will is not None:
        parts.append(f"headroom {words.percent(was)} → {words.percent(will)}")
    return " · ".join(parts)


def _opinion(item: Opinion, names: dict[str, str]) -> Any:
    return [html.Strong(words.policy(item.policy)), f": {_asks(item.decision, names)}"]


def _asks(decision: Decision, names: dict[str, str]) -> str:
    if decision.undecided:
        reasons = sorted({item.reason.words for item in decision.undecided if item.reason is not None})
        return f"cannot decide: {reasons[0]}"
    named = words.changes(
        (names[item.operator_id], item.current, item.proposed)
        for item in decision.operators
        if item.proposed != item.current
    )
    return ", ".join(named) if named else f"no change{f', {decision.note}' if decision.note else ''}"


def _evidence(card: Card) -> Any:
    reported = sum(item.reported for item in card.told.reported)
    expected = sum(item.expected for item in card.told.reported)
    short = [f"{item.name} {item.reported} of {item.expected}" for item in card.told.reported
             if item.reported < item.expected]  # fmt: skip
    length = words.seconds((card.row.window_end_ns - card.row.window_start_ns) / 1e9)
    told = f"{reported:,} of {words.count(expected, 'instance')} reported"
    parts: list[Any] = [f"rates from {card.rates_between}, {length} · {told}"]
    if short:
        parts.append(html.Span(f" · incomplete: {', '.join(short)}", className="warn"))
    return [*parts, *memory.told(card.told.seen.window.memory)]


def numbers(card: Card) -> Any:
    """The rates the decision rests on."""
    decision = card.told.action.decision
    decided = {item.operator_id: item for item in decision.operators} if decision is not None else {}
    rows = [_numbers_row(card, place, decided) for place in range(len(card.told.seen.topology.operators))]
    return facts.table("The rates this decision rests on", NUMBERS, rows)


def _numbers_row(card: Card, place: int, decided: dict[str, OperatorDecision]) -> list[Cell]:
    seen = card.told.seen
    operator = seen.topology.operators[place]
    rates = next((item for item in seen.window.operators if item.operator_id == operator.id), None)
    told = decided.get(operator.id)
    instances = rates.instances if rates is not None else ()
    processed = [item.observed_processing_per_s for item in instances]
    sent = [item.observed_output_per_s for item in instances]
    is_source = operator in seen.topology.sources()
    able = told.true_output_per_s if told and is_source else told.true_processing_per_s if told else None
    each = None if able is None else able / operator.parallelism
    selectivity = (
        told.true_output_per_s / told.true_processing_per_s
        if told and told.true_output_per_s is not None and told.true_processing_per_s and not is_source
        else None
    )
    useful = [item.useful_ratio for item in instances]
    held = [item.backpressured_ratio for item in instances]
    reported = f"{len(instances)} of {operator.parallelism}"
    proposed = dict(card.told.action.changes).get(operator.id, operator.parallelism)
    return [
        Cell(operator.name), Cell(f"{operator.parallelism:,}"),
        Cell(f"{proposed:,}", None, proposed != operator.parallelism),
        _number(told.target_rate_per_s if told else None), _number(able), _number(each),
        _number(_total(sent if is_source else processed)), _number(selectivity),
        _number(told.need if told else None, "{:.4g}"), _percent(useful), _percent(held),
        Cell(reported, reported, len(instances) < operator.parallelism),
    ]  # fmt: skip


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _number(value: float | None, form: str = "{:,.4g}") -> Cell:
    return (
        Cell("–", "")
        if value is None
        else Cell(words.number(value) if abs(value) >= 1e4 else form.format(value), value)
    )


def _percent(values: Sequence[float | None]) -> Cell:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Cell("–", "")
    mean = sum(known) / len(known)
    return Cell(words.percent(mean).removesuffix(" %"), 100 * mean)
