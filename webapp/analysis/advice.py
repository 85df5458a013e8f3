"""Recommendations as a page tells them: the current one, those before it, and what other policies say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from analytics.model import packed
from analytics.model.decisions import Action, Decision
from analytics.model.plain import from_plain
from analytics.model.rates import Observation
from analytics.scaling.explain import Prediction, explain, predict
from analytics.scaling.policies import POLICIES, decide_window
from webapp.analysis.models import Recommendation
from webapp.jobs.models import Job


@dataclass(frozen=True)
class Opinion:
    """What another policy says about the same window by itself, without what it would remember by now."""

    policy: str
    decision: Decision
    prediction: Prediction


@dataclass(frozen=True)
class Reported:
    """How many of an operator's instances reported over the window."""

    operator_id: str
    name: str
    reported: int
    expected: int


@dataclass(frozen=True)
class Told:
    """A recommendation with its numbers, as its evidence has them.

    ``sentences`` tell every operator's formula with the numbers filled in. ``as_it_is`` and ``afterwards`` are what
    the present and the proposed parallelism are expected to give. All three are empty or None if nothing was
    decided, such as while the job warms up: ``action.why`` says why.
    """

    action: Action
    seen: Observation
    settings: dict[str, Any]
    sentences: tuple[str, ...]
    as_it_is: Prediction | None
    afterwards: Prediction | None
    reported: tuple[Reported, ...]


def current(job: Job) -> Recommendation | None:
    """What is recommended for a job now; None if its rates were never looked at."""
    return _of(job).filter(superseded_at=None).first()


def history(job: Job) -> QuerySet[Recommendation]:
    """All that was recommended for a job, the newest first, without payloads: slice it."""
    return _of(job).defer("payload").order_by("-made_at", "-pk")


def _of(job: Job) -> QuerySet[Recommendation]:
    return Recommendation.objects.filter(job=job)


def tell(recommendation: Recommendation) -> Told:
    """The recommendation with its numbers.

    Raises
    ------
    KeyError, TypeError, ValueError, AttributeError
        If it was written by a release that wrote otherwise.
    """
    stored = packed.unpack(recommendation.payload)
    seen: Observation = from_plain(Observation, stored["evidence"]["seen"])
    action: Action = from_plain(Action, stored["action"])
    decision = action.decision
    now = {operator.id: operator.parallelism for operator in seen.topology.operators}
    return Told(
        action,
        seen,
        stored["evidence"]["settings"],
        () if decision is None else explain(seen, decision),
        None if decision is None else predict(decision, now),
        None if decision is None else predict(decision, now | dict(action.changes)),
        _reported(seen),
    )


def opinions(recommendation: Recommendation, seen: Observation) -> tuple[Opinion, ...]:
    """What the other policies say about what this one has seen (`Told.seen`), with their defaults."""
    decisions = [decide_window(name, seen) for name in POLICIES if name != recommendation.policy]
    return tuple(Opinion(decision.policy, decision, predict(decision)) for decision in decisions)


def _reported(seen: Observation) -> tuple[Reported, ...]:
    rates = {item.operator_id: item for item in seen.window.operators}
    return tuple(
        Reported(
            operator.id,
            operator.name,
            len(rates[operator.id].instances) if operator.id in rates else 0,
            operator.parallelism,
        )
        for operator in seen.topology.operators
    )
