"""The words about a cluster's headroom: the three answers, what is tried out, and when it will be too little."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dash import html

from analytics.bursts.forecast import Forecast, Outlook
from analytics.model.burst_answers import BindingLimit
from analytics.model.bursts import NETWORK, SLOTS, BurstModel
from frontend import words
from frontend.figures.region import limit_words
from frontend.state import View
from webapp.bursts.live import Change, Live
from webapp.bursts.selectors import Standing
from webapp.bursts.surveys import FRESH_NS

PEAK_FACTOR = 1.5
CURRENT = ("live", "● current")
SHORT = ("quiet", "▽ under its burst")
"""Current too, but the configured burst would not fit."""
FLAGS = {
    "rate_dependent_selectivity": "Output per input depends on the rate; the worst seen is used",
    "little_rate_variation": "Rates hardly varied, so it cannot be told what depends on them",
    "no_input": "No input was seen, so output per input is taken to be 1",
    "unknown_cost": "Never seen at work, so it is taken to cost nothing",
    "assumed_placement": "It is not known where instances run; they are taken to be spread over all nodes",
    "unknown_network": "Bytes are sent, but nobody says how many the network there can take: it is not counted, and"
    " may stop growth earlier",
    "unknown_bytes": "It is not reported how many bytes are sent, so they are taken to be none",
    "no_rates": "No rates of the last hour, so it is left out",
    "unknown_field": "A field nobody knows, without effect",
}


def growth(ratio: float) -> str:
    """By how much inputs can grow: ``+220 %``, ``−20 %``, ``without limit``."""
    if math.isinf(ratio):
        return "without limit" if ratio > 0 else "not at all"
    if ratio >= 10:
        return f"× {words.number(ratio + 1)}"
    return f"{'+' if ratio >= 0 else '−'}{words.percent(abs(ratio))}"


def amount(value: float) -> str:
    """A rate, or what it can grow by."""
    if math.isinf(value):
        return "no limit" if value > 0 else "not at all"
    return words.number(value).replace("-", "−")


def stops(binding: Sequence[BindingLimit], level: int = 1) -> str:
    """What stops growth, the most worth adding to first: ``cpu of A and cpu of B``."""
    named = [limit_words(item.node, item.resource) for item in binding if item.level == level]
    more = f"{len(named) - 3} more" if len(named) > 3 else ""
    return words.series([*named[:3], *([more] if more else [])])


def sentence(name: str, live: Live, change: Change, peak_span: str) -> list[Any]:
    """The most it can take, whether half more than the peak fits, and what stops it."""
    head: list[Any] = [] if change.is_nothing else [f"{tried(change)}: "]
    subject = html.Em(name)
    ratio = live.proportional - 1
    if math.isinf(live.proportional):
        return [*head, "Nothing limits the inputs of ", subject, ", or it has none."]
    if ratio < -1e-9:
        least = html.Strong(f"{words.percent(-ratio)} of all inputs must be shed", className="harm")
        said: list[Any] = [*head, least, ": the inputs of ", subject, " do not fit."]
    else:
        most = html.Strong(f"All inputs of {name} can grow by {growth(ratio).lstrip('+')}")
        said = [*head, most, " at once before something drops."]
    if live.fits_ratio is not None and math.isfinite(live.fits_ratio):
        fits = live.fits_ratio >= 1
        half = f"Half more than the peak {peak_span} "
        verdict = html.Strong("✓ fits" if fits else "✕ does not fit", className="good" if fits else "harm")
        said += [
            " ",
            half,
            verdict,
            f" (up to {words.number(PEAK_FACTOR * live.fits_ratio)} × the peak does).",
        ]
    if named := stops(live.binding):
        gain = next(item for item in live.binding if item.level == 1)
        said += [" First to stop it: ", html.Strong(named), "."]
        if gain.gain > 0:
            buys = f" 10 % more {limit_words(gain.node, gain.resource)} lets each grow by {amount(gain.gain)} more."
            said.append(buys)
    return said


def tried(change: Change) -> str:
    """What is tried out, in words."""
    parts = []
    if change.capacity_ratio != 1:
        what = f"{change.resource} of {change.node}" if change.resource else f"capacity of {change.node}"
        parts.append(f"{change.capacity_ratio * 100:.0f} % of the {what}")
    if change.cost_ratio != 1:
        parts.append(f"{change.cost_ratio * 100:.0f} % of the cost per record of {change.application}")
    if change.rate_ratio != 1:
        of = f"the input of {change.rate_of}" if change.rate_of else "all inputs"
        parts.append(f"{change.rate_ratio * 100:.0f} % of {of}")
    if change.lost:
        parts.append(f"lost {change.lost}")
    return f"If we had {words.series(parts)}"


def counted(model: BurstModel, derived: bool) -> str:
    """Which resources the model counts; of one that Weir made, also what it does not."""
    found = {resource for _, _, one in model.components() for resource, cost in one.cost.items() if cost}
    found |= {resource for one in model.applications for edge in one.edges for resource in edge.cost}
    told = f"Counted: {words.series(sorted(found))}." if found else "Nothing costs anything in it."
    if not derived:
        return f"{told} What else there is to run short of is not known to it."
    if SLOTS in found:
        return (
            "Counted: the time of instances (slots). No nodes are named, so what their processors, networks and"
            " memory can take is unknown, and may stop growth earlier."
        )
    network = (
        "" if NETWORK in found else "the network (name a node's bytes a second, if they are reported) and "
    )
    memory = "memory, of which engines do not tell what a record takes"
    return f"{told} Unknown, so it may stop growth earlier: {network}{memory}."


def foretold(found: Forecast, view: View, alert_ratio: float) -> str:
    """When headroom will be too little, or why nobody can tell."""
    below = f"below {words.percent(alert_ratio)}"
    match found.outlook:
        case Outlook.CROSSES if found.at_s is not None:
            at = view.time(int(found.at_s * 1e9))
            trend = f"{abs(found.slope_per_day or 0) * 100:.2g} points a day less"
            when = f"{at:%Y-%m-%d %H:%M} {view.zone_label}"
            return f"By the trend of the last week ({trend}) it falls {below} about {when}."
        case Outlook.BELOW:
            return f"It is {below} now."
        case Outlook.FAR:
            return f"It falls so slowly that no date can be given at which it will be {below}."
        case Outlook.NO_TREND:
            return f"It does not fall steadily, so no date can be given at which it will be {below}."
        case _:
            return "The history is too short for a trend: it needs an hour and a dozen points."


def state(standing: Standing, now_ns: int) -> tuple[str, str]:
    """``(class, words)`` of how a cluster stands."""
    if standing.model is None:
        return "error", "✕ no model"
    if standing.survey is None or standing.survey.at_ns is None:
        return ("error", "✕ no answer") if standing.survey and standing.survey.error else ("", "◌ waiting")
    if standing.alert is not None:
        return "error", "▼ too little"
    if standing.survey.error:
        return "quiet", "▲ old answer"
    if standing.stale:
        return "quiet", "▲ of an older model"
    if now_ns - standing.survey.at_ns > FRESH_NS:
        at, now = (datetime.fromtimestamp(ns / 1e9, UTC) for ns in (standing.survey.at_ns, now_ns))
        return "quiet", f"▲ rates of {words.age(at, now)} ago"
    answers = standing.answers
    return SHORT if answers and answers.ratio < standing.cluster.burst_ratio else CURRENT
