"""Comparing what a change was predicted to bring with what was measured after it.

Rates and shares are compared by ratio with a tolerance. A change *regressed* if a source delivers clearly less than
before it, or the backlog grows where it did not before, or clearly faster than before; it is *verified* if
everything predicted was measured and came true; all else is *inconclusive*, with the reason.

What a job says in the first 80 s after a change is not listened to: Flink's meters are averages over a minute that
began before it, and its first seconds are start-up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median

from analytics.model.reconfigurations import Prediction

LEAST_AGE_S = 80.0
LEAST_SPAN_S = 30.0
"""Measurements must cover at least so long."""

HELD_BACK_RATIO = 0.1
"""A source held back for less of its time than this delivers all there is to deliver."""

LEAST_SAMPLES = 2
"""Each is an average over up to a minute already."""


class Outcome(StrEnum):
    """What became of a prediction."""

    VERIFIED = "verified"
    INCONCLUSIVE = "inconclusive"
    REGRESSED = "regressed"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a measurement may be from what was predicted and still agree.

    ``rate_ratio`` is relative to the predicted rate; ``utilisation`` is absolute, since shares of a second are
    noisy; ``regression_ratio`` is how much less than before a source must deliver, or how much faster than before
    the backlog must grow, to call it a regression;
    ``backlog_ratio`` is how much of the source rate a backlog may grow by and count as standing still.
    """

    rate_ratio: float = 0.03
    utilisation: float = 0.10
    regression_ratio: float = 0.05
    backlog_ratio: float = 0.01


@dataclass(frozen=True, slots=True)
class Measured:
    """A number over time: ``(seconds since the change, value)``, negative before it."""

    samples: tuple[tuple[float, float], ...]

    def before(self) -> float | None:
        """The median before the change, None if nothing was measured."""
        values = [value for at_s, value in self.samples if at_s < 0]
        return median(values) if values else None

    def after(self) -> float | None:
        """The median once the change has settled; None if too little was measured."""
        settled = self.settled()
        if len(settled) < LEAST_SAMPLES or settled[-1][0] - settled[0][0] < LEAST_SPAN_S:
            return None
        return median(value for _, value in settled)

    def settled(self) -> list[tuple[float, float]]:
        """The samples that are old enough to be believed."""
        return sorted(sample for sample in self.samples if sample[0] >= LEAST_AGE_S)


@dataclass(frozen=True, slots=True)
class Measurements:
    """What was measured around a change, by operator id. The backlog is records waiting before the sources.

    ``held_back`` is the share of time (0 to 1) that a source's instances were back-pressured, where that tells
    whether it could have delivered more.
    """

    source_rates_per_s: Mapping[str, Measured] = field(default_factory=dict)
    utilisation: Mapping[str, Measured] = field(default_factory=dict)
    backlog: Measured | None = None
    held_back: Mapping[str, Measured] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """One number: predicted, measured before and after, and whether it came true (None: unknown)."""

    what: str
    operator_id: str
    predicted: float | None
    before: float | None
    after: float | None
    agrees: bool | None
    says: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome with its reasons, in the order of their weight."""

    outcome: Outcome
    reasons: tuple[str, ...]
    findings: tuple[Finding, ...]


def judge(
    predicted: Prediction, seen: Measurements, tolerance: Tolerance = Tolerance(),
    names: Mapping[str, str] | None = None,
) -> Verdict:  # fmt: skip
    """Compare a prediction with what was measured.

    Parameters
    ----------
    predicted
        What was expected once the change had settled.
    seen
        Measurements from before and after; those younger than ``LEAST_AGE_S`` are ignored.
    tolerance
        How far apart they may be.
    names
        Operator names for the sentences.

    Returns
    -------
    Verdict
        Never raises: what was not measured makes it inconclusive, and says so.
    """
    called = names or {}
    findings = [
        _rate(called.get(key, key), key, rate, seen.source_rates_per_s.get(key), tolerance)
        for key, rate in predicted.source_rates_per_s
    ]
    findings += [
        _share(called.get(key, key), key, share, seen.utilisation.get(key), tolerance)
        for key, share in predicted.utilisation
    ]
    backlog, worse = _backlog(predicted, seen, tolerance)
    findings += backlog
    worse += _slower_than_before(predicted, seen, tolerance, called)
    if worse:
        return Verdict(Outcome.REGRESSED, tuple(worse), tuple(findings))
    doubts = [item.says for item in findings if item.agrees is not True]
    if not findings:
        doubts = ["nothing was predicted that could be compared"]
    outcome = Outcome.INCONCLUSIVE if doubts else Outcome.VERIFIED
    reasons = doubts or [item.says for item in findings]
    return Verdict(outcome, tuple(reasons), tuple(findings))


def _rate(name: str, key: str, predicted: float, seen: Measured | None, tolerance: Tolerance) -> Finding:
    before, after = (seen.before(), seen.after()) if seen else (None, None)
    if after is None:
        return Finding("source_rate_per_s", key, predicted, before, None, None, _too_little(f"{name}'s rate"))
    # More than predicted is no disappointment.
    agrees = after >= predicted * (1 - tolerance.rate_ratio)
    says = f"{name} delivers {after:,.0f} records/s (predicted: {predicted:,.0f})"
    return Finding("source_rate_per_s", key, predicted, before, after, agrees, says)


def _share(name: str, key: str, predicted: float, seen: Measured | None, tolerance: Tolerance) -> Finding:
    before, after = (seen.before(), seen.after()) if seen else (None, None)
    if after is None:
        return Finding("utilisation", key, predicted, before, None, None, _too_little(f"{name}'s load"))
    agrees = abs(after - predicted) <= tolerance.utilisation
    says = f"{name} is busy {100 * after:.0f} % of the time (predicted: {100 * predicted:.0f} %)"
    return Finding("utilisation", key, predicted, before, after, agrees, says)


def _backlog(
    predicted: Prediction, seen: Measurements, tolerance: Tolerance
) -> tuple[list[Finding], list[str]]:
    """The finding about the backlog, if one was predicted or measured, and why that is a regression."""
    if seen.backlog is None:
        if predicted.backlog_change_per_s is None:
            return [], []
        told = _too_little("the backlog")
        return [
            Finding("backlog_change_per_s", "", predicted.backlog_change_per_s, None, None, None, told)
        ], []
    room = tolerance.backlog_ratio * sum(rate for _, rate in predicted.source_rates_per_s)
    before = slope_per_s([sample for sample in seen.backlog.samples if sample[0] < 0])
    after = slope_per_s(seen.backlog.settled()) if seen.backlog.after() is not None else None
    if after is None:
        agrees, says = None, _too_little("the backlog")
    else:
        expected = predicted.backlog_change_per_s
        agrees = after <= max(expected or 0.0, 0.0) + room
        word = "grows" if after > 0 else "shrinks"
        says = f"the backlog {word} by {abs(after):,.1f} records/s"
    finding = Finding("backlog_change_per_s", "", predicted.backlog_change_per_s, before, after, agrees, says)
    if agrees is not False or before is None or after is None:
        return [finding], []
    grew = max(before, 0.0)
    if after <= grew + max(room, tolerance.regression_ratio * grew):
        return [finding], []
    told = f", faster than before ({before:,.0f}/s)" if before > room else ", which it did not before"
    return [finding], [says + told]


def _slower_than_before(
    predicted: Prediction, seen: Measurements, tolerance: Tolerance, names: Mapping[str, str]
) -> list[str]:
    """Sources that deliver clearly less than before, and less than they should.

    A decline that was meant, or came by itself, since there is less to deliver, is none; one that was foreseen,
    since the job cannot keep up, is.
    """
    wanted = dict(predicted.source_rates_per_s) | dict(predicted.targets_per_s)
    told = []
    for key, measured in seen.source_rates_per_s.items():
        before, after = measured.before(), measured.after()
        if before is None or after is None or _nothing_more_came(seen.held_back.get(key)):
            continue
        floor = min(before, wanted.get(key, before))
        if after < floor * (1 - tolerance.regression_ratio):
            name = names.get(key, key)
            told.append(f"{name} delivers {after:,.0f} records/s, before the change it was {before:,.0f}")
    return told


def _nothing_more_came(held_back: Measured | None) -> bool:
    """Whether a source is known to deliver all it gets."""
    share = held_back.after() if held_back else None
    return share is not None and share < HELD_BACK_RATIO


def slope_per_s(samples: Sequence[tuple[float, float]]) -> float | None:
    """How fast a number grows, by least squares; None with fewer than two times."""
    if len({at_s for at_s, _ in samples}) < 2:
        return None
    mean_at = sum(at_s for at_s, _ in samples) / len(samples)
    mean = sum(value for _, value in samples) / len(samples)
    above = sum((at_s - mean_at) * (value - mean) for at_s, value in samples)
    return above / sum((at_s - mean_at) ** 2 for at_s, _ in samples)


def _too_little(what: str) -> str:
    return f"too little was measured to judge {what}"
